#include "tests/laws/law.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace starfold::laws {
namespace {

std::uint64_t seed_of(const std::string& name, std::uint64_t number) {
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return Random(hash + number).fork();
}

Case make_case(std::uint64_t seed, const GeneratorOptions& options) {
  Case c;
  c.seed = seed;
  c.options = options;
  Random random(seed);
  c.program = generate_program(random, c.options);
  c.federation = generate_federation(random, c.program);
  return c;
}

// An exception that no law expects is a broken law too.
Law guarded(const Law& law) {
  return [law](const Case& c) -> Verdict {
    try {
      return law(c);
    } catch (const std::exception& error) {
      return fmt::format("an exception: {}", error.what());
    }
  };
}

}  // namespace

int law_programs(int usual) {
  if (const char* set = std::getenv("STARFOLD_LAW_PROGRAMS")) return std::atoi(set);
  const char* text = std::getenv("STARFOLD_LAW_SHARE");
  if (text == nullptr) return usual;
  const double share = std::atof(text);
  if (!(share > 0 && share <= 1)) throw std::invalid_argument("STARFOLD_LAW_SHARE is no share");
  return std::max(1, static_cast<int>(usual * share));
}

void check_law(const std::string& name, const GeneratorOptions& options, int programs,
               const Law& unguarded, double telling) {
  const Law law = guarded(unguarded);
  const char* only = std::getenv("STARFOLD_LAW_SEED");
  const int count = only != nullptr ? 1 : law_programs(programs);
  int silent = 0;
  for (int number = 0; number < count; ++number) {
    const std::uint64_t seed = only != nullptr ? std::strtoull(only, nullptr, 10)
                                               : seed_of(name, static_cast<std::uint64_t>(number));
    const Case c = make_case(seed, options);
    const Verdict broken = law(c);
    silent += broken.says_nothing() ? 1 : 0;
    if (!broken) continue;
    const Case small = shrink(c, law);
    const Verdict shrunk = law(small);
    ADD_FAILURE() << name << " does not hold: " << (shrunk ? *shrunk : *broken) << "\n"
                  << show(small) << "\n--- before it was made smaller: " << *broken << "\n"
                  << c.program.text.text << "\n--- again: STARFOLD_LAW_SEED=" << seed
                  << " build/dev/law_tests --gtest_filter=" << name;
    return;
  }
  if (std::getenv("STARFOLD_LAW_TELLING") != nullptr)
    fmt::print("{}: {} of {} cases say something\n", name, count - silent, count);
  // Of few cases the share is left to chance.
  if (count < 40) return;
  EXPECT_GE(count - silent, telling * count) << name << ": too few cases say anything of it";
}

}  // namespace starfold::laws

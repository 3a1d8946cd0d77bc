// Bytes choose a program and how it is run; the engine and the definition must agree on it. Programs and federations are those
// of the laws: well-typed, within sane ranges. The data comes from a seed, since values made of few bytes tie too often,
// and comparisons of what is equal up to rounding have no right answer.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "tests/laws/law.h"

using namespace starfold;

namespace {

// What the first bytes choose.
struct Setting {
  bool optimize = true;
  RunOptions run;
};

Setting choose(laws::Random& random, laws::GeneratorOptions& options) {
  options.special = random.chance(25);
  options.base = random.chance(10);
  options.loops = !random.chance(25);
  options.functions = !random.chance(25);
  options.statements = random.between(1, 4);
  options.depth = random.between(2, 3);
  Setting setting;
  setting.optimize = !random.chance(25);
  setting.run.block_records = random.pick(std::vector<int>{512, 1, 2, 3, 7});
  setting.run.threads = random.chance(10) ? 3 : 1;
  return setting;
}

std::uint64_t hash(std::span<const std::uint8_t> bytes) {
  std::uint64_t hash = 1469598103934665603ULL;  // FNV-1a
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211ULL;
  return hash;
}

// Few bytes make a trivial program: after an even first byte they go on at random.
std::vector<std::uint8_t> lengthened(std::span<const std::uint8_t> given, std::uint64_t seed) {
  constexpr std::size_t enough = 250;
  std::vector<std::uint8_t> bytes(given.begin(), given.end());
  laws::Random random(seed);
  while (bytes.size() < enough && (given.empty() || given[0] % 2 == 0))
    bytes.push_back(static_cast<std::uint8_t>(random.below(256)));
  return bytes;
}

[[noreturn]] void fail(const laws::Case& c, const std::string& why) {
  std::fprintf(stderr, "%s\n%s\n", why.c_str(), laws::show(c).c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  laws::Case c;
  c.seed = hash({data, size});
  const std::vector<std::uint8_t> bytes = lengthened({data, size}, c.seed);
  laws::Random random(bytes);
  const Setting setting = choose(random, c.options);
  c.program = laws::generate_program(random, c.options);
  laws::Random values(c.seed);
  c.federation = laws::generate_federation(values, c.program);

  const laws::Compiled compiled = laws::compiled(c, setting.optimize);
  if (!compiled.error.empty()) fail(c, compiled.error);
  const laws::Outcome want = laws::run_reference(c, *compiled.program);
  const laws::Outcome got = laws::run_engine(c, *compiled.program, setting.run);
  if (const laws::Verdict differs = laws::compare(got, want, laws::rounding)) {
    fail(c, "optimize " + std::to_string(setting.optimize) + ", blocks of " +
                std::to_string(setting.run.block_records) + ", " +
                std::to_string(setting.run.threads) + " threads: " + *differs);
  }
  return 0;
}

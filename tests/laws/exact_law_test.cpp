// Laws of exact runs: nothing about where and how records lie shows in a single bit of the answer.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include "starfold/base/error.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

// The instruction sets that this processor has, one by one, and all of them again at the end.
class Target {
 public:
  explicit Target(std::int64_t target) { choose(target); }
  ~Target() { choose(0); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  static std::vector<std::int64_t> all() {
    std::vector<std::int64_t> targets;
    for (auto rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1)
      targets.push_back(rest & ~(rest - 1));
    return targets;
  }

 private:
  static void choose(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

// The same records among other clients, in another order, in other blocks, on other threads and other instructions.
Verdict exact_to_the_bit(const Case& c) {
  static const std::vector<std::int64_t> targets = Target::all();
  const Compiled program = compiled(c, true, false, true);
  if (!program.error.empty()) return program.error;
  const Outcome first = run_engine(c, *program.program);
  Random random = c.choices();
  for (int number = 0; number < 4; ++number) {
    Case other = c;
    if (random.chance(75))
      other.federation = deal_again(random, c.program, c.federation, random.between(1, 7));
    random.shuffle(other.federation.clients);
    RunOptions options;
    options.threads = random.between(1, 3);
    options.block_records = random.pick(std::vector<int>{1, 2, 3, 5, 8, 17, 512});
    const std::int64_t target = random.pick(targets);
    const Target chosen(target);
    const std::string how =
        fmt::format("{} clients, {} threads, blocks of {}, {}: ", other.federation.clients.size(),
                    options.threads, options.block_records, hwy::TargetName(target));
    const Outcome again = run_engine(other, *program.program, options);
    if (first.report.has_value() != again.report.has_value())
      return how + first.error + again.error;
    if (!first.report) continue;
    if (const Verdict broken = same_bits(again.report->results, first.report->results))
      return how + *broken;
  }
  return first.report ? Verdict() : Verdict::nothing();
}

TEST(ExactLaws, SameBits) { check_law("ExactLaws.SameBits", {}, 700, exact_to_the_bit); }

TEST(ExactLaws, SameBitsOnSpecialValues) {
  GeneratorOptions options;
  options.special = true;
  check_law("ExactLaws.SameBitsOnSpecialValues", options, 400, exact_to_the_bit);
}

TEST(ExactLaws, SameBitsOnAllMagnitudes) {
  GeneratorOptions options;
  options.wide = true;
  check_law("ExactLaws.SameBitsOnAllMagnitudes", options, 400, exact_to_the_bit);
}

// The answer is the one of the definition.
Verdict exact_equals_reference(const Case& c) {
  const Compiled program = compiled(c, true, false, true);
  if (!program.error.empty()) return program.error;
  return compare(run_engine(c, *program.program), run_reference(c, *program.program), rounding);
}

TEST(ExactLaws, EqualsReference) {
  check_law("ExactLaws.EqualsReference", {}, 700, exact_equals_reference);
}

}  // namespace
}  // namespace starfold::laws

// Which rounds a plan has, where loops are: as few as there can be, and every one of them told.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "starfold/federation/program.h"
#include "starfold/plan/explain.h"

namespace starfold::testing {
namespace {

std::shared_ptr<const CompiledProgram> planned(const std::string& text) {
  auto program = compile_program({"test.fold", text, {}});
  EXPECT_TRUE(program->plan) << text;
  return program;
}

// What a loop does not wait for is not done before it: after it, the same rounds serve both.
TEST(PlanRounds, ALoopWaitsForNoMoreThanItNeeds) {
  const std::string chain =
      "let a = sum[*](x)\nlet b = sum[*](square(x - a))\nlet c = sum[*](tanh(x * b))\n";
  const std::string loop = "state m = {}\nrepeat 2 {{ m <- m + sum[*](x - m) / 10 }}\n";
  const std::string after =
      "let d = sum[*](exp(x - m))\nlet e = sum[*](exp(x - d))\noutput c\noutput e\n";
  const auto rounds = [&](const std::string& first) {
    return planned("input x : [*]\n" + chain + fmt::format(fmt::runtime(loop), first) + after)
        ->plan->rounds;
  };
  EXPECT_EQ(rounds("0"), 1 + 3);      // the chain of three after the loop, beside d and e
  EXPECT_EQ(rounds("a"), 1 + 1 + 2);  // one of it before
  EXPECT_EQ(rounds("b"), 2 + 1 + 2);
  EXPECT_EQ(rounds("c"), 3 + 1 + 2);
}

// What a careful client reads before it agrees leaves out no round, however deep.
TEST(PlanRounds, EveryRoundIsTold) {
  const auto program = planned(
      "input x : [*]\nstate k = sum[*](x)\n"
      "repeat 2 {\n"
      "  state m = k\n"
      "  repeat 3 {\n"
      "    state v = m\n"
      "    repeat 2 { v <- v + sum[*](tanh(x - v)) }\n"
      "    m <- m + sum[*](sin(x - v))\n"
      "  }\n"
      "  k <- k + sum[*](cos(x - m))\n"
      "}\noutput k\n");
  const std::string text = explain_text(*program->plan);
  const std::string exposure = exposure_text(*program->plan, program->compilation.sources);
  ASSERT_EQ(program->plan->rounds, 4);
  for (const Round* round : rounds_of(*program->plan)) {
    EXPECT_NE(text.find(fmt::format("round {}\n", round->number + 1)), std::string::npos) << text;
    for (const Merge& merge : round->merges) {
      const std::string fold = describe_fold(*program->plan, merge.fold);
      EXPECT_NE(text.find(fold), std::string::npos) << fold;
      EXPECT_NE(exposure.find(fold), std::string::npos) << fold;
    }
  }
}

}  // namespace
}  // namespace starfold::testing

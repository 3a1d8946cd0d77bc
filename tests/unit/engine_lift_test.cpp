// Which blocks run at many clients at once, and which client by client. That both mean the same is a law of
// tests/laws/local_law_test.cpp.
#include "starfold/runtime/engine/lift.h"

#include <gtest/gtest.h>

#include "starfold/compile/compile.h"
#include "starfold/runtime/engine/blocks.h"

namespace starfold::testing {
namespace {

// The block that begins with these statements and ends with `value`, compiled for so many columns.
std::shared_ptr<const engine::Lifted> lifted(const std::string& statements,
                                             const std::string& value, std::int64_t columns = 3) {
  const std::string text = "input x : [*, p]\ninput own : [*client, p]\nlet r = each client {\n" +
                           statements + value + "\n}\nkeep r\noutput s = sum[*](x)\n";
  const Compilation compilation = compile("test.fold", text, {});
  EXPECT_TRUE(compilation.ok()) << text;
  const Plan plan = make_plan(compilation.program, {});
  if (plan.blocks.size() != 1) throw std::invalid_argument("the program has no block");
  return engine::compile_block(plan, plan.blocks.begin()->first, {{"p", columns}}).lifted;
}

TEST(EngineLift, BlocksWithoutLoopsRunAtManyClientsAtOnce) {
  const auto step = lifted("", "own - 0.1 * sum[*](x * exp(x @ own)[:, new])");
  ASSERT_TRUE(step);
  EXPECT_EQ(step->rounds.size(), 1U);
  ASSERT_EQ(step->decoders.size(), 2U);
  EXPECT_EQ(step->decoders[1].round.stores.size(), 1U);

  // Each round waits for what follows the one before.
  const auto rounds = lifted("let m = mean[*](x)\nlet v = mean[*](square(x - m))\n",
                             "solve(eye(p) + outer(v, v), own)");
  ASSERT_TRUE(rounds);
  EXPECT_EQ(rounds->rounds.size(), 2U);

  EXPECT_TRUE(lifted("", "2 * own")) << "without a round";
  EXPECT_TRUE(lifted("", "x - mean[*](x)")) << "a result with records";
}

TEST(EngineLift, OthersRunClientByClient) {
  EXPECT_FALSE(lifted("state b = own\nrepeat 3 { b <- b - sum[*](x) * b }\n", "b"));
  EXPECT_FALSE(lifted("state b = own\nrepeat batches(8, 1) { b <- b - sum[*](x) * b }\n", "b"));
  EXPECT_TRUE(lifted("", "solve(x' @ x + eye(p), own)", 20));
  EXPECT_FALSE(lifted("", "solve(x' @ x + eye(p), own)", 300)) << "enough to do for one client";
}

}  // namespace
}  // namespace starfold::testing

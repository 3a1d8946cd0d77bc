// Sensitivities of known cases, to the digit, and what is said of values without a bound.
#include "starfold/privacy/sensitivity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "starfold/federation/program.h"
#include "starfold/privacy/report.h"

namespace starfold::privacy {
namespace {

class SensitivityTest : public ::testing::Test {
 protected:
  // Of a program that is written without its inputs x : [*, p], y : [*], g : [*] and c : [].
  const Sensitivities& of(const std::string& text, Unit unit = Unit::record,
                          Neighbours neighbours = Neighbours::add_remove, Known known = {}) {
    const std::string inputs = "input x : [*, p]\ninput y : [*]\ninput g : [*]\n";
    ProgramOptions options;
    options.planning.additive = true;
    program_ = compile_program({"test.fold", inputs + text, {}}, options);
    if (!program_->plan) throw std::runtime_error("no program: " + text);
    found_ = sensitivities(*program_->plan, unit, neighbours,
                           with_defaults(program_->plan->program, std::move(known)));
    return found_;
  }

  const Sensitivities& replaced(const std::string& text, Known known = {}) {
    return of(text, Unit::record, Neighbours::replace, std::move(known));
  }

  // L1, L2, Linf of all that the first round releases.
  static std::string joint(const Sensitivities& found) {
    const Norms& norms = found.rounds.at(0).change;
    return norms.l1.to_string() + " " + norms.l2.to_string() + " " + norms.linf.to_string();
  }

  std::shared_ptr<const CompiledProgram> program_;
  Sensitivities found_;
};

TEST_F(SensitivityTest, NumbersOfTheContract) {
  EXPECT_EQ(joint(of("output s = sum[*](clip(y, 0, 10))")), "10 10 10");
  EXPECT_EQ(joint(replaced("output s = sum[*](clip(y, 0, 10))")), "10 10 10");
  EXPECT_EQ(joint(of("output s = sum[*](clip(y, -10, 10))")), "10 10 10");
  EXPECT_EQ(joint(replaced("output s = sum[*](clip(y, -10, 10))")), "20 20 20");
  EXPECT_EQ(joint(of("output n = count[*](y)")), "1 1 1");
  EXPECT_EQ(joint(replaced("output n = count[*](y)")), "0 0 0");
  EXPECT_EQ(joint(of("output n = records(x)")), "1 1 1");
  EXPECT_EQ(joint(of("output s = sum[*](clip_norm(x, 3))")), "3*sqrt(p) 3 3");
  EXPECT_EQ(joint(replaced("output s = sum[*](clip_norm(x, 3))")), "6*sqrt(p) 6 6");
  EXPECT_EQ(joint(of("size k = 4\noutput s = sum[*](one_hot(g, k))")), "1 1 1");
  const Norms hot = replaced("size k = 4\noutput s = sum[*](one_hot(g, k))").rounds[0].change;
  EXPECT_EQ(hot.l1.number(), 2);
  EXPECT_DOUBLE_EQ(*hot.l2.number(), std::sqrt(2.0));
  EXPECT_EQ(hot.linf.number(), 1);
  EXPECT_EQ(of("let z = clip_norm(x, 3)\noutput s = z' @ z").rounds[0].change.l2.number(), 9);
}

TEST_F(SensitivityTest, SquaresOfVectorsNeverPointAway) {
  const Norms change = replaced("let z = clip_norm(x, 3)\noutput s = z' @ z").rounds[0].change;
  EXPECT_DOUBLE_EQ(*change.l2.number(), 9 * std::sqrt(2.0));
}

TEST_F(SensitivityTest, SizesThatNobodySaid) {
  EXPECT_EQ(joint(of("output s = sum[*](clip(x, -1, 1))")), "p sqrt(p) 1");
  EXPECT_EQ(joint(replaced("output s = sum[*](clip(x, -1, 1))")), "2*p 2*sqrt(p) 2");
  EXPECT_EQ(joint(of("output s = sum[*](clip(x, -1, 1))", Unit::record, Neighbours::add_remove,
                     {{{"p", 4}}, {}})),
            "4 2 1");
  EXPECT_EQ(joint(of("output s = sum[*](concat[2](ones(1), clip(x, -1, 1)))")),
            "p + 1 sqrt(p + 1) 1");
  EXPECT_EQ(joint(of("output s = sum[*](y[:, new] * clip(x, -1, 1) / (1 + abs(y[:, new])))")),
            "inf inf inf");
}

TEST_F(SensitivityTest, WhatIsReleasedTogether) {
  const Sensitivities& found =
      of("output m = mean[*](clip(y, 0, 10))\noutput v = var[*](clip(y, 0, 10))");
  ASSERT_EQ(found.rounds.size(), 1U);
  EXPECT_EQ(found.rounds[0].merges.size(), 3U);  // count, sum, sum of squares
  EXPECT_DOUBLE_EQ(*found.rounds[0].change.l1.number(), 111);
  EXPECT_NEAR(*found.rounds[0].change.l2.number(), std::sqrt(1.0 + 100 + 10000), 1e-9);
  EXPECT_DOUBLE_EQ(*found.rounds[0].change.linf.number(), 100);
}

TEST_F(SensitivityTest, ColumnsWithBoundsOfTheirOwn) {
  const std::string clip = "input w : [*, 3]\nlet z = clip(w, [0, -2, 10], [1, 2, 20])\n";
  const auto expect = [](const Sensitivities& found, double l1, double l2, double linf) {
    const Norms& norms = found.rounds.at(0).change;
    EXPECT_NEAR(*norms.l1.number(), l1, 1e-12 * l1);
    EXPECT_NEAR(*norms.l2.number(), l2, 1e-12 * l2);
    EXPECT_NEAR(*norms.linf.number(), linf, 1e-12 * linf);
  };
  expect(of(clip + "output s = sum[*](z)"), 23, std::sqrt(1.0 + 4 + 400), 20);
  expect(replaced(clip + "output s = sum[*](z)"), 15, std::sqrt(1.0 + 16 + 100), 10);
  expect(of(clip + "output s = sum[*]((z - [0, -2, 10]) / [1, 4, 10])"), 3, std::sqrt(3.0), 1);
  expect(of(clip + "output s = sum[*](z[:, 1:2])"), 3, std::sqrt(5.0), 2);
  expect(of(clip + "output s = sum[*, 2](z)"), 23, 23, 23);
  expect(replaced(clip + "output s = sum[*, 2](z)"), 15, 15, 15);
}

TEST_F(SensitivityTest, ClippedGradients) {
  const std::string text =
      "input c : [] = 2\n"
      "state t : [p] = zeros(p)\n"
      "repeat 3 {\n"
      "  let loss = softplus(x @ t) - y * (x @ t)\n"
      "  t <- t - 0.1 * sum[*](clip_norm(grad(loss, t), c))\n"
      "}\n"
      "output t\n";
  const Sensitivities& found = of(text);
  ASSERT_TRUE(found.bounded());
  EXPECT_EQ(joint(found), "2*sqrt(p) 2 2");
  ASSERT_EQ(found.rounds[0].merges[0].from.size(), 1U);
  const Span from = program_->plan->program.graph[found.rounds[0].merges[0].from[0]].span;
  EXPECT_EQ(program_->compilation.sources[0].position(from.begin).line, 8U);
}

// What bounds its states bounds what is computed from them.
TEST_F(SensitivityTest, StatesThatClipThemselves) {
  const std::string text =
      "let z = clip_norm(x, 1)\n"
      "state t : [p] = zeros(p)\n"
      "repeat 3 {\n"
      "  let e = z @ t - clip(y, -1, 1)\n"
      "  t <- clip_norm(t - 0.1 * (z' @ e), 5)\n"
      "}\n"
      "output t\n";
  const Sensitivities& found = of(text);
  ASSERT_TRUE(found.bounded());
  EXPECT_DOUBLE_EQ(*found.rounds[0].change.l2.number(), 6);
}

TEST_F(SensitivityTest, ValuesThatWereReleasedAreNotBounds) {
  EXPECT_FALSE(
      of("let m = mean[*](clip(y, 0, 1))\noutput s = sum[*](clip(y, 0, 1) * m)").bounded());
  const Sensitivities& found = of("let m = sum[*](y > 3)\noutput s = sum[*](clip(y, 0, m))");
  ASSERT_NE(found.unbounded(), nullptr);
  EXPECT_EQ(found.unbounded()->code, Code::UnknownClip);
}

TEST_F(SensitivityTest, BoundsByProducts) {
  EXPECT_DOUBLE_EQ(*of("output s = sum[*](clip(y, -3, 2)[:, new] * clip_norm(x, 2))")
                        .rounds[0]
                        .change.l2.number(),
                   6);
  EXPECT_DOUBLE_EQ(*of("output s = sum[*](outer(clip_norm(x, 2), clip_norm(x, 3)))")
                        .rounds[0]
                        .change.l2.number(),
                   6);
  EXPECT_DOUBLE_EQ(*of("output s = sum[*](clip_norm(x, 2) @ eye(p))", Unit::record,
                       Neighbours::add_remove, {{{"p", 3}}, {}})
                        .rounds[0]
                        .change.l2.number(),
                   2);
  EXPECT_DOUBLE_EQ(*of("output s = sum[*](softmax[2](x))").rounds[0].change.l1.number(), 1);
  EXPECT_DOUBLE_EQ(*of("output s = sum[*](square(clip_norm(x, 2)))").rounds[0].change.l1.number(),
                   4);
  EXPECT_DOUBLE_EQ(*of("output s = sum[*](norm[2](clip_norm(x, 2)))").rounds[0].change.l2.number(),
                   2);
  EXPECT_DOUBLE_EQ(
      *of("output s = sum[*](where(y > 0, clip(y, 0, 4), 0))").rounds[0].change.l2.number(), 4);
  EXPECT_DOUBLE_EQ(*of("output s = sum[*](y > 3)").rounds[0].change.l2.number(), 1);
}

// Factors that depend on each other, as in variances and the weights of logistic regression.
TEST_F(SensitivityTest, ProductsWithThemselves) {
  const auto l2 = [&](const std::string& text) {
    return std::pair(*of("output s = " + text).rounds[0].change.l2.number(),
                     *replaced("output s = " + text).rounds[0].change.l2.number());
  };
  const auto expect = [&](const std::string& text, double added, double other) {
    const auto [add, replace] = l2(text);
    EXPECT_NEAR(add, added, 1e-9 * added) << text;
    EXPECT_NEAR(replace, other, 1e-9 * other) << text;
  };
  expect("sum[*](clip(y, -3, 3) * clip(y, -3, 3))", 9, 9);
  expect("sum[*](clip(y, 2, 3) * clip(y, 2, 3))", 9, 5);
  expect("sum[*](sigmoid(y) * (1 - sigmoid(y)))", .25, .25);
  expect("sum[*]((1 - clip(y, 0.6, 2)) * clip(y, 0.6, 2))", 2, 2.24);
  expect("sum[*](clip(y, -3, 2) ^ 3)", 27, 35);
  expect("sum[*](clip(y, -3, -2) ^ 2)", 9, 5);
  const std::string weighted =
      "clip_norm(x, 2)' @ ((sigmoid(y) * (1 - sigmoid(y)))[:, new] * clip_norm(x, 2))";
  expect(weighted, 1, std::sqrt(2.0));
  expect("clip_norm(x, 2)' @ (tanh(y)[:, new] * clip_norm(x, 2))", 4, 8);  // of either sign
  expect("clip_norm(x, 2)' @ (clip(x, 0, 1) * clip_norm(x, 2))", 4, 8);    // of each entry
}

TEST_F(SensitivityTest, FoldsThatBecomeSums) {
  EXPECT_DOUBLE_EQ(*of("output s = norm[*](clip(y, -3, 2))").rounds[0].change.l2.number(), 9);
  EXPECT_NEAR(*of("output s = logsumexp[*](clip(y, -3, 2))").rounds[0].change.l2.number(), 1,
              1e-12);
  EXPECT_DOUBLE_EQ(*of("output s = any[*](y > 2)").rounds[0].change.l2.number(), 1);
  EXPECT_DOUBLE_EQ(*of("output s = all[*](y > 2)").rounds[0].change.l2.number(), 1);
  EXPECT_NEAR(*of("output s = cov[*](clip_norm(x, 2))").rounds[0].change.l2.number(),
              std::sqrt(1.0 + 4 + 16), 1e-12);
  EXPECT_FALSE(of("output s = logsumexp[*](y)").bounded());
}

// --- refusals

TEST_F(SensitivityTest, NamesWhatHasNoBound) {
  const auto refused = [&](const std::string& text) { return *of(text).unbounded(); };
  EXPECT_EQ(refused("output s = sum[*](y)").expr, "y");
  EXPECT_NE(refused("output s = sum[*](y)").help.find("clip(y, lo, hi)"), std::string::npos);
  EXPECT_NE(refused("output s = sum[*](x)").help.find("clip_norm(x, c)"), std::string::npos);
  EXPECT_EQ(refused("output s = sum[*](exp(2 * y))").expr, "y");
  EXPECT_EQ(refused("let z = log(y)\noutput s = sum[*](z)").expr, "z");
  EXPECT_EQ(refused("output s = max[*](y)").code, Code::NotASum);
  EXPECT_EQ(refused("output s = prod[*](y)").code, Code::NotASum);
  EXPECT_EQ(refused("input c : []\noutput s = sum[*](clip_norm(x, c))").code, Code::UnknownClip);
  EXPECT_EQ(
      refused(
          "state t : [p] = zeros(p)\nrepeat 2 { t <- t + clip_norm(x, 1)' @ (x @ t) }\noutput t")
          .code,
      Code::UnboundedTerm);
}

TEST_F(SensitivityTest, ClientsMayHoldAnyNumberOfRecords) {
  const Sensitivities& found = of("output s = sum[*](clip(y, 0, 1))", Unit::client);
  ASSERT_NE(found.unbounded(), nullptr);
  EXPECT_EQ(found.unbounded()->code, Code::UnboundedClient);
  EXPECT_TRUE(of("output s = sum[*](zeros_like(y))", Unit::client).bounded());
}

TEST_F(SensitivityTest, ValuesGivenBeforeTheRun) {
  const std::string text = "input c : []\noutput s = sum[*](clip_norm(x, c))";
  EXPECT_FALSE(of(text).bounded());
  EXPECT_EQ(of(text, Unit::record, Neighbours::add_remove, {{}, {{"c", Tensor::scalar(3)}}})
                .rounds[0]
                .change.l2.number(),
            3);
  const std::string other = "input c : [] = 5\noutput s = sum[*](clip_norm(x, c))";
  EXPECT_EQ(of(other).rounds[0].change.l2.number(), 5);
  EXPECT_EQ(of(other, Unit::record, Neighbours::add_remove, {{}, {{"c", Tensor::scalar(3)}}})
                .rounds[0]
                .change.l2.number(),
            3);
}

// A value whose shape does not fit the sizes is the run's business, and no reason to crash.
TEST_F(SensitivityTest, ValuesOfWrongShapes) {
  const std::string text = "input c : [p]\noutput s = sum[*](clip(x, -c, c))";
  for (const std::int64_t n : {1, 2, 5}) {
    const Known known{{{"p", 3}}, {{"c", Tensor({n}, 2.0)}}};
    EXPECT_TRUE(of(text, Unit::record, Neighbours::add_remove, known).bounded());
    EXPECT_TRUE(of(text, Unit::record, Neighbours::add_remove, {{}, known.inputs}).bounded());
  }
}

}  // namespace
}  // namespace starfold::privacy

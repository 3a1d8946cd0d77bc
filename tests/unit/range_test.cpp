// Ranges: where a row says its result lies, it lies, whatever operands from their ranges it is given.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "starfold/ops/standard.h"

namespace starfold {
namespace {

constexpr std::int64_t elements = 6;

// Rows that take vectors of one length, and give a vector or, with `folds`, one number.
bool takes_vectors(const Op& op) {
  if (op.first_size_arg >= 0 || op.name == "cov" || op.name == "quantile" || op.name == "records")
    return false;
  switch (op.family) {
    case Family::unary:
    case Family::binary:
    case Family::comparison:
    case Family::aggregation:
      return true;
    default:
      return op.name == "where" || op.name == "clip" || op.name == "clip_norm" ||
             op.name == "softmax" || op.name == "log_softmax" || op.name == "zeros_like" ||
             op.name == "ones_like" || op.name == "stop_gradient" || op.name == "sort" ||
             op.name.ends_with("_cdf") || op.name.ends_with("_sf");
  }
}

class Ranges : public ::testing::Test {
 protected:
  double uniform(double lo, double hi) {
    return std::uniform_real_distribution<double>(lo, hi)(random_);
  }

  // Wide and narrow ones, with and without zero; degrees of freedom and bounds of norms are positive.
  Interval random_interval(const Op& op, std::size_t operand) {
    if (operand > 0 && (op.family == Family::shared_only || op.name == "clip_norm"))
      return {1, uniform(1, 5)};
    const double size = std::pow(10, uniform(-3, 2));
    const double a = uniform(-size, size);
    const double b = uniform(-size, size);
    return {std::min(a, b), std::max(a, b)};
  }

  // Both ends occur.
  Tensor random_tensor(Interval within, bool scalar) {
    Tensor tensor(scalar ? Shape{} : Shape{elements});
    for (double& x : tensor.data) {
      const double where = uniform(0, 1);
      x = where < 0.2 ? within.lo : where > 0.8 ? within.hi : uniform(within.lo, within.hi);
    }
    return tensor;
  }

  void check(const Op& op) {
    std::vector<Interval> intervals;
    std::vector<Tensor> tensors;
    for (int i = 0; i < op.max_args; ++i) {
      intervals.push_back(random_interval(op, static_cast<std::size_t>(i)));
      tensors.push_back(random_tensor(intervals.back(), i == 1 && op.name == "clip_norm"));
    }
    Application application;
    for (const Tensor& tensor : tensors) application.args.push_back(&tensor);
    application.record_axes.resize(tensors.size());
    const bool folds = op.family == Family::aggregation;
    if (folds || op.axes == Op::Axes::required) application.axes = {0};
    const Interval range = op.range(intervals, folds ? elements : 1);
    const Tensor result = op.meaning(application).front();
    for (const double x : result.data) {
      if (std::isnan(x)) continue;
      EXPECT_TRUE(x >= range.lo && x <= range.hi)
          << op.name << " gives " << x << ", outside " << range.lo << " to " << range.hi;
    }
  }

  std::mt19937_64 random_{20};
};

TEST_F(Ranges, AreNeverTooNarrow) {
  int rows = 0;
  for (const auto& op : standard_signature().ops()) {
    if (!op->range || !takes_vectors(*op)) continue;
    ++rows;
    for (int i = 0; i < 2000 && !HasFailure(); ++i) check(*op);
  }
  EXPECT_GE(rows, 60);
}

// Every map and aggregation has a rule; where nothing is known, it says so.
TEST_F(Ranges, EveryMapAndAggregationHasOne) {
  for (const auto& op : standard_signature().ops()) {
    const bool must = op->family != Family::shared_only && op->family != Family::differentiation;
    EXPECT_TRUE(!must || op->range) << op->name;
  }
}

// A truth value is 0 or 1.
TEST_F(Ranges, TruthValuesAreUnits) {
  for (const auto& op : standard_signature().ops()) {
    if (!op->truth) continue;
    const std::vector<Interval> operands(3);
    EXPECT_EQ(op->range(operands, 1), (Interval{0, 1})) << op->name;
  }
}

}  // namespace
}  // namespace starfold

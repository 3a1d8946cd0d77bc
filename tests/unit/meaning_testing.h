// Applying meanings in tests, and comparing tensors with figures.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "starfold/base/error.h"
#include "starfold/ops/meaning.h"

namespace starfold::testing {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// What an application carries besides its operands; no record axes means all are shared.
struct With {
  std::vector<std::optional<std::size_t>> record_axes = {};
  std::vector<std::int64_t> axes = {};
  std::vector<std::int64_t> sizes = {};
  std::vector<ConcreteSlice> slices = {};
};

inline std::vector<Tensor> apply(const Meaning& meaning, const std::vector<Tensor>& args,
                                 With with = {}) {
  Application a;
  for (const Tensor& arg : args) a.args.push_back(&arg);
  a.record_axes = std::move(with.record_axes);
  a.record_axes.resize(args.size());
  a.axes = std::move(with.axes);
  a.sizes = std::move(with.sizes);
  a.slices = std::move(with.slices);
  std::vector<Tensor> results = meaning(a);
  for (const Tensor& result : results) EXPECT_EQ(element_count(result.shape), result.count());
  return results;
}

// The only result.
inline Tensor apply1(const Meaning& meaning, const std::vector<Tensor>& args, With with = {}) {
  const std::vector<Tensor> results = apply(meaning, args, std::move(with));
  EXPECT_EQ(results.size(), 1u);
  return results.at(0);
}

inline Op row(const std::vector<Op>& ops, const std::string& name) {
  for (const Op& op : ops) {
    if (op.name == name) return op;
  }
  throw std::invalid_argument("no row named " + name);
}

inline Tensor vec(std::vector<double> values) {
  const auto n = static_cast<std::int64_t>(values.size());
  return Tensor({n}, std::move(values));
}

// Whether two numbers agree to a relative tolerance; nan agrees with nan.
inline bool close(double got, double want, double tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || tolerance == 0) return got == want;
  return std::fabs(got - want) <= tolerance * std::max(std::fabs(want), 1e-300);
}

inline void expect_tensor(const Tensor& got, const Shape& shape, const std::vector<double>& data,
                          double tolerance = 0) {
  EXPECT_EQ(got.shape, shape);
  ASSERT_EQ(got.data.size(), data.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    EXPECT_TRUE(close(got.data[i], data[i], tolerance))
        << "entry " << i << ": got " << got.data[i] << ", want " << data[i];
  }
}

// The message of the RunError that `action` must throw.
template <typename Action>
std::string run_error_of(const Action& action) {
  try {
    action();
  } catch (const RunError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no RunError";
  return "";
}

}  // namespace starfold::testing

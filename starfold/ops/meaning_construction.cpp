// Shared-only construction and arrangement.
#include <algorithm>
#include <cmath>

#include "starfold/base/error.h"
#include "starfold/ops/meaning.h"
#include "starfold/tensor/compensated_sum.h"
#include "starfold/tensor/gather.h"

namespace starfold::meaning {
namespace {

Tensor filled(const Application& a, double value, const char* op) {
  require_reasonable(a.sizes, op);
  return Tensor(a.sizes, value);
}

// A number and the part of it that a double cannot hold.
struct Double2 {
  double high = 0;
  double low = 0;
};

Double2 exact_product(double a, double b) {
  const double high = a * b;
  return {high, std::fma(a, b, -high)};
}

Double2 exact_sum(double a, double b) {
  const double high = a + b;
  const double from_b = high - a;
  return {high, (a - (high - from_b)) + (b - from_b)};
}

// (first * (steps - i) + last * i) / steps, rounded once: exact wherever the point is a double. The ends
// are of moderate size, so that nothing overflows or vanishes on the way.
double point_between(double first, double last, double i, double steps) {
  const Double2 from_first = exact_product(first, steps - i);
  const Double2 from_last = exact_product(last, i);
  const Double2 sum = exact_sum(from_first.high, from_last.high);
  const Double2 rest = exact_sum(from_first.low, from_last.low);
  const Double2 whole = exact_sum(sum.high, sum.low + rest.high);
  const double low = whole.low + rest.low;
  const double quotient = whole.high / steps;
  return quotient + (std::fma(-quotient, steps, whole.high) + low) / steps;
}

Tensor diagonal_of(const Tensor& matrix) {
  if (matrix.rank() != 2) throw Bug("diag: the operand is neither a vector nor a matrix");
  const std::int64_t length = std::min(matrix.shape[0], matrix.shape[1]);
  return gather(matrix, {length}, {matrix.shape[1] + 1});
}

}  // namespace

Results zeros(const Application& a) { return {filled(a, 0.0, "zeros")}; }

Results ones(const Application& a) { return {filled(a, 1.0, "ones")}; }

Results full(const Application& a) { return {filled(a, a.arg(0).item(), "full")}; }

Results eye(const Application& a) {
  const std::int64_t n = a.sizes.at(0);
  require_reasonable({n, n}, "eye");
  Tensor result(Shape{n, n});
  for (std::int64_t i = 0; i < n; ++i) result.data[i * n + i] = 1;
  return {std::move(result)};
}

// Both ends are exact, and so is every point that is a double: steps that are only rounded would miss
// whole numbers. One point is the first end, as in NumPy.
Results linspace(const Application& a) {
  require_reasonable(a.sizes, "linspace");
  const double first = a.arg(0).item();
  const double last = a.arg(1).item();
  const std::int64_t n = a.sizes.at(0);
  Tensor result(Shape{n}, first);
  if (n < 2) return {std::move(result)};
  const auto steps = static_cast<double>(n - 1);
  const double top = std::max(std::fabs(first), std::fabs(last));
  // By a power of two, which rounds nothing that counts beside the larger end.
  const int exponent = top > 0 && std::isfinite(first) && std::isfinite(last) ? std::ilogb(top) : 0;
  const double from = std::scalbn(first, -exponent);
  const double to = std::scalbn(last, -exponent);
  for (std::int64_t i = 1; i + 1 < n; ++i) {
    const auto at = static_cast<double>(i);
    const double point = std::isfinite(from) && std::isfinite(to)
                             ? std::scalbn(point_between(from, to, at, steps), exponent)
                             : first + last;  // inf or nan
    result.data[static_cast<std::size_t>(i)] = point;
  }
  result.data.back() = last;
  return {std::move(result)};
}

Results sort(const Application& a) {
  Tensor result = a.arg(0);
  if (result.rank() == 0) return {std::move(result)};
  for_each_line(result, result.rank() - 1, [](std::span<double> line) {
    const auto numbers =
        std::partition(line.begin(), line.end(), [](double x) { return !std::isnan(x); });
    std::sort(line.begin(), numbers);
  });
  return {std::move(result)};
}

Results cumsum(const Application& a) {
  Tensor result = a.arg(0);
  for_each_line(result, static_cast<std::size_t>(a.axes.at(0)), [](std::span<double> line) {
    CompensatedSum sum;
    for (double& x : line) {
      sum.add(x);
      x = sum.value();
    }
  });
  return {std::move(result)};
}

Results diag(const Application& a) {
  const Tensor& operand = a.arg(0);
  if (operand.rank() != 1) return {diagonal_of(operand)};
  const std::int64_t n = operand.shape[0];
  require_reasonable({n, n}, "diag");
  Tensor result(Shape{n, n});
  for (std::int64_t i = 0; i < n; ++i) result.data[i * n + i] = operand.data[i];
  return {std::move(result)};
}

Results trace_of(const Application& a) {
  return {Tensor::scalar(fold_sum(diagonal_of(a.arg(0)).data))};
}

}  // namespace starfold::meaning

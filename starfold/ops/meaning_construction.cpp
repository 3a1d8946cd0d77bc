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

// One point is the first end, as in NumPy.
Results linspace(const Application& a) {
  require_reasonable(a.sizes, "linspace");
  const double first = a.arg(0).item();
  const double last = a.arg(1).item();
  const std::int64_t n = a.sizes.at(0);
  Tensor result(Shape{n}, first);
  for (std::int64_t i = 1; i < n; ++i) {
    result.data[i] = std::lerp(first, last, static_cast<double>(i) / static_cast<double>(n - 1));
  }
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

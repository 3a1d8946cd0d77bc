// Element-wise meanings: maps of one, two and three operands after broadcasting (def:broadcast-map).
#include <algorithm>

#include "starfold/base/error.h"
#include "starfold/ops/meaning.h"
#include "starfold/tensor/gather.h"

namespace starfold::meaning {
namespace {

Shape common_shape(const Application& a) {
  Shape shape;
  for (const Tensor* arg : a.args) shape = broadcast_shapes(shape, arg->shape);
  return shape;
}

// Where each entry of the common shape lies in the operand.
std::vector<std::int64_t> places_of(const Tensor& operand, const Shape& shape) {
  return places(shape, broadcast_strides(operand.shape, shape));
}

}  // namespace

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape shape(rank, 1);
  for (std::size_t i = 1; i <= rank; ++i) {  // from the right
    const std::int64_t m = i <= a.size() ? a[a.size() - i] : 1;
    const std::int64_t n = i <= b.size() ? b[b.size() - i] : 1;
    if (m != n && m != 1 && n != 1) {
      throw Bug("cannot broadcast " + to_string(a) + " with " + to_string(b));
    }
    shape[rank - i] = m == 1 ? n : m;
  }
  return shape;
}

Tensor broadcast_to(const Tensor& tensor, const Shape& shape) {
  return gather(tensor, shape, broadcast_strides(tensor.shape, shape));
}

Results broadcast(const Application& a) { return {broadcast_to(a.arg(0), common_shape(a))}; }

Results map_unary(double (*map)(double), const Application& a) {
  Tensor result = a.arg(0);
  for (double& x : result.data) x = map(x);
  return {std::move(result)};
}

Results map_binary(double (*map)(double, double), const Application& a) {
  Tensor result(common_shape(a));
  const auto x = places_of(a.arg(0), result.shape);
  const auto y = places_of(a.arg(1), result.shape);
  for (std::size_t i = 0; i < result.data.size(); ++i) {
    result.data[i] = map(a.arg(0).data[x[i]], a.arg(1).data[y[i]]);
  }
  return {std::move(result)};
}

Results map_ternary(double (*map)(double, double, double), const Application& a) {
  Tensor result(common_shape(a));
  const auto x = places_of(a.arg(0), result.shape);
  const auto y = places_of(a.arg(1), result.shape);
  const auto z = places_of(a.arg(2), result.shape);
  for (std::size_t i = 0; i < result.data.size(); ++i) {
    result.data[i] = map(a.arg(0).data[x[i]], a.arg(1).data[y[i]], a.arg(2).data[z[i]]);
  }
  return {std::move(result)};
}

}  // namespace starfold::meaning

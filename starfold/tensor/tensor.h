// Ordinary tensors: a shape and its doubles in row-major order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace starfold {

using Shape = std::vector<std::int64_t>;

// The number of index tuples of a shape: 1 for the empty shape (def:index-sets-axis-deletion).
inline std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

struct Tensor {
  Shape shape;
  std::vector<double> data;

  Tensor() : data(1, 0.0) {}  // the scalar 0
  explicit Tensor(Shape s, double fill = 0.0)
      : shape(std::move(s)), data(static_cast<std::size_t>(element_count(shape)), fill) {}
  Tensor(Shape s, std::vector<double> values) : shape(std::move(s)), data(std::move(values)) {}
  static Tensor scalar(double value) { return Tensor(Shape{}, std::vector<double>{value}); }

  std::size_t rank() const { return shape.size(); }
  std::int64_t count() const { return static_cast<std::int64_t>(data.size()); }
  // The value of a scalar.
  double item() const { return data.front(); }
};

}  // namespace starfold

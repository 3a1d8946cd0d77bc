// The samples that a fold of axes reduces to one number each.
#pragma once

#include <span>
#include <vector>

#include "starfold/tensor/tensor.h"

namespace starfold {

// A tensor with the kept axes in front and the folded ones merged behind them: one sample per entry of the
// result, its numbers side by side in row-major order.
struct Samples {
  Shape kept;
  std::size_t length = 1;  // numbers per sample
  std::vector<double> data;

  std::size_t count() const { return static_cast<std::size_t>(element_count(kept)); }
  std::span<const double> operator[](std::size_t i) const {
    return {data.data() + i * length, length};
  }
};

Samples samples(const Tensor& tensor, std::vector<std::int64_t> folded_axes);

}  // namespace starfold

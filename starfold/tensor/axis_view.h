// A tensor seen along one axis, in most cases its record axis: `outer` parts, each of `length` slices of
// `inner` numbers that lie side by side. One record is one slice of every part.
#pragma once

#include <span>

#include "starfold/tensor/tensor.h"

namespace starfold {

struct AxisView {
  std::size_t outer = 1;
  std::size_t length = 1;
  std::size_t inner = 1;

  AxisView(const Shape& shape, std::size_t axis) : length(static_cast<std::size_t>(shape[axis])) {
    for (std::size_t k = 0; k < axis; ++k) outer *= static_cast<std::size_t>(shape[k]);
    for (std::size_t k = axis + 1; k < shape.size(); ++k)
      inner *= static_cast<std::size_t>(shape[k]);
  }

  // How many numbers one slice of all parts has: the entries of a cell.
  std::size_t cells() const { return outer * inner; }
  // Where entry `cell` of slice `at` lies in the data.
  std::size_t place(std::size_t at, std::size_t cell) const {
    return (cell / inner * length + at) * inner + cell % inner;
  }
  // The slice that entry i of the data belongs to.
  std::size_t slice_of(std::size_t i) const { return i / inner % length; }
  // Where slice `at` of part `part` begins; `inner` numbers follow.
  std::size_t slice(std::size_t part, std::size_t at) const { return (part * length + at) * inner; }
};

// Tensors that differ in the length of this axis only, one after the other along it.
Tensor join_along(std::size_t axis, const std::vector<const Tensor*>& parts);

// A tensor without the slices along this axis that are marked.
Tensor keep_slices(const Tensor& tensor, std::size_t axis, const std::vector<char>& dropped);

// The slices of a tensor along this axis from `first` to before `last`.
Tensor slices_between(const Tensor& tensor, std::size_t axis, std::int64_t first,
                      std::int64_t last);

// Slices of a tensor along this axis, in this order.
Tensor pick_slices(const Tensor& tensor, std::size_t axis, std::span<const std::uint32_t> slices);

}  // namespace starfold

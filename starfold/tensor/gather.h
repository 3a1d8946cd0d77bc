// Row-major strides and walks over them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "starfold/tensor/tensor.h"

namespace starfold {

// How far apart neighbours along each axis are in the data.
using Strides = std::vector<std::int64_t>;
Strides row_major(const Shape& shape);
// The strides that read a tensor of shape `from` as if it had been broadcast to `to`: 0 where it
// repeats. Throws Bug when it does not broadcast.
Strides broadcast_strides(const Shape& from, const Shape& to);

// The places start + <index, strides> for all index tuples of the shape, in row-major order.
std::vector<std::int64_t> places(const Shape& shape, const Strides& strides,
                                 std::int64_t start = 0);
// The tensor of the entries at these places. Permutation, broadcasting and slicing are gathers
// with different strides.
Tensor gather(const Tensor& source, const Shape& shape, const Strides& strides,
              std::int64_t start = 0);

// Result axis i is input axis order[i].
Tensor permuted(const Tensor& tensor, const std::vector<std::size_t>& order);
// The tensor with one axis moved to the front.
Tensor axis_first(const Tensor& tensor, std::size_t axis);

// Lets `change` rewrite each line of entries along an axis.
void for_each_line(Tensor& tensor, std::size_t axis,
                   const std::function<void(std::span<double>)>& change);

// Throws RunError when a tensor of this shape cannot reasonably be made.
void require_reasonable(const Shape& shape, const char* op);

std::string to_string(const Shape& shape);  // [3, 4]

}  // namespace starfold

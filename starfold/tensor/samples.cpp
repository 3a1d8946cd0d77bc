#include "starfold/tensor/samples.h"

#include <algorithm>

#include "starfold/tensor/gather.h"

namespace starfold {

Samples samples(const Tensor& tensor, std::vector<std::int64_t> folded_axes) {
  std::sort(folded_axes.begin(), folded_axes.end());  // row-major, however they were written
  Samples result;
  std::vector<std::size_t> order;
  for (std::size_t axis = 0; axis < tensor.rank(); ++axis) {
    if (std::binary_search(folded_axes.begin(), folded_axes.end(), static_cast<std::int64_t>(axis)))
      continue;
    order.push_back(axis);
    result.kept.push_back(tensor.shape[axis]);
  }
  for (const std::int64_t axis : folded_axes) {
    order.push_back(static_cast<std::size_t>(axis));
    result.length *= static_cast<std::size_t>(tensor.shape.at(static_cast<std::size_t>(axis)));
  }
  result.data = permuted(tensor, order).data;
  return result;
}

}  // namespace starfold

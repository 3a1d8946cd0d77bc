#include "starfold/tensor/axis_view.h"

namespace starfold {

Tensor join_along(std::size_t axis, const std::vector<const Tensor*>& parts) {
  Tensor whole;
  whole.shape = parts.front()->shape;
  whole.shape[axis] = 0;
  for (const Tensor* part : parts) whole.shape[axis] += part->shape[axis];
  whole.data.clear();
  whole.data.reserve(static_cast<std::size_t>(element_count(whole.shape)));
  const std::size_t outer = AxisView(whole.shape, axis).outer;
  for (std::size_t o = 0; o < outer; ++o) {
    for (const Tensor* part : parts) {
      const AxisView view(part->shape, axis);
      const auto begin = part->data.begin() + static_cast<std::ptrdiff_t>(view.slice(o, 0));
      whole.data.insert(whole.data.end(), begin,
                        begin + static_cast<std::ptrdiff_t>(view.length * view.inner));
    }
  }
  return whole;
}

Tensor keep_slices(const Tensor& tensor, std::size_t axis, const std::vector<char>& dropped) {
  const AxisView view(tensor.shape, axis);
  Tensor kept;
  kept.shape = tensor.shape;
  kept.shape[axis] = 0;
  for (const char drop : dropped) kept.shape[axis] += drop == 0 ? 1 : 0;
  kept.data.clear();
  kept.data.reserve(static_cast<std::size_t>(element_count(kept.shape)));
  for (std::size_t o = 0; o < view.outer; ++o) {
    for (std::size_t at = 0; at < view.length; ++at) {
      const auto begin = tensor.data.begin() + static_cast<std::ptrdiff_t>(view.slice(o, at));
      if (dropped[at] == 0)
        kept.data.insert(kept.data.end(), begin, begin + static_cast<std::ptrdiff_t>(view.inner));
    }
  }
  return kept;
}

Tensor slices_between(const Tensor& tensor, std::size_t axis, std::int64_t first,
                      std::int64_t last) {
  const AxisView view(tensor.shape, axis);
  Tensor part;
  part.shape = tensor.shape;
  part.shape[axis] = last - first;
  part.data.clear();
  part.data.reserve(static_cast<std::size_t>(element_count(part.shape)));
  const auto place = [&](std::size_t o, std::int64_t at) {
    return tensor.data.begin() +
           static_cast<std::ptrdiff_t>(view.slice(o, static_cast<std::size_t>(at)));
  };
  for (std::size_t o = 0; o < view.outer; ++o)
    part.data.insert(part.data.end(), place(o, first), place(o, last));
  return part;
}

Tensor pick_slices(const Tensor& tensor, std::size_t axis, std::span<const std::uint32_t> slices) {
  const AxisView view(tensor.shape, axis);
  Tensor picked;
  picked.shape = tensor.shape;
  picked.shape[axis] = static_cast<std::int64_t>(slices.size());
  picked.data.clear();
  picked.data.reserve(static_cast<std::size_t>(element_count(picked.shape)));
  for (std::size_t o = 0; o < view.outer; ++o) {
    for (const std::uint32_t at : slices) {
      const auto begin = tensor.data.begin() + static_cast<std::ptrdiff_t>(view.slice(o, at));
      picked.data.insert(picked.data.end(), begin, begin + static_cast<std::ptrdiff_t>(view.inner));
    }
  }
  return picked;
}

}  // namespace starfold

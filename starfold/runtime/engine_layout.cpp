#include "starfold/runtime/engine_layout.h"

namespace starfold::engine {

Buffer in_column_blocks(const Tensor& tensor, std::size_t record_axis, const Cut& cut) {
  std::size_t outer = 1;
  for (std::size_t k = 0; k < record_axis; ++k) outer *= static_cast<std::size_t>(tensor.shape[k]);
  std::size_t inner = 1;
  for (std::size_t k = record_axis + 1; k < tensor.rank(); ++k)
    inner *= static_cast<std::size_t>(tensor.shape[k]);
  const std::size_t cells = outer * inner;
  Buffer result(cut.blocks * cells * cut.stride);
  for (std::size_t b = 0; b < cut.blocks; ++b) {
    double* to = result.data() + b * cells * cut.stride;
    const std::size_t n = cut.length(b);
    for (std::size_t o = 0; o < outer; ++o) {
      const double* from = tensor.data.data() + (o * cut.records + b * cut.block) * inner;
      // A few records at a time, so that what is read stays in the cache until all columns have it.
      for (std::size_t first = 0; first < n; first += kernels::kPad) {
        const std::size_t last = std::min(first + kernels::kPad, n);
        for (std::size_t k = 0; k < inner; ++k) {
          double* column = to + (o * inner + k) * cut.stride;
          for (std::size_t i = first; i < last; ++i) column[i] = from[i * inner + k];
        }
      }
    }
  }
  return result;
}

}  // namespace starfold::engine

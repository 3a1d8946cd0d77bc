#include "starfold/runtime/engine_layout.h"

#include <thread>
#include <vector>

namespace starfold::engine {
namespace {

// How a tensor's records are spread over it: `outer` parts, each with `inner` numbers per record.
struct Spread {
  std::size_t outer = 1;
  std::size_t inner = 1;
  std::size_t cells() const { return outer * inner; }
};

void lay_out(const Tensor& tensor, const Spread& spread, const Cut& cut, std::size_t b,
             double* to) {
  const std::size_t n = cut.length(b);
  const std::size_t inner = spread.inner;
  for (std::size_t o = 0; o < spread.outer; ++o) {
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
  for (std::size_t k = 0; k < spread.cells(); ++k)
    std::fill(to + k * cut.stride + n, to + (k + 1) * cut.stride, 0.0);
}

}  // namespace

Buffer in_column_blocks(const Tensor& tensor, std::size_t record_axis, const Cut& cut,
                        int threads) {
  Spread spread;
  for (std::size_t k = 0; k < record_axis; ++k)
    spread.outer *= static_cast<std::size_t>(tensor.shape[k]);
  for (std::size_t k = record_axis + 1; k < tensor.rank(); ++k)
    spread.inner *= static_cast<std::size_t>(tensor.shape[k]);
  const std::size_t block = spread.cells() * cut.stride;
  Buffer result;
  if (cut.blocks == 0) return result;
  result.allocate(cut.blocks * block);
  const auto lay_out_blocks = [&](std::size_t first, std::size_t last) {
    for (std::size_t b = first; b < last; ++b)
      lay_out(tensor, spread, cut, b, result.data() + b * block);
  };
  constexpr std::size_t worth_a_thread = 500'000;  // numbers
  const std::size_t parts = std::clamp<std::size_t>(cut.blocks * block / worth_a_thread, 1,
                                                    static_cast<std::size_t>(std::max(threads, 1)));
  {
    std::vector<std::jthread> workers;
    for (std::size_t part = 1; part < parts; ++part)
      workers.emplace_back(lay_out_blocks, part * cut.blocks / parts,
                           (part + 1) * cut.blocks / parts);
    lay_out_blocks(0, cut.blocks / parts);
  }
  return result;
}

}  // namespace starfold::engine

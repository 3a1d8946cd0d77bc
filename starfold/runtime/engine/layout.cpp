#include "starfold/runtime/engine/layout.h"

#include <utility>

#include "starfold/base/parallel.h"
#include "starfold/tensor/axis_view.h"

namespace starfold::engine {
namespace {

void lay_out(const Tensor& tensor, const AxisView& spread, const Cut& cut, std::size_t b,
             double* to) {
  const std::size_t n = cut.length(b);
  const std::size_t inner = spread.inner;
  for (std::size_t o = 0; o < spread.outer; ++o) {
    const double* from = tensor.data.data() + (o * cut.records + cut.start(b)) * inner;
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

void Cut::make_chunks() {
  constexpr std::size_t most_chunks = 64;
  chunk = std::max(least_blocks, (blocks + most_chunks - 1) / most_chunks);
  chunks = (blocks + chunk - 1) / chunk;
}

Cut::Cut(const std::vector<std::int64_t>& ends, std::int64_t block_records) {
  auto made = std::make_shared<Shared>();
  std::int64_t most = 0;
  std::int64_t first = 0;
  for (const std::int64_t end : ends) most = std::max(most, end - std::exchange(first, end));
  records = static_cast<std::size_t>(first);
  block = std::min(static_cast<std::size_t>(most),
                   static_cast<std::size_t>(std::max<std::int64_t>(block_records, 1)));
  stride = kernels::padded(block);
  std::size_t at = 0;
  for (const std::int64_t end : ends) {
    made->first_blocks.push_back(made->starts.size());
    for (const auto last = static_cast<std::size_t>(end); at < last;
         at = std::min(at + block, last))
      made->starts.push_back(at);
  }
  blocks = made->starts.size();
  made->first_blocks.push_back(blocks);
  made->starts.push_back(at);
  make_chunks();
  shared = std::move(made);
}

Cut Cut::of_client(std::size_t client) const {
  const std::size_t first = shared->starts[shared->first_blocks[client]];
  const std::size_t end = shared->starts[shared->first_blocks[client + 1]];
  // Most clients of many have few records, and this is asked for each of them every time.
  const bool one = end - first <= block;
  Cut own(one ? 0 : static_cast<std::int64_t>(end - first),
          static_cast<std::int64_t>(std::max<std::size_t>(block, 1)));
  if (one && end > first) {
    own.records = own.block = end - first;
    own.blocks = own.chunk = own.chunks = 1;
  }
  own.stride = stride;
  return own;
}

Buffer in_column_blocks(const Tensor& tensor, std::size_t record_axis, const Cut& cut,
                        int threads) {
  const AxisView spread(tensor.shape, record_axis);
  const std::size_t block = spread.cells() * cut.stride;
  Buffer result;
  if (cut.blocks == 0) return result;
  result.allocate(cut.blocks * block);
  constexpr std::size_t worth_a_thread = 500'000;  // numbers
  const std::size_t parts = std::clamp<std::size_t>(cut.blocks * block / worth_a_thread, 1,
                                                    static_cast<std::size_t>(std::max(threads, 1)));
  in_parallel(parts, parts, [&](std::size_t part) {
    const std::size_t last = (part + 1) * cut.blocks / parts;
    for (std::size_t b = part * cut.blocks / parts; b < last; ++b)
      lay_out(tensor, spread, cut, b, result.data() + b * block);
  });
  return result;
}

Tensor from_column_blocks(const Buffer& blocks, Shape shape, std::size_t record_axis,
                          const Cut& cut) {
  Tensor tensor(std::move(shape));
  const AxisView spread(tensor.shape, record_axis);
  for (std::size_t b = 0; b < cut.blocks; ++b) {
    const double* const block = blocks.data() + b * spread.cells() * cut.stride;
    for (std::size_t cell = 0; cell < spread.cells(); ++cell) {
      for (std::size_t i = 0; i < cut.length(b); ++i)
        tensor.data[spread.place(cut.start(b) + i, cell)] = block[cell * cut.stride + i];
    }
  }
  return tensor;
}

}  // namespace starfold::engine

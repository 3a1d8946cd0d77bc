// How a client's data lies in memory: in column blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>

#include "starfold/runtime/kernels/kernels.h"
#include "starfold/runtime/numbers.h"
#include "starfold/tensor/tensor.h"

namespace starfold::engine {

// Aligned numbers.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) { reserve(size); }

  // Keeps nothing of what was there when it grows.
  void reserve(std::size_t size) {
    if (size <= size_) return;
    allocate(size);
    std::fill_n(data_.get(), size, 0.0);
  }
  // Holds anything.
  void allocate(std::size_t size) {
    data_ = allocate_numbers(size);
    if (!data_) throw std::bad_alloc();
    size_ = size;
  }
  double* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  Numbers data_;
  std::size_t size_ = 0;
};

// How the records of one set are cut. The cut depends on nothing but their number and the options, so
// results do not depend on the number of threads.
struct Cut {
  std::size_t records = 0;
  std::size_t block = 0;   // records per block
  std::size_t stride = 0;  // from one column of a block to the next
  std::size_t blocks = 0;
  std::size_t chunk = 0;  // blocks per chunk
  std::size_t chunks = 0;

  Cut(std::int64_t count, std::int64_t block_records) {
    records = static_cast<std::size_t>(count);
    block = std::min(records, static_cast<std::size_t>(std::max<std::int64_t>(block_records, 1)));
    if (records == 0) return;
    stride = kernels::padded(block);
    blocks = (records + block - 1) / block;
    constexpr std::size_t most_chunks = 64;
    constexpr std::size_t least_blocks = 8;
    chunk = std::max(least_blocks, (blocks + most_chunks - 1) / most_chunks);
    chunks = (blocks + chunk - 1) / chunk;
  }
  std::size_t length(std::size_t b) const { return std::min(block, records - b * block); }
};

// An input in column blocks: all columns of the first block, then those of the next.
Buffer in_column_blocks(const Tensor& tensor, std::size_t record_axis, const Cut& cut,
                        int threads = 1);

// The input again, from its blocks.
Tensor from_column_blocks(const Buffer& blocks, Shape shape, std::size_t record_axis,
                          const Cut& cut);

}  // namespace starfold::engine

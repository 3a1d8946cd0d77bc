// How a client's data lies in memory: in column blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

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

// Columns that are written while others are read. They begin in the middle of a page, and columns of large inputs, which are a page
// each in whole blocks, at its beginning: processors tell what a load may have to wait for by its place within a page, and would let
// it wait for a store to a column of the same place.
class Workspace {
 public:
  // Room for so many numbers; what was there before may be lost.
  double* columns(std::size_t numbers) {
    buffer_.reserve(numbers + 2 * page);
    constexpr std::uintptr_t bytes = page * sizeof(double);
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(buffer_.data());
    return buffer_.data() +
           ((begin + bytes - 1) / bytes * bytes + bytes / 2 - begin) / sizeof(double);
  }

 private:
  static constexpr std::size_t page = 512;  // numbers
  Buffer buffer_;
};

// How the records of one set are cut. The cut depends on nothing but their number and the options, so
// results do not depend on the number of threads.
struct Cut {
  // Where several clients lie in common arrays no block has records of two.
  struct Shared {
    std::vector<std::size_t> starts;        // the first record of each block, and the end
    std::vector<std::size_t> first_blocks;  // of each client, and the end
  };

  std::size_t records = 0;
  std::size_t block = 0;   // records per block
  std::size_t stride = 0;  // from one column of a block to the next
  std::size_t blocks = 0;
  std::size_t chunk = 0;  // blocks per chunk
  std::size_t chunks = 0;

  static constexpr std::size_t least_blocks = 8;  // of a chunk

  Cut(std::int64_t count, std::int64_t block_records) {
    records = static_cast<std::size_t>(count);
    block = std::min(records, static_cast<std::size_t>(std::max<std::int64_t>(block_records, 1)));
    if (records == 0) return;
    stride = kernels::padded(block);
    blocks = (records + block - 1) / block;
    make_chunks();
  }
  // Clients whose records end here.
  Cut(const std::vector<std::int64_t>& ends, std::int64_t block_records);

  // The first record of a block, and how many it has.
  std::size_t start(std::size_t b) const { return shared ? shared->starts[b] : b * block; }
  std::size_t length(std::size_t b) const {
    return shared ? shared->starts[b + 1] - shared->starts[b]
                  : std::min(block, records - b * block);
  }
  // The cut of one client's records as if it were alone, in these blocks.
  Cut of_client(std::size_t client) const;

  std::shared_ptr<const Shared> shared = nullptr;

 private:
  void make_chunks();
};

// An input in column blocks: all columns of the first block, then those of the next.
Buffer in_column_blocks(const Tensor& tensor, std::size_t record_axis, const Cut& cut,
                        int threads = 1);

// The input again, from its blocks.
Tensor from_column_blocks(const Buffer& blocks, Shape shape, std::size_t record_axis,
                          const Cut& cut);

}  // namespace starfold::engine

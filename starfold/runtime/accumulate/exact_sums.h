// Sums without rounding, a block of columns at a time. Columns are cut into slices so short that the kernels sum them,
// and products of them, exactly in doubles; these few sums then go into the wide integers of merge/exact.h.
#pragma once

#include <span>
#include <vector>

#include "starfold/merge/exact.h"
#include "starfold/runtime/accumulate/exact_grid.h"
#include "starfold/runtime/engine/layout.h"

namespace starfold::engine {

// Columns as lists of slices, and what is left of them: of a few records where numbers differ much in size, of all where
// they lie at the ends of the range of numbers or are not finite.
class SlicedColumns {
 public:
  // Slices of `width` bits of n records of each column.
  void cut(std::span<const double* const> columns, std::size_t n, int width);

  std::size_t columns() const { return first_.size() - 1; }
  // The slices of column c are those from first(c) to before first(c + 1).
  std::size_t first(std::size_t c) const { return first_[c]; }
  const double* const* slices() const { return slices_.data(); }
  // The records of column c that have a rest, and that rest.
  std::span<const std::uint32_t> left(std::size_t c) const {
    return {left_.data() + first_left_[c], first_left_[c + 1] - first_left_[c]};
  }
  double rest(std::size_t c, std::size_t record) const {
    return rests_.data()[c * stride_ + record];
  }

 private:
  void cut_one(const double* x, std::size_t n, int width, double* rest);
  double* room();

  std::size_t stride_ = 0;
  std::vector<std::size_t> first_;
  std::vector<const double*> slices_;
  std::vector<std::size_t> first_left_;
  std::vector<std::uint32_t> left_;
  std::vector<Buffer> buffers_;  // of a slice each
  Buffer rests_;
};

// One wide sum for each entry of a result.
class WideSums {
 public:
  WideSums(std::size_t entries, const exact::Format& format)
      : format_(format), words_(entries * format.words()) {}

  std::span<wide::Word> operator[](std::size_t entry) {
    return {words_.data() + entry * format_.words(), format_.words()};
  }
  void add(std::size_t entry, double x) {
    if (x != 0) exact::add((*this)[entry], format_, x);
  }
  // The sum of n numbers.
  void add_column(const double* x, std::size_t n, std::size_t entry);
  // All sums of row i times column j, to entries places[i * columns + j]; with `upper` only where i <= j. Sums of products.
  // What the grid still holds of them is added by flush(); it belongs to these places.
  void add_products(std::span<const double* const> rows, std::span<const double* const> columns,
                    bool upper, std::size_t n, std::span<const std::uint32_t> places,
                    ProductGrid& grid);
  void flush(ProductGrid& grid);
  // The sums of each column among the records with each row number below `labels`.
  void add_groups(std::span<const std::uint32_t> rows, std::size_t labels,
                  std::span<const double* const> columns, std::span<const std::uint32_t> places);
  // Adds the sum of entry `from` of others.
  void add(std::size_t entry, WideSums& other, std::size_t from) {
    wide::add((*this)[entry], other[from]);
  }
  // As a part of a state.
  void write(Tensor& part) const { set_integer(part, 0, words_); }

 private:
  // Whether the block went onto the grid, in bytes or in slices.
  bool add_on_grid(std::span<const double* const> rows, std::span<const double* const> columns,
                   bool upper, std::size_t n, ProductGrid& grid);
  // One row after the other, each cut while it passes by.
  bool add_passing(std::span<const double* const> rows, std::span<const double* const> columns,
                   std::size_t n, ProductGrid& grid);
  void add_sliced(std::span<const double* const> rows, std::span<const double* const> columns,
                  bool upper, std::size_t n, std::span<const std::uint32_t> places);
  template <typename Sliced>
  void add_rests(const Sliced& left, const Sliced& right, std::size_t i, const double* row,
                 std::span<const double* const> columns, bool upper,
                 std::span<const std::uint32_t> places);

  exact::Format format_;
  std::vector<wide::Word> words_;
  double bound_ = 1;  // what the last columns did not exceed, a power of two
  SlicedColumns left_;
  SlicedColumns right_;
  std::vector<double> sums_;
};

}  // namespace starfold::engine

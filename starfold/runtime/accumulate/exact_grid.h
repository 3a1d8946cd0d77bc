// Sums of products in slices at places that stay the same from block to block: sums of products of such slices are whole
// multiples of the same powers of two, so that plain integers hold them over many blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "starfold/merge/wide.h"
#include "starfold/runtime/engine/layout.h"
#include "starfold/runtime/kernels/byte_tiles.h"
#include "starfold/runtime/kernels/residues.h"

namespace starfold::engine {

// Columns in three slices of 22 bits and a sign, as whole numbers, and what few records have beyond them.
class GridColumns {
 public:
  static constexpr std::size_t slices = 3;
  static constexpr std::size_t levels = 6;  // the slices, and the sums of two of them
  static constexpr int bits = 22;           // a slice is at most 2^22 in magnitude

  // What becomes of a column: all levels as whole numbers, slices of their size, or bytes or residues of whole numbers, for
  // kernels/byte_tiles.h and kernels/residues.h. Of slices there may be room for one column at a time.
  enum class Form { levels, slices, one_by_one, bytes, residues };
  // For columns of n records.
  void prepare(std::size_t columns, std::size_t n, Form form);
  // Cuts a column. False where that needs more slices, or something is not finite. Calls `moving` before the column gets
  // other places.
  bool cut(std::size_t c, const double* x, std::size_t n, const std::function<void()>& moving);
  // Finds the rests of a column alone, at the places it has.
  bool find_rests(std::size_t c, const double* x, std::size_t n);
  void forget_rests(std::size_t c);

  const double* level(std::size_t c, std::size_t k) const {
    return room_.data() + (1 + (form_ == Form::one_by_one ? 0 : c) * levels + k) * stride_;
  }
  kernels::byte_tiles::Panel panel(std::size_t number) const;
  std::size_t panels() const { return present_.size(); }
  // The columns x, which were cut into residues.
  kernels::residues::Columns residues(std::span<const double* const> x);
  // Tiles of 64 records that a column of bytes has.
  std::size_t tiles() const { return tiles_; }
  // Whether the first slice holds all of the column.
  bool is_short(std::size_t c) const { return short_[c]; }
  // The exponent of what the slices of this rank are multiples of, from 0.
  int unit(std::size_t c, std::size_t rank) const {
    return highs_[c] - step() * static_cast<int>(rank) - bits;
  }
  // The same for residues.
  int unit(std::size_t c) const { return highs_[c] - kernels::residues::bits; }
  // From the unit of one slice to that of the next.
  int step() const { return form_ == Form::bytes ? kernels::byte_tiles::slice_bits : bits + 1; }
  // All numbers of the column are at most 2^high in magnitude.
  int high(std::size_t c) const { return highs_[c]; }
  // Whether a column may get these places.
  static bool allows(int high);
  void set_high(std::size_t c, int high) { highs_[c] = high; }
  // shift[k] rounds to slices of rank k.
  void shifts(std::size_t c, double* shift) const;

  std::span<const std::uint32_t> left(std::size_t c) const { return left_[c]; }
  bool any_rests(std::size_t columns) const {
    return std::any_of(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(columns),
                       [](const auto& records) { return !records.empty(); });
  }
  double rest(std::size_t c, std::uint32_t record) const {
    const auto at = std::find(left_[c].begin(), left_[c].end(), record);
    return at == left_[c].end() ? 0 : rests_[c][static_cast<std::size_t>(at - left_[c].begin())];
  }

 private:
  struct Found {
    unsigned bits = 0;  // as Slices::cut
    double top = 0;
    bool finite = true;
    bool many = false;  // more rests than are worth a look at each
  };
  Found slice(std::size_t c, const double* x, std::size_t n);
  Found cut_residues(std::size_t c, const double* x, std::size_t n);
  void note_rest(std::size_t c, std::uint32_t record, double rest, Found& found);
  std::int8_t* bytes(std::size_t panel) const;

  std::size_t stride_ = 0;
  Form form_ = Form::levels;
  std::vector<int> highs_;
  std::vector<char> short_;
  std::vector<std::vector<std::uint32_t>> left_;
  std::vector<std::vector<double>> rests_;
  Buffer room_;  // of the rest that is looked at, and the levels of each column
  std::size_t tiles_ = 0;
  std::vector<unsigned> present_;  // by panel: the digits that are not 0 throughout
  Buffer bytes_;
  std::vector<std::uint64_t*> low_;     // of each column, modulo 2^52, in room_of_residues_,
  std::vector<std::uint64_t*> folded_;  // and modulo 2^52 - 1
  std::vector<double> scales_;
  Buffer room_of_residues_;
};

// Sums of products that have not gone into the wide ones yet.
class ProductGrid {
 public:
  GridColumns rows;
  GridColumns columns;
  bool same = false;  // the columns are the rows
  std::vector<std::uint32_t> places;
  std::size_t width = 0;  // columns of the result
  GridColumns::Form form = GridColumns::Form::levels;

  bool started() const { return !places.empty(); }
  void start(std::span<const double* const> of_rows, std::span<const double* const> of_columns,
             std::span<const std::uint32_t> to_places);
  const GridColumns& right() const { return same ? rows : columns; }
  // All products of the columns that were cut; with `upper` those where the row is not after the column.
  void multiply(std::size_t n, bool upper);
  // The same of columns that were cut into bytes, and into residues.
  void multiply_bytes(bool upper);
  void multiply_residues(std::span<const double* const> of_rows,
                         std::span<const double* const> of_columns, std::size_t n, bool upper);
  // Whether so many of the columns are short that slices need fewer products than residues.
  bool better_in_levels() const;
  // The sum of an entry whose slices have ranks that add up to this one.
  std::int64_t& direct(std::size_t entry, std::size_t rank) {
    return direct_[rank * places.size() + entry];
  }
  // One more block; whether the integers have no room for it, so that they must be taken first.
  bool full() const { return blocks_ == most_blocks; }
  void count_block() { ++blocks_; }
  bool empty() const { return blocks_ == 0; }

  static constexpr std::size_t ranks = 2 * GridColumns::slices - 1;
  // Takes the sum of an entry in parts that are to be multiplied by 2^unit(entry, part), modulo 2^128, and leaves 0.
  static constexpr std::size_t parts = kernels::byte_tiles::sums;
  std::array<wide::Word2, parts> take(std::size_t entry);
  int unit(std::size_t entry, std::size_t part) const;
  void taken() { blocks_ = 0; }

 private:
  // A block adds less than 2^55 to each integer.
  static constexpr std::size_t most_blocks = 200;
  // Some columns of one side.
  struct Some {
    const GridColumns* from = nullptr;
    std::vector<std::size_t> numbers;
  };
  // Products of one level of some rows with one of some columns, with the sums to each entry's place in `out`.
  void multiply(const Some& some_rows, std::size_t level, const Some& some_columns,
                std::size_t other, std::size_t n, std::int64_t* out);

  std::vector<std::int64_t> direct_;    // by the sum of their ranks or part, and entry
  std::vector<std::int64_t> by_level_;  // products of each level with itself, by level and entry
  std::size_t blocks_ = 0;
  bool upper_ = false;
  std::vector<const double*> left_;
  std::vector<const double*> right_;
  std::vector<std::size_t> begins_;
  std::vector<std::int64_t> found_;
  Buffer turned_;
};

}  // namespace starfold::engine

#include "starfold/runtime/accumulate/exact_sums.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "starfold/runtime/accumulate/slices.h"
#include "starfold/runtime/kernels/kernels.h"

namespace starfold::engine {
namespace {

// Bits that n summands take.
int bits_of(std::size_t n) { return static_cast<int>(std::bit_width(n - 1)); }

// Slices whose sums fit into a double; and their products.
int width_of_sums(std::size_t n) { return 52 - bits_of(n); }
int width_of_products(std::size_t n) { return (53 - bits_of(n)) / 2; }

// x + shift - shift is x rounded to a multiple of 2^unit.
double shift_to(int unit) { return std::ldexp(1.5, unit + 52); }

// More of them are slower than what few records leave over.
constexpr std::size_t usual_slices = 3;
constexpr std::size_t most_slices = 12;

}  // namespace

double* SlicedColumns::room() {
  if (buffers_.size() == slices_.size()) buffers_.emplace_back();
  buffers_[slices_.size()].reserve(stride_);
  return buffers_[slices_.size()].data();
}

void SlicedColumns::cut(std::span<const double* const> columns, std::size_t n, int width) {
  const std::size_t stride = kernels::padded(n);
  if (stride > stride_) buffers_.clear();
  stride_ = std::max(stride_, stride);
  rests_.reserve(columns.size() * stride_);
  first_.assign(1, 0);
  first_left_.assign(1, 0);
  slices_.clear();
  left_.clear();
  for (std::size_t c = 0; c < columns.size(); ++c) {
    cut_one(columns[c], n, width, rests_.data() + c * stride_);
    first_.push_back(slices_.size());
    first_left_.push_back(left_.size());
  }
}

void SlicedColumns::cut_one(const double* x, std::size_t n, int width, double* rest) {
  const double top = kernels::slices().top(x, n);
  if (top == 0) {
    std::fill_n(rest, n, 0.0);
    return;
  }
  const std::size_t before = slices_.size();
  bool left = true;
  // All numbers are at most 2^high in magnitude.
  int high = std::isnan(top) ? slices::highest + 1 : std::ilogb(top) + 1;
  while (left && high <= slices::highest && high - width >= slices::lowest) {
    double* slice = room();
    const bool started = slices_.size() > before;
    left = kernels::slices().split(started ? rest : x, shift_to(high - width), slice, rest, n);
    slices_.push_back(slice);
    high -= width + 1;  // half of the last unit is left at most
    const std::size_t cut = slices_.size() - before;
    if (!left || cut < usual_slices) continue;
    const auto records = n - static_cast<std::size_t>(std::count(rest, rest + n, 0.0));
    if (records <= slices::few_records || cut == most_slices) break;
  }
  if (!left) return;
  if (slices_.size() == before) std::copy_n(x, n, rest);
  for (std::size_t i = 0; i < n; ++i) {
    if (!(rest[i] == 0)) left_.push_back(static_cast<std::uint32_t>(i));
  }
}

void WideSums::add_column(const double* x, std::size_t n, std::size_t entry) {
  if (n == 0) return;
  const int width = width_of_sums(n);
  const int high = std::ilogb(bound_);
  double sums[2];
  double top = 0;
  // Two slices are enough in most cases, and columns have mostly the size of those before them.
  const bool left = kernels::slices().sums(x, shift_to(high - width),
                                           shift_to(high - 2 * width - 1), sums, &top, n);
  if (!left && top <= bound_) {
    add(entry, sums[0]);
    add(entry, sums[1]);
    return;
  }
  left_.cut({&x, 1}, n, width);
  for (std::size_t s = 0; s < left_.first(1); ++s)
    add(entry, kernels::folds().sum(left_.slices()[s], n));
  for (const std::uint32_t record : left_.left(0)) add(entry, left_.rest(0, record));
  // Where the numbers of a column are of ordinary size the next ones are likely to be, too.
  const double most = kernels::slices().top(x, n);
  if (most > 0x1p-400 && most < 0x1p400) bound_ = std::ldexp(1.0, std::ilogb(most) + 1);
}

void WideSums::add_products(std::span<const double* const> rows,
                            std::span<const double* const> columns, bool upper, std::size_t n,
                            std::span<const std::uint32_t> places, ProductGrid& grid) {
  if (n == 0) return;
  if (!grid.started()) grid.start(rows, columns, places);
  // A few columns stay in the first cache while all rows pass by.
  constexpr std::size_t few = 2;
  if (columns.size() <= few && (!upper || rows.size() == 1)) {
    grid.same = false;
    if (!add_passing(rows, columns, n, grid)) add_sliced(rows, columns, upper, n, places);
    return;
  }
  // The slices of so many records of a hundred columns stay in the second cache. Residues are few.
  const std::size_t together = grid.form == GridColumns::Form::bytes      ? 128
                               : grid.form == GridColumns::Form::residues ? 512
                                                                          : 256;
  std::vector<const double*> pointers;
  for (std::size_t first = 0; first < n; first += together) {
    pointers.assign(rows.begin(), rows.end());
    pointers.insert(pointers.end(), columns.begin(), columns.end());
    for (const double*& x : pointers) x += first;
    const std::span<const double* const> all(pointers);
    const std::span<const double* const> some_rows = all.first(rows.size());
    const std::span<const double* const> some_columns = all.subspan(rows.size());
    const std::size_t records = std::min(together, n - first);
    if (!add_on_grid(some_rows, some_columns, upper, records, grid))
      add_sliced(some_rows, some_columns, upper, records, places);
  }
}

bool WideSums::add_on_grid(std::span<const double* const> rows,
                           std::span<const double* const> columns, bool upper, std::size_t n,
                           ProductGrid& grid) {
  const auto moving = [&] { flush(grid); };
  using Form = GridColumns::Form;
  const Form form = grid.form;
  grid.rows.prepare(rows.size(), n, form);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!grid.rows.cut(i, rows[i], n, moving)) return false;
  if (!grid.same) grid.columns.prepare(columns.size(), n, form);
  for (std::size_t j = 0; !grid.same && j < columns.size(); ++j)
    if (!grid.columns.cut(j, columns[j], n, moving)) return false;
  if (form == Form::residues && grid.better_in_levels()) {
    flush(grid);
    grid.form = Form::levels;  // from now on
    return add_on_grid(rows, columns, upper, n, grid);
  }
  if (grid.full()) flush(grid);
  grid.count_block();
  if (form == Form::bytes) {
    grid.multiply_bytes(upper);
  } else if (form == Form::residues) {
    grid.multiply_residues(rows, columns, n, upper);
  } else {
    grid.multiply(n, upper);
  }
  if (!grid.rows.any_rests(rows.size()) && !grid.right().any_rests(columns.size())) return true;
  for (std::size_t i = 0; i < rows.size(); ++i)
    add_rests(grid.rows, grid.right(), i, rows[i], columns, upper, grid.places);
  return true;
}

bool WideSums::add_passing(std::span<const double* const> rows,
                           std::span<const double* const> columns, std::size_t n,
                           ProductGrid& grid) {
  constexpr std::size_t ranks = ProductGrid::ranks;
  grid.columns.prepare(columns.size(), n, GridColumns::Form::slices);
  for (std::size_t j = 0; j < columns.size(); ++j)
    if (!grid.columns.cut(j, columns[j], n, [&] { flush(grid); })) return false;
  grid.rows.prepare(rows.size(), n, GridColumns::Form::one_by_one);
  const kernels::Ahead next = kernels::after(rows.data(), rows.size(), n);
  if (grid.full()) flush(grid);
  grid.count_block();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    grid.rows.forget_rests(i);
    bool fits = true;
    for (std::size_t j = 0; fits && j < columns.size();) {
      double shifts[GridColumns::slices];
      grid.rows.shifts(i, shifts);
      double scales[ranks];
      const int unit = grid.rows.unit(i, 0) + grid.columns.unit(j, 0);
      for (std::size_t k = 0; k < ranks; ++k)
        scales[k] = slices::power(-unit + (GridColumns::bits + 1) * static_cast<int>(k));
      const double* const y[] = {grid.columns.level(j, 0), grid.columns.level(j, 1),
                                 grid.columns.level(j, 2)};
      std::int64_t sums[ranks] = {};
      double top = 0;
      const double* const ahead =
          next.begin == nullptr ? nullptr : rows[i] + (next.end - next.begin);
      const bool left =
          kernels::whole_products().dot(rows[i], shifts, y, scales, sums, &top, n, ahead);
      const int high = top == 0 || !std::isfinite(top) ? grid.rows.high(i) : std::ilogb(top) + 1;
      // Other places for the row, which are then those of all its products.
      const bool rests = left && j == 0 && !grid.rows.find_rests(i, rows[i], n);
      if (high > grid.rows.high(i) || (rests && high < grid.rows.high(i))) {
        fits = GridColumns::allows(high);
        if (!fits) break;
        flush(grid);
        grid.count_block();
        grid.rows.set_high(i, high);
        continue;
      }
      fits = !rests;
      for (std::size_t k = 0; fits && k < ranks; ++k) grid.direct(i * grid.width + j, k) += sums[k];
      ++j;
    }
    if (fits) {
      add_rests(grid.rows, grid.columns, i, rows[i], columns, false, grid.places);
    } else {
      add_sliced(rows.subspan(i, 1), columns, false, n,
                 std::span(grid.places).subspan(i * grid.width, grid.width));
    }
  }
  return true;
}

void WideSums::flush(ProductGrid& grid) {
  if (grid.empty()) return;
  for (std::size_t entry = 0; entry < grid.places.size(); ++entry) {
    const auto sums = grid.take(entry);
    for (std::size_t k = 0; k < sums.size(); ++k) {
      const bool negative = (sums[k] >> 127U) != 0;
      const wide::Word2 magnitude = negative ? -sums[k] : sums[k];
      if (magnitude == 0) continue;
      const int exponent = grid.unit(entry, k) - format_.lowest;
      wide::add((*this)[grid.places[entry]], magnitude, static_cast<std::size_t>(exponent),
                negative);
    }
  }
  grid.taken();
}

void WideSums::add_sliced(std::span<const double* const> rows,
                          std::span<const double* const> columns, bool upper, std::size_t n,
                          std::span<const std::uint32_t> places) {
  const int width = width_of_products(n);
  const bool same = std::equal(rows.begin(), rows.end(), columns.begin(), columns.end());
  left_.cut(rows, n, width);
  if (!same) right_.cut(columns, n, width);
  const SlicedColumns& right = same ? left_ : right_;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t from = upper ? i : 0;
    const std::size_t height = left_.first(i + 1) - left_.first(i);
    const std::size_t across = right.first(columns.size()) - right.first(from);
    if (height == 0 || across == 0) continue;
    sums_.assign(height * across, 0.0);
    kernels::products().gram(left_.slices() + left_.first(i), height,
                             right.slices() + right.first(from), across, false, sums_.data(), n,
                             {});
    for (std::size_t j = from; j < columns.size(); ++j) {
      const std::size_t place = places[i * columns.size() + j];
      for (std::size_t a = 0; a < height; ++a) {
        for (std::size_t b = right.first(j); b < right.first(j + 1); ++b)
          add(place, sums_[a * across + b - right.first(from)]);
      }
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    add_rests(left_, right, i, rows[i], columns, upper, places);
}

// With x = slices + rest on both sides: rests times whole numbers, and what was sliced times rests.
template <typename Sliced>
void WideSums::add_rests(const Sliced& left, const Sliced& right, std::size_t i, const double* row,
                         std::span<const double* const> columns, bool upper,
                         std::span<const std::uint32_t> places) {
  const bool whole_row = left.left(i).empty();
  for (std::size_t j = upper ? i : 0; j < columns.size(); ++j) {
    if (whole_row && right.left(j).empty()) continue;
    const std::span<wide::Word> sum = (*this)[places[i * columns.size() + j]];
    for (const std::uint32_t r : left.left(i)) {
      // A factor that is not finite meets the whole of the other one, below.
      if (std::isfinite(columns[j][r])) exact::add_product(sum, left.rest(i, r), columns[j][r]);
    }
    for (const std::uint32_t r : right.left(j)) {
      const double rest = left.rest(i, r);
      // Of x nothing was sliced, so that all its products were taken above.
      const bool taken = !std::isfinite(row[r]) || (rest != 0 && rest == row[r]);
      if (!std::isfinite(columns[j][r])) {
        exact::add_product(sum, row[r], columns[j][r]);
      } else if (!taken) {
        exact::add_product(sum, row[r] - rest, right.rest(j, r));
      }
    }
  }
}

void WideSums::add_groups(std::span<const std::uint32_t> rows, std::size_t labels,
                          std::span<const double* const> columns,
                          std::span<const std::uint32_t> places) {
  const std::size_t n = rows.size();
  if (n == 0) return;
  const auto place = [&](std::size_t label, std::size_t c) {
    return places[label * columns.size() + c];
  };
  left_.cut(columns, n, width_of_sums(n));
  for (std::size_t c = 0; c < columns.size(); ++c) {
    for (std::size_t s = left_.first(c); s < left_.first(c + 1); ++s) {
      sums_.assign(labels + 1, 0.0);
      const double* slice = left_.slices()[s];
      for (std::size_t i = 0; i < n; ++i) sums_[rows[i]] += slice[i];
      for (std::size_t label = 0; label < labels; ++label) add(place(label, c), sums_[label]);
    }
    for (const std::uint32_t r : left_.left(c)) {
      const double x = left_.rest(c, r);
      if (rows[r] < labels) add(place(rows[r], c), x);
      if (std::isfinite(x)) continue;
      // In a product with one_hot what is not finite also meets the zeros of all other groups.
      for (std::size_t label = 0; label < labels; ++label)
        if (label != rows[r]) add(place(label, c), 0 * x);
    }
  }
}

}  // namespace starfold::engine

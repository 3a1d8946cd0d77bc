#include "starfold/runtime/exact_sums.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "starfold/runtime/kernels/kernels.h"

namespace starfold::engine {
namespace {

// Where a slice may lie so that neither it nor a product of two leaves the range of normal numbers.
constexpr int highest = 450;
constexpr int lowest = -500;

// Bits that n summands take.
int bits_of(std::size_t n) { return static_cast<int>(std::bit_width(n - 1)); }

// Slices whose sums fit into a double; and their products.
int width_of_sums(std::size_t n) { return 52 - bits_of(n); }
int width_of_products(std::size_t n) { return (53 - bits_of(n)) / 2; }

// x + shift - shift is x rounded to a multiple of 2^unit.
double shift_to(int unit) { return std::ldexp(1.5, unit + 52); }

// 2^exponent, of a normal number.
double power(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52U);
}

// More of them are slower than what few records leave over.
constexpr std::size_t usual_slices = 3;
constexpr std::size_t most_slices = 12;
constexpr std::size_t few_records = 8;

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
  int high = std::isnan(top) ? highest + 1 : std::ilogb(top) + 1;
  while (left && high <= highest && high - width >= lowest) {
    double* slice = room();
    const bool started = slices_.size() > before;
    left = kernels::slices().split(started ? rest : x, shift_to(high - width), slice, rest, n);
    slices_.push_back(slice);
    high -= width + 1;  // half of the last unit is left at most
    const std::size_t cut = slices_.size() - before;
    if (!left || cut < usual_slices) continue;
    const auto records = n - static_cast<std::size_t>(std::count(rest, rest + n, 0.0));
    if (records <= few_records || cut == most_slices) break;
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

void GridColumns::prepare(std::size_t columns, std::size_t n, int width, bool passing) {
  stride_ = std::max(stride_, kernels::padded(n));
  room_.reserve((1 + most * (passing ? 1 : columns)) * stride_);
  width_ = width;
  passing_ = passing;
  highs_.resize(columns, 0);
  left_.resize(columns);
  rests_.resize(columns);
  first_.assign(1, 0);
  slices_.clear();
  ranks_.clear();
}

template <typename Moving>
bool GridColumns::cut(const double* x, std::size_t n, Moving moving) {
  const std::size_t c = first_.size() - 1;
  double* const rest = room_.data();
  double* const room = rest + (1 + most * (passing_ ? 0 : c)) * stride_;
  double* const slices[most] = {room, room + stride_, room + 2 * stride_};
  unsigned found = 0;
  bool fits = false;
  while (!fits) {
    double shifts[most];
    for (std::size_t k = 0; k < most; ++k) shifts[k] = shift_to(unit(c, k));
    double top = 0;
    found = kernels::slices().cut(x, shifts, slices, rest, &top, n);
    left_[c].clear();
    rests_[c].clear();
    bool finite = true;
    for (std::uint32_t i = 0; (found & 8U) != 0 && i < n; ++i) {
      if (rest[i] == 0) continue;
      finite = finite && std::isfinite(rest[i]);
      left_[c].push_back(i);
      rests_[c].push_back(rest[i]);
    }
    const bool many = left_[c].size() > few_records;
    const int high = top == 0 || !finite ? highs_[c] : std::ilogb(top) + 1;
    const bool moves = high > highs_[c] || (many && high < highs_[c]);
    fits = finite && !many && !moves;
    if (!moves && !fits) break;
    if (!moves) continue;
    if (high > highest || high - static_cast<int>(most) * (width_ + 1) < lowest) break;
    moving();
    highs_[c] = high;
  }
  for (std::size_t k = 0; fits && k < most; ++k) {
    if ((found & (1U << k)) == 0) continue;
    slices_.push_back(slices[k]);
    ranks_.push_back(k);
  }
  if (!fits) {
    left_[c].clear();
    rests_[c].clear();
  }
  first_.push_back(slices_.size());
  return fits;
}

void WideSums::add_products(std::span<const double* const> rows,
                            std::span<const double* const> columns, bool upper, std::size_t n,
                            std::span<const std::uint32_t> places, ProductGrid& grid) {
  if (n == 0) return;
  if (grid.places.empty()) {
    grid.places.assign(places.begin(), places.end());
    grid.width = columns.size();
    grid.same = std::equal(rows.begin(), rows.end(), columns.begin(), columns.end());
    grid.multiples.resize(places.size() * GridColumns::most * GridColumns::most);
    grid.bits = width_of_products(n);
  }
  // Longer blocks than the first would not fit: there are none.
  const bool fits = width_of_products(n) >= grid.bits;
  if (!fits || !add_on_grid(rows, columns, upper, n, grid))
    add_sliced(rows, columns, upper, n, places);
}

// As many blocks as 63 bits hold sums of 53.
constexpr std::size_t most_blocks = 1000;

bool WideSums::add_on_grid(std::span<const double* const> rows,
                           std::span<const double* const> columns, bool upper, std::size_t n,
                           ProductGrid& grid) {
  const auto moving = [&] { flush(grid); };
  // A few columns stay in the first cache while all rows pass by.
  constexpr std::size_t together = 2;
  const bool passing = !grid.same && !upper && columns.size() <= together;
  grid.columns.prepare(columns.size(), n, grid.bits, false);
  for (std::size_t j = 0; !grid.same && j < columns.size(); ++j)
    if (!grid.columns.cut(columns[j], n, moving)) return false;
  grid.rows.prepare(rows.size(), n, grid.bits, passing);
  if (passing) {
    add_passing(rows, columns, n, grid);
    return true;
  }
  for (const double* row : rows)
    if (!grid.rows.cut(row, n, moving)) return false;
  if (grid.blocks == most_blocks) flush(grid);
  ++grid.blocks;
  for (std::size_t j = 0; j < columns.size(); j += together) {
    const std::size_t last = std::min(j + together, columns.size());
    for (std::size_t i = 0; i < (upper ? std::min(last, rows.size()) : rows.size()); ++i)
      add_row(i, j, last, upper, n, grid);
  }
  for (std::size_t i = 0; i < rows.size(); ++i)
    add_rests(grid.rows, grid.right(), i, rows[i], columns, upper, grid.places);
  return true;
}

void WideSums::add_passing(std::span<const double* const> rows,
                           std::span<const double* const> columns, std::size_t n,
                           ProductGrid& grid) {
  if (grid.blocks == most_blocks) flush(grid);
  ++grid.blocks;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto moving = [&] {
      flush(grid);
      grid.blocks = 1;
    };
    if (grid.rows.cut(rows[i], n, moving)) {
      add_row(i, 0, columns.size(), false, n, grid);
      add_rests(grid.rows, grid.right(), i, rows[i], columns, false, grid.places);
    } else {
      add_sliced(rows.subspan(i, 1), columns, false, n,
                 std::span(grid.places).subspan(i * grid.width, grid.width));
    }
  }
}

void WideSums::add_row(std::size_t i, std::size_t first, std::size_t last, bool upper,
                       std::size_t n, ProductGrid& grid) {
  constexpr std::size_t most = GridColumns::most;
  const GridColumns& right = grid.right();
  const std::size_t height = grid.rows.first(i + 1) - grid.rows.first(i);
  const std::size_t across = right.first(last) - right.first(first);
  if (height == 0 || across == 0) return;
  double found[most * most * 2] = {};
  kernels::products().gram(grid.rows.slices() + grid.rows.first(i), height,
                           right.slices() + right.first(first), across, false, found, n);
  for (std::size_t a = 0; a < height; ++a) {
    const std::size_t rank = grid.rows.rank(grid.rows.first(i) + a);
    const int unit = grid.rows.unit(i, rank);
    std::int64_t* const into = grid.multiples.data() + (i * most + rank) * grid.width * most;
    const double* sum = found + a * across;
    for (std::size_t c = first; c < last; ++c) {
      for (std::size_t s = right.first(c); s < right.first(c + 1); ++s, ++sum) {
        if (upper && i > c) continue;
        const double scale = power(-unit - right.unit(c, right.rank(s)));
        into[c * most + right.rank(s)] += static_cast<std::int64_t>(*sum * scale);
      }
    }
  }
}

void WideSums::flush(ProductGrid& grid) {
  if (grid.blocks == 0) return;
  grid.blocks = 0;
  const GridColumns& right = grid.right();
  constexpr std::size_t most = GridColumns::most;
  std::size_t at = 0;
  for (std::size_t i = 0; i < grid.places.size() / grid.width; ++i) {
    for (std::size_t a = 0; a < most; ++a) {
      for (std::size_t j = 0; j < grid.width; ++j) {
        for (std::size_t b = 0; b < most; ++b, ++at) {
          const std::int64_t value = std::exchange(grid.multiples[at], 0);
          if (value == 0) continue;
          const int exponent = grid.rows.unit(i, a) + right.unit(j, b) - format_.lowest;
          wide::add((*this)[grid.places[i * grid.width + j]],
                    static_cast<wide::Word>(value < 0 ? -value : value),
                    static_cast<std::size_t>(exponent), value < 0);
        }
      }
    }
  }
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
                             right.slices() + right.first(from), across, false, sums_.data(), n);
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
  for (std::size_t j = upper ? i : 0; j < columns.size(); ++j) {
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

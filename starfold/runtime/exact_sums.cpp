#include "starfold/runtime/exact_sums.h"

#include <algorithm>
#include <bit>
#include <cmath>

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

void WideSums::add_products(std::span<const double* const> rows,
                            std::span<const double* const> columns, bool upper, std::size_t n,
                            std::span<const std::uint32_t> places) {
  if (n == 0) return;
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
  add_rests(left_, right, rows, columns, upper, places);
}

// With x = slices + rest on both sides: rests times whole numbers, and what was sliced times rests.
void WideSums::add_rests(const SlicedColumns& left, const SlicedColumns& right,
                         std::span<const double* const> rows,
                         std::span<const double* const> columns, bool upper,
                         std::span<const std::uint32_t> places) {
  const auto place = [&](std::size_t i, std::size_t j) { return places[i * columns.size() + j]; };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const std::uint32_t r : left.left(i)) {
      for (std::size_t j = upper ? i : 0; j < columns.size(); ++j) {
        // A factor that is not finite meets the whole of the other one, below.
        if (std::isfinite(columns[j][r]))
          exact::add_product((*this)[place(i, j)], left.rest(i, r), columns[j][r]);
      }
    }
  }
  for (std::size_t j = 0; j < columns.size(); ++j) {
    for (const std::uint32_t r : right.left(j)) {
      const std::size_t most = upper ? std::min(j + 1, rows.size()) : rows.size();
      for (std::size_t i = 0; i < most; ++i) {
        const double x = rows[i][r];
        const double rest = left.rest(i, r);
        // Of x nothing was sliced, so that all its products were taken above.
        const bool taken = !std::isfinite(x) || (rest != 0 && rest == x);
        if (!std::isfinite(columns[j][r])) {
          exact::add_product((*this)[place(i, j)], x, columns[j][r]);
        } else if (!taken) {
          exact::add_product((*this)[place(i, j)], x - rest, right.rest(j, r));
        }
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

#include "starfold/runtime/accumulate/exact_grid.h"

#include <bit>
#include <cmath>
#include <utility>

#include "starfold/runtime/accumulate/slices.h"
#include "starfold/runtime/kernels/kernels.h"

namespace starfold::engine {

namespace byte_tiles = kernels::byte_tiles;
namespace residues = kernels::residues;

void GridColumns::prepare(std::size_t columns, std::size_t n, Form form) {
  stride_ = std::max(stride_, kernels::padded(n));
  form_ = form;
  const bool many = form == Form::levels || form == Form::slices;
  room_.reserve((1 + levels * (many ? columns : 1)) * stride_);
  highs_.resize(columns, 0);
  short_.resize(columns);
  left_.resize(columns);
  rests_.resize(columns);
  if (form == Form::residues) {
    // One cache line more than a column has: columns that are a page long would all want the same places of the first cache.
    const std::size_t apart = stride_ + kernels::kPad;
    room_of_residues_.reserve(2 * columns * apart);
    low_.resize(columns);
    folded_.resize(columns);
    auto* room = reinterpret_cast<std::uint64_t*>(room_of_residues_.data());
    for (std::size_t c = 0; c < columns; ++c, room += 2 * apart) {
      low_[c] = room;
      folded_[c] = room + apart;
    }
  }
  if (form != Form::bytes) return;
  tiles_ = (n + byte_tiles::records - 1) / byte_tiles::records;
  present_.assign((columns + byte_tiles::columns - 1) / byte_tiles::columns, 0);
  bytes_.reserve(panels() * byte_tiles::digits * tiles_ * byte_tiles::size / sizeof(double));
}

std::int8_t* GridColumns::bytes(std::size_t panel) const {
  return reinterpret_cast<std::int8_t*>(bytes_.data()) +
         panel * byte_tiles::digits * tiles_ * byte_tiles::size;
}

byte_tiles::Panel GridColumns::panel(std::size_t number) const {
  return {bytes(number), present_[number]};
}

residues::Columns GridColumns::residues(std::span<const double* const> x) {
  scales_.clear();
  for (std::size_t c = 0; c < x.size(); ++c) scales_.push_back(slices::power(-unit(c)));
  return {x.data(), low_.data(), folded_.data(), scales_.data(), x.size()};
}

bool GridColumns::allows(int high) {
  return high <= slices::highest &&
         high - static_cast<int>(slices) * byte_tiles::slice_bits >= slices::lowest;
}

// x + shift - shift is x rounded to a multiple of the last place of shift.
void GridColumns::shifts(std::size_t c, double* shift) const {
  for (std::size_t k = 0; k < slices; ++k) shift[k] = 1.5 * slices::power(unit(c, k) + 52);
}

void GridColumns::forget_rests(std::size_t c) {
  left_[c].clear();
  rests_[c].clear();
}

void GridColumns::note_rest(std::size_t c, std::uint32_t record, double rest, Found& found) {
  found.finite = found.finite && std::isfinite(rest);
  left_[c].push_back(record);
  rests_[c].push_back(rest);
  found.many = left_[c].size() > slices::few_records;
}

GridColumns::Found GridColumns::cut_residues(std::size_t c, const double* x, std::size_t n) {
  const residues::Cut cut = residues::cut(x, unit(c), low_[c], folded_[c], n);
  Found found;
  found.top = cut.top;
  // As Slices::cut says that there is nothing after the first slice.
  found.bits = cut.zeros >= residues::bits - bits ? 1U : 7U;
  forget_rests(c);
  for (std::uint32_t i = 0; cut.rests && i < n; ++i) {
    const double rest = residues::rest(x[i], unit(c));
    if (rest != 0) note_rest(c, i, rest, found);
  }
  return found;
}

GridColumns::Found GridColumns::slice(std::size_t c, const double* x, std::size_t n) {
  if (form_ == Form::residues) return cut_residues(c, x, n);
  double shift[slices];
  shifts(c, shift);
  const bool whole = form_ == Form::levels || form_ == Form::bytes;
  double scale[slices] = {1, 1, 1};
  for (std::size_t k = 0; whole && k < slices; ++k) scale[k] = slices::power(-unit(c, k));
  Found found;
  forget_rests(c);
  if (form_ == Form::bytes) {
    const std::size_t panel = c / byte_tiles::columns;
    std::int8_t* const to = bytes(panel) + c % byte_tiles::columns * byte_tiles::records;
    found.bits = byte_tiles::cut(x, shift, scale, to, tiles_ * byte_tiles::size, &found.top, n);
    present_[panel] |= found.bits;
    if ((found.bits >> byte_tiles::digits) == 0) return found;
  }
  double* out[levels];
  for (std::size_t k = 0; k < levels; ++k)
    out[k] = room_.data() +
             (1 + (form_ == Form::levels || form_ == Form::slices ? c : 0) * levels + k) * stride_;
  double* const rest = room_.data();
  found.bits = kernels::slices().cut(x, shift, scale, out, form_ == Form::levels ? levels : slices,
                                     rest, &found.top, n);
  if ((found.bits & 8U) == 0) return found;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (rest[i] != 0) note_rest(c, i, rest[i], found);
  }
  return found;
}

bool GridColumns::find_rests(std::size_t c, const double* x, std::size_t n) {
  const Found found = slice(c, x, n);
  if (found.finite && !found.many) return true;
  forget_rests(c);
  return false;
}

bool GridColumns::cut(std::size_t c, const double* x, std::size_t n,
                      const std::function<void()>& moving) {
  while (true) {
    const Found found = slice(c, x, n);
    short_[c] = (found.bits & 6U) == 0;
    const int high = found.top == 0 || !found.finite ? highs_[c] : std::ilogb(found.top) + 1;
    const bool moves = high > highs_[c] || (found.many && high < highs_[c]);
    if (found.finite && !found.many && !moves) return true;
    if (!moves || !allows(high)) break;
    moving();
    highs_[c] = high;
  }
  forget_rests(c);
  return false;
}

void ProductGrid::start(std::span<const double* const> of_rows,
                        std::span<const double* const> of_columns,
                        std::span<const std::uint32_t> to_places) {
  places.assign(to_places.begin(), to_places.end());
  width = of_columns.size();
  same = std::equal(of_rows.begin(), of_rows.end(), of_columns.begin(), of_columns.end());
  direct_.resize(places.size() * parts);
  constexpr std::size_t worth_tiles = 8;
  const bool many = std::min(of_rows.size(), of_columns.size()) >= worth_tiles;
  // Four columns are multiplied with four, also where not all of them are there.
  const auto whole = [](std::size_t count) { return (count + 3) / 4 * 4; };
  const bool mostly_whole = 4 * whole(of_rows.size()) * whole(width) <= 5 * places.size();
  form = many && byte_tiles::available()                 ? GridColumns::Form::bytes
         : many && mostly_whole && residues::available() ? GridColumns::Form::residues
                                                         : GridColumns::Form::levels;
}

bool ProductGrid::better_in_levels() const {
  const auto part_of_short = [](const GridColumns& of, std::size_t count) {
    std::size_t found = 0;
    for (std::size_t c = 0; c < count; ++c) found += of.is_short(c) ? 1 : 0;
    return static_cast<double>(found) / static_cast<double>(count);
  };
  const double a = part_of_short(rows, places.size() / width);
  const double b = part_of_short(right(), width);
  const double products = a * b + 3 * a * (1 - b) + 3 * b * (1 - a) + 6 * (1 - a) * (1 - b);
  return products < 4;
}

void ProductGrid::multiply(const Some& some_rows, std::size_t level, const Some& some_columns,
                           std::size_t other, std::size_t n, std::int64_t* out) {
  left_.clear();
  right_.clear();
  begins_.clear();
  for (const std::size_t i : some_rows.numbers) left_.push_back(some_rows.from->level(i, level));
  for (const std::size_t j : some_columns.numbers)
    right_.push_back(some_columns.from->level(j, other));
  if (left_.empty() || right_.empty()) return;
  for (const std::size_t i : some_rows.numbers) {
    const auto at = std::lower_bound(some_columns.numbers.begin(), some_columns.numbers.end(), i);
    begins_.push_back(upper_ ? static_cast<std::size_t>(at - some_columns.numbers.begin())
                             : std::size_t{0});
  }
  const auto gram = [&](std::int64_t* to) {
    kernels::whole_products().gram(left_.data(), left_.size(), right_.data(), right_.size(),
                                   begins_.data(), to, n);
  };
  if (left_.size() * right_.size() == places.size()) return gram(out);
  found_.assign(left_.size() * right_.size(), 0);
  gram(found_.data());
  for (std::size_t i = 0; i < left_.size(); ++i) {
    for (std::size_t j = begins_[i]; j < right_.size(); ++j)
      out[some_rows.numbers[i] * width + some_columns.numbers[j]] += found_[i * right_.size() + j];
  }
}

// Columns of one slice are multiplied slice by slice. For all others, a_1 b_2 + a_2 b_1 is (a_1 + a_2) (b_1 + b_2) without
// a_1 b_1 and a_2 b_2, which are needed in any case: six products instead of nine.
void ProductGrid::multiply(std::size_t n, bool upper) {
  upper_ = upper;
  Some some_rows[2];  // long ones, short ones
  Some some_columns[2];
  for (Some& some : some_rows) some.from = &rows;
  for (Some& some : some_columns) some.from = &right();
  for (std::size_t i = 0; i < places.size() / width; ++i)
    some_rows[rows.is_short(i) ? 1 : 0].numbers.push_back(i);
  for (std::size_t j = 0; j < width; ++j)
    some_columns[right().is_short(j) ? 1 : 0].numbers.push_back(j);
  const auto add = [&](bool short_row, std::size_t a, bool short_column, std::size_t b) {
    multiply(some_rows[short_row ? 1 : 0], a, some_columns[short_column ? 1 : 0], b, n,
             &direct(0, a + b));
  };
  add(true, 0, true, 0);
  for (std::size_t k = 0; k < GridColumns::slices; ++k) {
    add(true, 0, false, k);
    add(false, k, true, 0);
  }
  if (some_rows[0].numbers.empty() || some_columns[0].numbers.empty()) return;
  by_level_.resize(places.size() * GridColumns::levels);
  for (std::size_t k = 0; k < GridColumns::levels; ++k)
    multiply(some_rows[0], k, some_columns[0], k, n, by_level_.data() + k * places.size());
}

void ProductGrid::multiply_bytes(bool upper) {
  upper_ = upper;
  const GridColumns& other = right();
  const std::size_t of_panel = byte_tiles::digits * other.tiles();
  turned_.reserve(of_panel * byte_tiles::size / sizeof(double));
  auto* const turned = reinterpret_cast<std::int8_t*>(turned_.data());
  const std::size_t height = places.size() / width;
  const auto product = [&](std::size_t i, std::size_t j) {
    const std::size_t row = i * byte_tiles::columns;
    const std::size_t column = j * byte_tiles::columns;
    byte_tiles::Product one;
    one.rows = std::min(byte_tiles::columns, height - row);
    one.across = std::min(byte_tiles::columns, width - column);
    one.a = rows.panel(i);
    one.b = {turned, other.panel(j).present};
    one.out = &direct(row * width + column, 0);
    return one;
  };
  for (std::size_t j = 0; j < other.panels(); ++j) {
    byte_tiles::turn(other.panel(j).tiles, turned, of_panel);
    for (std::size_t i = 0; i < (upper ? j + 1 : rows.panels()) && i < rows.panels(); ++i)
      byte_tiles::multiply(product(i, j), other.tiles(), places.size(), width);
  }
}

void ProductGrid::multiply_residues(std::span<const double* const> of_rows,
                                    std::span<const double* const> of_columns, std::size_t n,
                                    bool upper) {
  upper_ = upper;
  const residues::Columns left = rows.residues(of_rows);
  residues::gram(left, same ? left : columns.residues(of_columns), upper, direct_.data(),
                 places.size(), n);
}

int ProductGrid::unit(std::size_t entry, std::size_t part) const {
  const std::size_t i = entry / width;
  const std::size_t j = entry % width;
  if (form == GridColumns::Form::residues)
    return rows.unit(i) + right().unit(j) + residues::sum_bits * static_cast<int>(part);
  if (form == GridColumns::Form::bytes)
    return rows.unit(i, 2) + right().unit(j, 2) + byte_tiles::slice_bits * static_cast<int>(part);
  return rows.unit(i, 0) + right().unit(j, 0) - rows.step() * static_cast<int>(part);
}

std::array<wide::Word2, ProductGrid::parts> ProductGrid::take(std::size_t entry) {
  std::array<wide::Word2, parts> sums{};
  for (std::size_t k = 0; k < parts; ++k)
    sums[k] = static_cast<wide::Word2>(std::exchange(direct(entry, k), 0));
  // Tiles on the diagonal were computed whole.
  const bool below = upper_ && entry / width > entry % width;
  if (below) sums.fill(0);
  if (by_level_.empty()) return sums;
  wide::Word2 level[GridColumns::levels];
  for (std::size_t k = 0; k < GridColumns::levels; ++k)
    level[k] = static_cast<wide::Word2>(std::exchange(by_level_[k * places.size() + entry], 0));
  if (below) return sums;
  sums[0] += level[0];
  sums[1] += level[3] - level[0] - level[1];
  sums[2] += level[4] - level[0] - level[2] + level[1];
  sums[3] += level[5] - level[1] - level[2];
  sums[4] += level[2];
  return sums;
}

}  // namespace starfold::engine

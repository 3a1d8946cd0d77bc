#include "starfold/data/arrays/plain_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace starfold {
namespace {

// Two numbers at once, which every processor of its kind can do.
using Pair = double __attribute__((vector_size(16)));
using PairBits = std::int64_t __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(8)));
using Wholes = std::int32_t __attribute__((vector_size(8)));

// Records at a time: a cache line of each column is written whole.
constexpr std::size_t line = 8;
// So many records before they are needed they are asked for: a block.
constexpr std::size_t ahead = 512;

template <typename T>
T value_at(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
double number_of(T value, bool& inexact) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    constexpr std::int64_t most = std::int64_t{1} << 53U;
    if constexpr (std::is_signed_v<T>) {
      inexact |= value > most || value < -most;
    } else {
      inexact |= value > static_cast<std::uint64_t>(most);
    }
  }
  return static_cast<double>(value);
}

// Two values, so many bytes apart.
template <typename T>
Pair pair_at(const char* at, std::int64_t apart, bool& inexact) {
  if (apart == static_cast<std::int64_t>(sizeof(T))) {
    if constexpr (std::is_same_v<T, double>) return value_at<Pair>(at);
    if constexpr (std::is_same_v<T, float>)
      return __builtin_convertvector(value_at<Floats>(at), Pair);
    if constexpr (std::is_same_v<T, std::int32_t>)
      return __builtin_convertvector(value_at<Wholes>(at), Pair);
  }
  return Pair{number_of(value_at<T>(at), inexact), number_of(value_at<T>(at + apart), inexact)};
}

void put(Pair pair, double* to) { std::memcpy(to, &pair, sizeof pair); }

// One column, whatever its stride.
template <typename T>
void read_column(const char* from, std::int64_t step, std::size_t count, double* to,
                 PlainNumbers::Seen& seen) {
  PairBits nan{};
  std::size_t i = 0;
  bool inexact = false;
  if (step == static_cast<std::int64_t>(sizeof(T))) {
    for (; i + 2 <= count; i += 2, from += 2 * sizeof(T)) {
      if (i % line == 0) __builtin_prefetch(from + ahead * sizeof(T), 0, 2);
      const Pair pair = pair_at<T>(from, sizeof(T), inexact);
      put(pair, to + i);
      if constexpr (std::is_floating_point_v<T>) nan |= pair != pair;
    }
  }
  for (; i < count; ++i, from += step) {
    to[i] = number_of(value_at<T>(from), inexact);
    if constexpr (std::is_floating_point_v<T>) nan[0] |= to[i] != to[i] ? 1 : 0;
  }
  seen.nan |= nan[0] != 0 || nan[1] != 0;
  seen.inexact |= inexact;
}

// Rows of a matrix become columns: pairs of rows and of columns change places, a line of each column at a time. `side` is from one
// value of a row to the next.
template <typename T>
void read_rows(const char* from, std::int64_t row, std::int64_t side, std::size_t columns,
               std::size_t count, double* to, std::size_t stride, PlainNumbers::Seen& seen) {
  PairBits nan{};
  bool inexact = false;
  const auto column = [&](std::size_t c) { return from + static_cast<std::int64_t>(c) * side; };
  std::size_t i = 0;
  for (; i + line <= count; i += line, from += static_cast<std::int64_t>(line) * row) {
    for (std::int64_t at = 0; at < static_cast<std::int64_t>(line) * row; at += 64)
      __builtin_prefetch(from + static_cast<std::int64_t>(ahead) * row + at, 0, 2);
    std::size_t c = 0;
    for (; c + 2 <= columns; c += 2) {
      const char* at = column(c);
      double* const left = to + c * stride + i;
      for (std::size_t r = 0; r < line; r += 2, at += 2 * row) {
        const Pair upper = pair_at<T>(at, side, inexact);
        const Pair lower = pair_at<T>(at + row, side, inexact);
        if constexpr (std::is_floating_point_v<T>) nan |= (upper != upper) | (lower != lower);
        put(__builtin_shufflevector(upper, lower, 0, 2), left + r);
        put(__builtin_shufflevector(upper, lower, 1, 3), left + stride + r);
      }
    }
    if (c < columns) read_column<T>(column(c), row, line, to + c * stride + i, seen);
  }
  for (std::size_t c = 0; i < count && c < columns; ++c)
    read_column<T>(column(c), row, count - i, to + c * stride + i, seen);
  seen.nan |= nan[0] != 0 || nan[1] != 0;
  seen.inexact |= inexact;
}

// Calls `work` with a value of the type that lies in memory; false for what is no plain number.
template <typename Work>
bool with_type(Cells cells, const Work& work) {
  switch (cells) {
    case Cells::f64:
      return work(double{}), true;
    case Cells::f32:
      return work(float{}), true;
    case Cells::i8:
      return work(std::int8_t{}), true;
    case Cells::i16:
      return work(std::int16_t{}), true;
    case Cells::i32:
    case Cells::days:
      return work(std::int32_t{}), true;
    case Cells::i64:
      return work(std::int64_t{}), true;
    case Cells::u8:
      return work(std::uint8_t{}), true;
    case Cells::u16:
      return work(std::uint16_t{}), true;
    case Cells::u32:
      return work(std::uint32_t{}), true;
    case Cells::u64:
      return work(std::uint64_t{}), true;
    default:
      return false;
  }
}

bool is_plain(const CellBlock& part) {
  return part.valid == nullptr && part.hidden == nullptr && !part.has_absent && !part.level_texts &&
         !part.level_numbers && with_type(part.cells, [](auto) {});
}

// How many bytes a column lies beside another in rows of a matrix; 0 when they are not of one matrix.
std::int64_t beside(const CellBlock& column, const CellBlock& other) {
  if (column.cells != other.cells || column.stride != other.stride) return 0;
  const std::int64_t apart =
      reinterpret_cast<std::intptr_t>(other.data) - reinterpret_cast<std::intptr_t>(column.data);
  return std::abs(apart) < std::abs(column.stride) ? apart : 0;
}

}  // namespace

// Whether a column continues the rows of this matrix, of which it is a part from then on.
bool PlainNumbers::Group::takes(const std::vector<CellBlock>& column) {
  if (parts->size() != 1 || column.size() != 1) return false;
  const CellBlock& first = parts->front();
  const std::int64_t apart = beside(first, column.front());
  if (apart == 0 || (columns > 1 && apart != static_cast<std::int64_t>(columns) * side))
    return false;
  side = apart / static_cast<std::int64_t>(columns);
  ++columns;
  return true;
}

std::optional<PlainNumbers> PlainNumbers::of(
    const std::vector<const std::vector<CellBlock>*>& columns) {
  PlainNumbers plain;
  for (const std::vector<CellBlock>* const parts : columns) {
    if (!std::all_of(parts->begin(), parts->end(), is_plain)) return std::nullopt;
    if (!plain.groups_.empty() && plain.groups_.back().takes(*parts)) continue;
    Group group;
    group.parts = parts;
    std::size_t start = 0;
    for (const CellBlock& part : *parts) {
      group.starts.push_back(start);
      start += part.count;
    }
    plain.groups_.push_back(std::move(group));
  }
  return plain;
}

bool PlainNumbers::is_exact() const {
  return std::all_of(groups_.begin(), groups_.end(), [](const Group& group) {
    return std::none_of(group.parts->begin(), group.parts->end(), [](const CellBlock& part) {
      return part.cells == Cells::i64 || part.cells == Cells::u64;
    });
  });
}

PlainNumbers::Seen PlainNumbers::read(std::size_t first, std::size_t count, double* to,
                                      std::size_t stride) const {
  Seen seen;
  for (const Group& group : groups_) {
    std::size_t done = 0;
    while (done < count) {
      const auto after = std::upper_bound(group.starts.begin(), group.starts.end(), first + done);
      const auto place = static_cast<std::size_t>(after - group.starts.begin()) - 1;
      const CellBlock& part = (*group.parts)[place];
      const std::size_t begin = first + done - group.starts[place];
      const std::size_t some = std::min(count - done, part.count - begin);
      const char* const from =
          static_cast<const char*>(part.data) + static_cast<std::int64_t>(begin) * part.stride;
      with_type(part.cells, [&](auto value) {
        using T = decltype(value);
        if (group.columns > 1) {
          read_rows<T>(from, part.stride, group.side, group.columns, some, to + done, stride, seen);
        } else {
          read_column<T>(from, part.stride, some, to + done, seen);
        }
      });
      done += some;
    }
    to += group.columns * stride;
  }
  return seen;
}

}  // namespace starfold

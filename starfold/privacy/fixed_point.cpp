#include "starfold/privacy/fixed_point.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace starfold::secure::fixed_point {
namespace {

constexpr int lowest = -1074;  // the exponent of the last bit
constexpr int significant = 53;

// Counters of 21 bits in the first word: they cannot run into each other before there are two million clients.
constexpr int counter_bits = 21;
enum Counter { not_a_number, infinite, minus_infinite };
std::uint64_t one_of(Counter counter) { return std::uint64_t{1} << (counter_bits * counter); }
bool has(std::uint64_t counters, Counter counter) {
  return (counters >> (counter_bits * counter) & ((std::uint64_t{1} << counter_bits) - 1)) != 0;
}

using Number = std::span<std::uint64_t>;

void negate(Number words) {
  bool carry = true;
  for (std::uint64_t& word : words) {
    word = ~word + (carry ? 1 : 0);
    carry = carry && word == 0;
  }
}

// So many bits from one on, which may cross words.
std::uint64_t bits(std::span<const std::uint64_t> words, int from, int count) {
  const auto word = static_cast<std::size_t>(from / 64);
  const int shift = from % 64;
  std::uint64_t value = words[word] >> shift;
  if (shift > 0 && word + 1 < words.size()) value |= words[word + 1] << (64 - shift);
  return value & ((std::uint64_t{1} << count) - 1);
}

int top_bit(std::span<const std::uint64_t> words) {
  for (std::size_t i = words.size(); i-- > 0;) {
    if (words[i] != 0) return static_cast<int>(64 * i) + 63 - std::countl_zero(words[i]);
  }
  return -1;
}

bool any_below(std::span<const std::uint64_t> words, int bit) {
  const auto whole = static_cast<std::size_t>(bit / 64);
  for (std::size_t i = 0; i < whole; ++i) {
    if (words[i] != 0) return true;
  }
  return bit % 64 != 0 && (words[whole] & ((std::uint64_t{1} << (bit % 64)) - 1)) != 0;
}

double magnitude(std::span<const std::uint64_t> words) {
  const int top = top_bit(words);
  if (top < 0) return 0;
  const int drop = std::max(0, top - (significant - 1));  // bits that a double has no room for
  std::uint64_t value = bits(words, drop, significant);
  if (drop > 0) {
    const bool half = bits(words, drop - 1, 1) != 0;
    const bool more = any_below(words, drop - 1);
    if (half && (more || (value & 1) != 0)) ++value;
  }
  return std::ldexp(static_cast<double>(value), drop + lowest);
}

}  // namespace

void encode(double value, std::span<std::uint64_t> into) {
  std::fill(into.begin(), into.end(), 0);
  if (std::isnan(value)) {
    into[0] = one_of(not_a_number);
    return;
  }
  if (std::isinf(value)) {
    into[0] = one_of(value > 0 ? infinite : minus_infinite);
    return;
  }
  const Number words = into.subspan(1);
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);
  // A subnormal number has fewer bits, and none below the last.
  const int last = std::max(exponent - significant, lowest);
  const auto integer = static_cast<std::uint64_t>(std::ldexp(fraction, exponent - last));
  const int bit = last - lowest;
  words[static_cast<std::size_t>(bit / 64)] = integer << (bit % 64);
  if (bit % 64 > 64 - significant)
    words[static_cast<std::size_t>(bit / 64) + 1] = integer >> (64 - bit % 64);
  if (value < 0) negate(words);
}

double decode(std::span<const std::uint64_t> words) {
  const std::uint64_t counters = words[0];
  if (has(counters, not_a_number) || (has(counters, infinite) && has(counters, minus_infinite)))
    return std::numeric_limits<double>::quiet_NaN();
  if (has(counters, infinite)) return std::numeric_limits<double>::infinity();
  if (has(counters, minus_infinite)) return -std::numeric_limits<double>::infinity();
  std::array<std::uint64_t, width - 1> number{};
  std::copy(words.begin() + 1, words.end(), number.begin());
  const bool negative = number.back() >> 63 != 0;
  if (negative) negate(number);
  const double value = magnitude(number);
  return negative ? -value : value;
}

}  // namespace starfold::secure::fixed_point

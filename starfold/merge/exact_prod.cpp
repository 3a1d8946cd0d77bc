#include "starfold/merge/exact_prod.h"

#include <bit>
#include <cmath>
#include <limits>

namespace starfold::exact {

using wide::Whole;
using wide::Word;
using wide::Word2;

namespace {

constexpr int fraction = 120;  // bits of a logarithm after the point
constexpr std::size_t log_words = 3;
enum Count : std::size_t { negatives = 3, zeros, infinities, nans };

// The high half of a 256-bit square.
Word2 high_square(Word2 x) {
  const Word low = static_cast<Word>(x);
  const Word high = static_cast<Word>(x >> 64U);
  const Word2 middle = Word2{low} * high;
  const Word2 carried = ((Word2{low} * low) >> 64U) + 2 * Word2{static_cast<Word>(middle)};
  return Word2{high} * high + 2 * (middle >> 64U) + (carried >> 64U);
}

// log2 of m in [1, 2), which has 127 bits after the point: each squaring gives one bit.
Word2 log2_fraction(Word2 m) {
  Word2 result = 0;
  for (int i = 0; i < fraction; ++i) {
    m = high_square(m);  // half of the square, in [1/2, 2)
    const bool two = (m >> 127U) != 0;
    if (!two) m <<= 1U;
    result = (result << 1U) | Word2{two};
  }
  return result;
}

// log2(magnitude * 2^exponent) as an integer times 2^-120.
void add_log2(std::span<Word> into, Word magnitude, int exponent) {
  const int top = 63 - std::countl_zero(magnitude);
  const int whole = top + exponent;
  wide::add(into, static_cast<Word2>(whole < 0 ? -whole : whole), fraction, whole < 0);
  wide::add(into, log2_fraction(Word2{magnitude} << static_cast<unsigned>(127 - top)), 0, false);
}

// The sign of magnitude * 2^exponent less 2^(log * 2^-120).
int compared(Word magnitude, int exponent, std::span<const Word> log) {
  std::vector<Word> own(log_words);
  add_log2(own, magnitude, exponent);
  const Whole more = wide::difference(wide::whole(own), wide::whole(log));
  return more.is_zero() ? 0 : more.negative ? -1 : 1;
}

// The double nearest to 2^(log * 2^-120): a guess, moved until the product lies between its neighbours' middles.
double power_of_two(std::span<const Word> log) {
  const double guess = wide::nearest(wide::whole(log), -fraction);
  if (guess > 1025) return std::numeric_limits<double>::infinity();
  if (guess < -1080) return 0;
  const double floor = std::floor(guess);
  // Small numbers have fewer bits.
  const int lowest = std::max(static_cast<int>(floor) - 52, -1074);
  auto mantissa =
      static_cast<Word>(std::ldexp(std::exp2(guess - floor), static_cast<int>(floor) - lowest));
  // Whether the product rounds to m or less; in the middle the even one is nearest.
  const auto up_to = [&](Word m) {
    const int middle = compared(2 * m + 1, lowest - 1, log);
    return middle > 0 || (middle == 0 && m % 2 == 0);
  };
  while (mantissa > 0 && up_to(mantissa - 1)) --mantissa;
  while (!up_to(mantissa)) ++mantissa;
  return std::ldexp(static_cast<double>(mantissa), lowest);
}

}  // namespace

void multiply(std::span<Word> factors, double x) {
  const auto count = [&](Count which) { wide::add(factors, 1, 64 * which, false); };
  if (std::isnan(x)) return count(nans);
  if (std::signbit(x)) count(negatives);
  if (x == 0) return count(zeros);
  if (std::isinf(x)) return count(infinities);
  const wide::Parts parts = wide::parts_of(x);
  std::vector<Word> log(log_words);
  add_log2(log, parts.magnitude, parts.exponent);
  // A negative logarithm borrows from the counts above it.
  const bool negative = (log.back() >> 63U) != 0;
  std::vector<Word> all(factors.size(), negative ? ~Word{0} : 0);
  std::copy(log.begin(), log.end(), all.begin());
  wide::add(factors, all);
}

double multiplied(std::span<const Word> factors) {
  std::vector<Word> words(factors.begin(), factors.end());
  const std::span<const Word> log(words.data(), log_words);
  if ((log.back() >> 63U) != 0) wide::add(words, 1, 64 * negatives, false);
  const double sign = words[negatives] % 2 == 1 ? -1 : 1;
  if (words[nans] > 0 || (words[zeros] > 0 && words[infinities] > 0))
    return std::numeric_limits<double>::quiet_NaN();
  if (words[zeros] > 0) return sign * 0.0;
  if (words[infinities] > 0) return sign * std::numeric_limits<double>::infinity();
  return sign * power_of_two(log);
}

}  // namespace starfold::exact

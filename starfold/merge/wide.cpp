#include "starfold/merge/wide.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace starfold::wide {
namespace {

constexpr std::size_t word_bits = 64;

void trim(std::vector<Word>& words) {
  while (!words.empty() && words.back() == 0) words.pop_back();
}

bool less(const std::vector<Word>& a, const std::vector<Word>& b) {
  if (a.size() != b.size()) return a.size() < b.size();
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

// a - b of magnitudes, a >= b; or a + b.
std::vector<Word> joined(std::vector<Word> a, const std::vector<Word>& b, bool minus) {
  a.resize(std::max(a.size(), b.size()) + 1);
  Word carry = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Word other = i < b.size() ? b[i] : 0;
    if (i >= b.size() && carry == 0) break;
    Word out = 0;
    if (minus) {
      const bool first = __builtin_sub_overflow(a[i], other, &out);
      carry = Word{__builtin_sub_overflow(out, carry, &out)} | Word{first};
    } else {
      const bool first = __builtin_add_overflow(a[i], other, &out);
      carry = Word{__builtin_add_overflow(out, carry, &out)} | Word{first};
    }
    a[i] = out;
  }
  trim(a);
  return a;
}

std::size_t bit_length(const std::vector<Word>& words) {
  if (words.empty()) return 0;
  return words.size() * word_bits - static_cast<std::size_t>(std::countl_zero(words.back()));
}

bool bit(const std::vector<Word>& words, std::size_t at) {
  return at / word_bits < words.size() && ((words[at / word_bits] >> (at % word_bits)) & 1U) != 0;
}

bool any_below(const std::vector<Word>& words, std::size_t at) {
  for (std::size_t i = 0; i < std::min(at / word_bits, words.size()); ++i)
    if (words[i] != 0) return true;
  if (at / word_bits >= words.size() || at % word_bits == 0) return false;
  return (words[at / word_bits] << (word_bits - at % word_bits)) != 0;
}

// The bits first, ..., first + count - 1, for count <= 128.
Word2 bits(const std::vector<Word>& words, std::size_t first, std::size_t count) {
  Word2 result = 0;
  for (std::size_t i = count; i-- > 0;) result = (result << 1U) | Word2{bit(words, first + i)};
  return result;
}

std::vector<Word> shifted_up(const std::vector<Word>& words, std::size_t by_words) {
  std::vector<Word> result(by_words);
  result.insert(result.end(), words.begin(), words.end());
  return result;
}

// words /= divisor; true when something was left over.
bool divide(std::vector<Word>& words, Word divisor) {
  Word2 left = 0;
  for (std::size_t i = words.size(); i-- > 0;) {
    left = (left << word_bits) | words[i];
    words[i] = static_cast<Word>(left / divisor);
    left %= divisor;
  }
  trim(words);
  return left != 0;
}

// The largest whole number whose square is at most x.
Word floor_root(Word2 x) {
  Word root = 0;
  for (int at = 63; at >= 0; --at) {
    const Word next = root | (Word{1} << static_cast<unsigned>(at));
    if (Word2{next} * next <= x) root = next;
  }
  return root;
}

}  // namespace

void add(std::span<Word> into, std::span<const Word> from) {
  Word carry = 0;
  for (std::size_t i = 0; i < into.size(); ++i) {
    const Word2 sum = Word2{into[i]} + from[i] + carry;
    into[i] = static_cast<Word>(sum);
    carry = static_cast<Word>(sum >> word_bits);
  }
}

void add(std::span<Word> into, Word2 magnitude, std::size_t bit, bool negative) {
  const std::size_t shift = bit % word_bits;
  const Word low = static_cast<Word>(magnitude);
  const Word high = static_cast<Word>(magnitude >> word_bits);
  const Word parts[3] = {low << shift, shift == 0 ? high : (high << shift) | (low >> (64 - shift)),
                         shift == 0 ? 0 : high >> (64 - shift)};
  Word carry = 0;
  for (std::size_t k = 0, i = bit / word_bits; i < into.size(); ++k, ++i) {
    if (k >= 3 && carry == 0) return;
    const Word part = k < 3 ? parts[k] : 0;
    Word out = 0;
    if (negative) {
      const bool first = __builtin_sub_overflow(into[i], part, &out);
      carry = Word{__builtin_sub_overflow(out, carry, &out)} | Word{first};
    } else {
      const bool first = __builtin_add_overflow(into[i], part, &out);
      carry = Word{__builtin_add_overflow(out, carry, &out)} | Word{first};
    }
    into[i] = out;
  }
}

Whole whole(std::span<const Word> words) {
  Whole result{{words.begin(), words.end()}, !words.empty() && (words.back() >> 63U) != 0};
  if (result.negative) {
    bool carry = true;
    for (Word& word : result.words) {
      word = ~word + (carry ? 1 : 0);
      carry = carry && word == 0;
    }
  }
  trim(result.words);
  return result;
}

Whole product(const Whole& a, const Whole& b) {
  Whole result{std::vector<Word>(a.words.size() + b.words.size()), a.negative != b.negative};
  for (std::size_t i = 0; i < a.words.size(); ++i) {
    Word carry = 0;
    for (std::size_t j = 0; j < b.words.size(); ++j) {
      const Word2 sum = Word2{a.words[i]} * b.words[j] + result.words[i + j] + carry;
      result.words[i + j] = static_cast<Word>(sum);
      carry = static_cast<Word>(sum >> word_bits);
    }
    result.words[i + b.words.size()] = carry;
  }
  trim(result.words);
  result.negative = result.negative && !result.is_zero();
  return result;
}

Whole difference(const Whole& a, const Whole& b) {
  if (a.negative != b.negative) return {joined(a.words, b.words, false), a.negative};
  if (a.words == b.words) return {};
  const bool smaller = less(a.words, b.words);
  return {smaller ? joined(b.words, a.words, true) : joined(a.words, b.words, true),
          a.negative != smaller};
}

double nearest(const Whole& number, int exponent, bool more) {
  const std::vector<Word>& words = number.words;
  if (words.empty()) return 0;
  const std::size_t length = bit_length(words);
  // Small numbers have fewer bits: none ends below 2^-1074.
  const int top = static_cast<int>(length) + exponent;
  const int keep = std::min(53, top + 1074);
  if (keep < 0) return number.negative ? -0.0 : 0.0;
  const auto kept = static_cast<std::size_t>(keep);
  double magnitude = 0;
  if (kept >= length) {
    magnitude = static_cast<double>(words[0]);
    return std::ldexp(number.negative ? -magnitude : magnitude, exponent);
  }
  const std::size_t shift = length - kept;
  auto mantissa = static_cast<Word>(bits(words, shift, kept));
  if (bit(words, shift - 1)) {
    const bool above_half = more || any_below(words, shift - 1);
    if (above_half || (mantissa & 1U) != 0) ++mantissa;
  }
  magnitude = std::ldexp(static_cast<double>(mantissa), static_cast<int>(shift) + exponent);
  return number.negative ? -magnitude : magnitude;
}

double nearest_quotient(const Whole& number, int exponent, std::span<const Word> divisors) {
  // More bits than a double holds stay after each division.
  Whole quotient{shifted_up(number.words, divisors.size() + 2), number.negative};
  bool more = false;
  for (const Word divisor : divisors) more = divide(quotient.words, divisor) || more;
  return nearest(quotient, exponent - static_cast<int>(word_bits * (divisors.size() + 2)), more);
}

double nearest_root(const Whole& number, int exponent) {
  if (number.is_zero()) return 0;
  // The first 127 or 128 bits as a multiple of an even power of two, also where there are fewer.
  const std::vector<Word> words = shifted_up(number.words, 2);
  std::size_t cut = bit_length(words) - 127;
  if ((static_cast<int>(cut) - 128 + exponent) % 2 != 0) --cut;
  const Word2 first = bits(words, cut, 128);
  const Word root = floor_root(first);
  const bool more = Word2{root} * root != first || any_below(words, cut);
  return nearest({{root}, false}, (static_cast<int>(cut) - 128 + exponent) / 2, more);
}

Parts parts_of(double x) {
  const auto pattern = std::bit_cast<Word>(x);
  const auto biased = static_cast<int>((pattern >> 52U) & 0x7ffU);
  const Word fraction = pattern & ((Word{1} << 52U) - 1);
  return {biased == 0 ? fraction : fraction | (Word{1} << 52U), (biased == 0 ? 1 : biased) - 1075,
          (pattern >> 63U) != 0};
}

}  // namespace starfold::wide

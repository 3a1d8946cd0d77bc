// Integers of a fixed number of 64-bit words, the least significant first, in two's complement: sums without rounding.
// Addition is modulo 2^(64 words), so the order of summands never shows, and what overflows on the way comes back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace starfold::wide {

using Word = std::uint64_t;
__extension__ using Word2 = unsigned __int128;

// into += from; both have the same number of words.
void add(std::span<Word> into, std::span<const Word> from);

// into += magnitude * 2^bit, or -= it.
void add(std::span<Word> into, Word2 magnitude, std::size_t bit, bool negative);

// A whole number with its sign, as large as it must be: for what is done once, after the last summand.
struct Whole {
  std::vector<Word> words;  // of its magnitude; none for 0
  bool negative = false;
  bool is_zero() const { return words.empty(); }
};

// The number that these words hold.
Whole whole(std::span<const Word> words);
Whole product(const Whole& a, const Whole& b);
Whole difference(const Whole& a, const Whole& b);

// The double nearest to number * 2^exponent, ties to the even one; with `more`, the number is a little larger in
// magnitude than said, by less than one.
double nearest(const Whole& number, int exponent, bool more = false);
// The same of number * 2^exponent / divisors, which are positive.
double nearest_quotient(const Whole& number, int exponent, std::span<const Word> divisors);
// The same of its square root; the number is not negative.
double nearest_root(const Whole& number, int exponent);

// A double is magnitude * 2^exponent, with exponent >= -1074; it must be finite.
struct Parts {
  Word magnitude = 0;
  int exponent = 0;
  bool negative = false;
};
Parts parts_of(double x);

}  // namespace starfold::wide

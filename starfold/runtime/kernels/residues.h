// Sums of products of whole numbers of up to 70 bits, found from three things: what they are modulo 2^52, what they are modulo
// 2^52 - 1, and what they are about. Products of 52 bits are single instructions of some processors (AVX-512 IFMA).
#pragma once

#include <cstddef>
#include <cstdint>

namespace starfold::kernels::residues {

// A number is x / 2^unit, at most 2^bits in magnitude.
inline constexpr int bits = 70;
// Of so many products the sum is known well enough in doubles; see gram.
inline constexpr std::size_t most_records = 512;
// A sum is out[0] + 2^52 out[plane] + 2^104 out[2 * plane].
inline constexpr std::size_t sums = 3;
inline constexpr int sum_bits = 52;

// Whether this process may use them, and has nothing better.
bool available();

struct Cut {
  double top = 0;       // the largest magnitude
  bool rests = false;   // a number is no multiple of 2^unit, or not finite
  unsigned zeros = 52;  // so many last bits are 0 in all numbers
};
// Residues of x / 2^unit, rounded to whole numbers: modulo 2^52 in `low`, modulo 2^52 - 1 in `folded`. Zeros up to a multiple of
// kPad.
Cut cut(const double* x, int unit, std::uint64_t* low, std::uint64_t* folded, std::size_t n);
// What such a number leaves over.
double rest(double x, int unit);

// Columns that were cut.
struct Columns {
  const double* const* numbers = nullptr;
  const std::uint64_t* const* low = nullptr;
  const std::uint64_t* const* folded = nullptr;
  const double* scales = nullptr;  // 2^-unit of each
  std::size_t count = 0;
};
// Adds the sum of a_i * b_j for n records to out[i * b.count + j], in three parts; with `upper` where i <= j, and maybe where not.
void gram(const Columns& a, const Columns& b, bool upper, std::int64_t* out, std::size_t plane,
          std::size_t n);

}  // namespace starfold::kernels::residues

#include "starfold/runtime/kernels/residues.h"

#include "starfold/base/error.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <hwy/highway.h>
#include <hwy/targets.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>

#include "starfold/runtime/kernels/byte_tiles.h"

namespace starfold::kernels::residues {
namespace {

bool has_instructions() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned avx512_ifma = 1U << 21U;
  return (b & avx512_ifma) != 0;
}

#define STARFOLD_RESIDUES \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,fma")))
#define STARFOLD_RESIDUES_INLINE STARFOLD_RESIDUES inline __attribute__((always_inline))

constexpr std::uint64_t all_ones = (std::uint64_t{1} << 52U) - 1;

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52U);
}

// x + this has x as a multiple of 2^unit in its last bits.
double shift_to(int unit) { return 1.5 * power_of_two(unit + 52); }

constexpr std::size_t lanes = 8;
constexpr std::size_t side = 4;  // columns of each side that are multiplied at once

STARFOLD_RESIDUES_INLINE __mmask8 first(std::size_t count) {
  return static_cast<__mmask8>((1U << std::min(count, lanes)) - 1U);
}

// With a mask, since GCC warns of what its other forms leave undefined.
constexpr __mmask8 all = 0xFF;

// The sums of the numbers of each of eight vectors.
STARFOLD_RESIDUES_INLINE __m512i totals(const __m512i* v) {
  __m512i pairs[4];
  for (int i = 0; i < 4; ++i)
    pairs[i] = _mm512_add_epi64(_mm512_maskz_unpacklo_epi64(all, v[2 * i], v[2 * i + 1]),
                                _mm512_maskz_unpackhi_epi64(all, v[2 * i], v[2 * i + 1]));
  __m512i fours[2];
  for (int i = 0; i < 2; ++i)
    fours[i] =
        _mm512_add_epi64(_mm512_maskz_shuffle_i64x2(all, pairs[2 * i], pairs[2 * i + 1], 0x88),
                         _mm512_maskz_shuffle_i64x2(all, pairs[2 * i], pairs[2 * i + 1], 0xDD));
  return _mm512_add_epi64(_mm512_maskz_shuffle_i64x2(all, fours[0], fours[1], 0x88),
                          _mm512_maskz_shuffle_i64x2(all, fours[0], fours[1], 0xDD));
}

STARFOLD_RESIDUES_INLINE __m512d totals(const __m512d* v) {
  __m512d pairs[4];
  for (int i = 0; i < 4; ++i)
    pairs[i] = _mm512_add_pd(_mm512_maskz_unpacklo_pd(all, v[2 * i], v[2 * i + 1]),
                             _mm512_maskz_unpackhi_pd(all, v[2 * i], v[2 * i + 1]));
  __m512d fours[2];
  for (int i = 0; i < 2; ++i)
    fours[i] = _mm512_add_pd(_mm512_maskz_shuffle_f64x2(all, pairs[2 * i], pairs[2 * i + 1], 0x88),
                             _mm512_maskz_shuffle_f64x2(all, pairs[2 * i], pairs[2 * i + 1], 0xDD));
  return _mm512_add_pd(_mm512_maskz_shuffle_f64x2(all, fours[0], fours[1], 0x88),
                       _mm512_maskz_shuffle_f64x2(all, fours[0], fours[1], 0xDD));
}

// Four columns of each side; sides with fewer have their last one several times.
template <typename Number>
struct Sides {
  const Number* a[side];
  const Number* b[side];
  Sides(const Number* const* left, std::size_t rows, const Number* const* right,
        std::size_t across) {
    for (std::size_t k = 0; k < side; ++k) {
      a[k] = left[std::min(k, rows - 1)];
      b[k] = right[std::min(k, across - 1)];
    }
  }
};

// Sums of products as doubles have them, entry by entry of the tile.
STARFOLD_RESIDUES_INLINE void about(const Sides<double>& sides, std::size_t n, __m512d* found) {
  __m512d sum[side * side];
  for (__m512d& one : sum) one = _mm512_setzero_pd();
  std::size_t r = 0;
  for (; r + lanes <= n; r += lanes) {
    __m512d right[side];
    for (std::size_t j = 0; j < side; ++j) right[j] = _mm512_loadu_pd(sides.b[j] + r);
    for (std::size_t i = 0; i < side; ++i) {
      const __m512d left = _mm512_loadu_pd(sides.a[i] + r);
      for (std::size_t j = 0; j < side; ++j)
        sum[i * side + j] = _mm512_fmadd_pd(left, right[j], sum[i * side + j]);
    }
  }
  // What lies beyond n may be anything.
  if (r < n) {
    const __mmask8 there = first(n - r);
    __m512d right[side];
    for (std::size_t j = 0; j < side; ++j) right[j] = _mm512_maskz_loadu_pd(there, sides.b[j] + r);
    for (std::size_t i = 0; i < side; ++i) {
      const __m512d left = _mm512_maskz_loadu_pd(there, sides.a[i] + r);
      for (std::size_t j = 0; j < side; ++j)
        sum[i * side + j] = _mm512_fmadd_pd(left, right[j], sum[i * side + j]);
    }
  }
  found[0] = totals(sum);
  found[1] = totals(sum + lanes);
}

// Sums of the lower 52 bits of products; with `both` also of the upper ones, which count the same modulo 2^52 - 1.
template <bool both>
STARFOLD_RESIDUES_INLINE void modular(const Sides<std::uint64_t>& sides, std::size_t n,
                                      __m512i* found) {
  __m512i sum[side * side];
  for (__m512i& one : sum) one = _mm512_setzero_si512();
  for (std::size_t r = 0; r < n; r += lanes) {
    __m512i right[side];
    for (std::size_t j = 0; j < side; ++j) right[j] = _mm512_loadu_si512(sides.b[j] + r);
    for (std::size_t i = 0; i < side; ++i) {
      const __m512i left = _mm512_loadu_si512(sides.a[i] + r);
      for (std::size_t j = 0; j < side; ++j)
        sum[i * side + j] = _mm512_madd52lo_epu64(sum[i * side + j], left, right[j]);
      for (std::size_t j = 0; both && j < side; ++j)
        sum[i * side + j] = _mm512_madd52hi_epu64(sum[i * side + j], left, right[j]);
    }
  }
  found[0] = totals(sum);
  found[1] = totals(sum + lanes);
}

// A sum t with t = low (mod 2^52), t = folded (mod 2^52 - 1) and t / 2^52 near about: low + 2^52 k fits both where
// low + k = folded (mod 2^52 - 1), and so does every k + (2^52 - 1) q.
STARFOLD_RESIDUES_INLINE void resolve(__m512i low, __m512i folded, __m512d about, __m512i* parts) {
  const __m512i ones = _mm512_set1_epi64(static_cast<std::int64_t>(all_ones));
  parts[0] = _mm512_and_si512(low, ones);
  const __m512i reduced =
      _mm512_add_epi64(_mm512_and_si512(folded, ones), _mm512_srli_epi64(folded, 52));
  const __m512i k = _mm512_sub_epi64(reduced, parts[0]);
  const __m512d periods = _mm512_mul_pd(_mm512_sub_pd(about, _mm512_cvtepi64_pd(k)),
                                        _mm512_set1_pd(1.0 / static_cast<double>(all_ones)));
  parts[2] = _mm512_cvtpd_epi64(periods);  // to the nearest
  parts[1] = _mm512_sub_epi64(k, parts[2]);
}

// What is known of the sums of a tile.
struct Known {
  __m512d about[2];
  __m512i low[2];
  __m512i folded[2];
};

// Adds the sums of a tile.
STARFOLD_RESIDUES void settle(const Known& known, const Columns& a, std::size_t i, const Columns& b,
                              std::size_t j, std::int64_t* out, std::size_t plane) {
  const std::size_t rows = std::min(side, a.count - i);
  const std::size_t across = std::min(side, b.count - j);
  alignas(64) double scales[side * side] = {};
  for (std::size_t k = 0; k < rows; ++k) {
    for (std::size_t l = 0; l < across; ++l)
      scales[k * side + l] = a.scales[i + k] * b.scales[j + l] * 0x1p-52;
  }
  const __mmask8 there = first(across);
  for (std::size_t half = 0; half < 2; ++half) {
    __m512i parts[sums];
    resolve(known.low[half], known.folded[half],
            _mm512_mul_pd(known.about[half], _mm512_load_pd(scales + half * lanes)), parts);
    for (std::size_t row = 2 * half; row < std::min(rows, 2 * half + 2); ++row) {
      for (std::size_t k = 0; k < sums; ++k) {
        std::int64_t* const to = out + k * plane + (i + row) * b.count + j;
        const __m512i more =
            row % 2 == 0 ? parts[k] : _mm512_maskz_shuffle_i64x2(all, parts[k], parts[k], 0xEE);
        _mm512_mask_storeu_epi64(to, there,
                                 _mm512_add_epi64(_mm512_maskz_loadu_epi64(there, to), more));
      }
    }
  }
}

// Some rows by four columns, of which one kind of numbers after the other stays in the first cache while the rows pass by.
constexpr std::size_t together = 8;  // tiles of four rows
STARFOLD_RESIDUES void tiles(const Columns& a, std::size_t i, std::size_t rows, const Columns& b,
                             std::size_t j, std::int64_t* out, std::size_t plane, std::size_t n) {
  const std::size_t across = std::min(side, b.count - j);
  Known known[together];
  for (std::size_t k = 0; k < rows; k += side)
    about(Sides(a.numbers + i + k, std::min(side, rows - k), b.numbers + j, across), n,
          known[k / side].about);
  for (std::size_t k = 0; k < rows; k += side)
    modular<false>(Sides(a.low + i + k, std::min(side, rows - k), b.low + j, across), n,
                   known[k / side].low);
  for (std::size_t k = 0; k < rows; k += side)
    modular<true>(Sides(a.folded + i + k, std::min(side, rows - k), b.folded + j, across), n,
                  known[k / side].folded);
  for (std::size_t k = 0; k < rows; k += side) settle(known[k / side], a, i + k, b, j, out, plane);
}

}  // namespace

// Tiles of bytes do more at once. Who limits the vectors of kernels wants to see what other processors do.
bool available() {
  static const bool there = has_instructions();
  return there && (hwy::SupportedTargets() & (HWY_AVX3 | HWY_AVX3_DL)) != 0 &&
         !byte_tiles::available();
}

double rest(double x, int unit) {
  const double high = shift_to(unit + 52);
  const double low = shift_to(unit);
  const double more = x - ((x + high) - high);
  return more - ((more + low) - low);
}

STARFOLD_RESIDUES Cut cut(const double* x, int unit, std::uint64_t* low, std::uint64_t* folded,
                          std::size_t n) {
  const __m512d shift_high = _mm512_set1_pd(shift_to(unit + 52));
  const __m512d shift_low = _mm512_set1_pd(shift_to(unit));
  const __m512i ones = _mm512_set1_epi64(static_cast<std::int64_t>(all_ones));
  __m512d most = _mm512_setzero_pd();
  __m512d left = _mm512_setzero_pd();
  __m512i any = _mm512_setzero_si512();
  for (std::size_t r = 0; r < n; r += lanes) {
    const __m512d v = _mm512_maskz_loadu_pd(first(n - r), x + r);
    const __m512d high = _mm512_add_pd(v, shift_high);
    const __m512d more = _mm512_sub_pd(v, _mm512_sub_pd(high, shift_high));
    const __m512d rounded = _mm512_add_pd(more, shift_low);
    left = _mm512_or_pd(left, _mm512_sub_pd(more, _mm512_sub_pd(rounded, shift_low)));
    most = _mm512_max_pd(most, _mm512_abs_pd(v));
    const __m512i upper =
        _mm512_sub_epi64(_mm512_castpd_si512(high), _mm512_castpd_si512(shift_high));
    const __m512i lower =
        _mm512_sub_epi64(_mm512_castpd_si512(rounded), _mm512_castpd_si512(shift_low));
    const __m512i both = _mm512_add_epi64(upper, lower);
    // Negative ones get 2^52 - 1 added.
    const __m512i reduced = _mm512_mask_add_epi64(both, _mm512_movepi64_mask(both), both, ones);
    _mm512_storeu_si512(low + r, lower);
    _mm512_storeu_si512(folded + r, reduced);
    any = _mm512_or_si512(any, lower);
  }
  Cut found;
  alignas(64) double tops[lanes];
  _mm512_store_pd(tops, most);
  found.top = *std::max_element(tops, tops + lanes);
  found.rests = _mm512_cmp_pd_mask(_mm512_abs_pd(left), _mm512_setzero_pd(), _CMP_NEQ_UQ) != 0;
  alignas(64) std::uint64_t words[lanes];
  _mm512_store_si512(words, any);
  std::uint64_t together = 0;
  for (const std::uint64_t word : words) together |= word;
  found.zeros = static_cast<unsigned>(std::min(52, std::countr_zero(together)));
  return found;
}

STARFOLD_RESIDUES void gram(const Columns& a, const Columns& b, bool upper, std::int64_t* out,
                            std::size_t plane, std::size_t n) {
  if (n > most_records) throw Bug("more records than their sums are known for");
  // All columns pass by the same rows, which stay in the second cache: those of a whole block need not fit into it.
  for (std::size_t i = 0; i < a.count; i += together * side) {
    for (std::size_t j = upper ? i : 0; j < b.count; j += side) {
      const std::size_t end = upper ? std::min(a.count, j + side) : a.count;
      tiles(a, i, std::min(together * side, end - i), b, j, out, plane, n);
    }
  }
}

}  // namespace starfold::kernels::residues

#else

namespace starfold::kernels::residues {

bool available() { return false; }
double rest(double /*x*/, int /*unit*/) { throw Bug("no products of 52 bits here"); }
Cut cut(const double* /*x*/, int /*unit*/, std::uint64_t* /*low*/, std::uint64_t* /*folded*/,
        std::size_t /*n*/) {
  throw Bug("no products of 52 bits here");
}
void gram(const Columns& /*a*/, const Columns& /*b*/, bool /*upper*/, std::int64_t* /*out*/,
          std::size_t /*plane*/, std::size_t /*n*/) {
  throw Bug("no products of 52 bits here");
}

}  // namespace starfold::kernels::residues

#endif

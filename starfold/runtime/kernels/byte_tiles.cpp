#include "starfold/runtime/kernels/byte_tiles.h"

#include "starfold/base/error.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <hwy/highway.h>
#include <hwy/targets.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace starfold::kernels::byte_tiles {
namespace {

// The processor has them, and the system keeps their registers for this process, which must ask for that once.
bool ask() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned amx_tile = 1U << 24U;
  constexpr unsigned amx_int8 = 1U << 25U;
  constexpr unsigned avx512 = (1U << 16U) | (1U << 17U) | (1U << 30U) | (1U << 31U);
  constexpr unsigned avx512_vbmi = 1U << 1U;
  if ((d & amx_tile) == 0 || (d & amx_int8) == 0 || (b & avx512) != avx512 ||
      (c & avx512_vbmi) == 0)
    return false;
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long tile_data = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

struct alignas(64) Configuration {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

#define STARFOLD_TILES \
  __attribute__((target("amx-tile,amx-int8,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))

// Eight tiles of 16 rows of 64 bytes. Compilers do not see that all of it is read: it must lie in memory already.
Configuration eight_tiles() {
  Configuration configuration;
  for (std::size_t i = 0; i < 8; ++i) {
    configuration.row_bytes[i] = 64;
    configuration.rows[i] = 16;
  }
  return configuration;
}
const Configuration configuration = eight_tiles();

using Sums = std::int64_t[columns * columns];

// into += found * 256^byte.
STARFOLD_TILES void add_shifted(const std::int32_t* found, std::size_t byte, Sums& into) {
  const auto shift = static_cast<unsigned>(8 * byte);
  for (std::size_t i = 0; i < columns * columns; i += 8) {
    const __m512i wide =
        _mm512_cvtepi32_epi64(_mm256_load_si256(reinterpret_cast<const __m256i*>(found + i)));
    const __m512i sum =
        _mm512_add_epi64(_mm512_load_si512(into + i), _mm512_slli_epi64(wide, shift));
    _mm512_store_si512(into + i, sum);
  }
}

// Which bytes of 32 integers make up two digits of them, and which the third.
struct Places {
  alignas(64) std::uint8_t two[64];
  alignas(64) std::uint8_t third[64];
  Places() {
    for (std::size_t i = 0; i < 64; ++i) {
      two[i] = static_cast<std::uint8_t>(i < 32 ? 4 * i : 4 * (i - 32) + 1);
      third[i] = static_cast<std::uint8_t>(i < 32 ? 4 * i + 2 : 0);
    }
  }
};
const Places byte_places;

}  // namespace

// Who limits the vectors of kernels wants to see what processors without these instructions do.
bool available() {
  static const bool there = ask();
  return there && (hwy::SupportedTargets() & (HWY_AVX3 | HWY_AVX3_DL)) != 0;
}

// A number between -128 and 127 in each byte: with 128 added to each of them an integer has them as its bytes.
STARFOLD_TILES unsigned cut(const double* x, const double* shifts, const double* scales,
                            std::int8_t* out, std::size_t stride, double* top, std::size_t n) {
  const __m512i balance = _mm512_set1_epi32(0x00808080);
  const __m512i two = _mm512_load_si512(byte_places.two);
  const __m512i third = _mm512_load_si512(byte_places.third);
  __m512d most = _mm512_setzero_pd();
  __m512d left = _mm512_setzero_pd();
  __m512i any[digits];
  for (__m512i& digit : any) digit = _mm512_setzero_si512();
  for (std::size_t first = 0; first < n; first += records) {
    __m512d rest[8];
    for (std::size_t v = 0; v < 8; ++v) {
      const std::size_t at = first + 8 * v;
      const std::size_t there = at < n ? std::min<std::size_t>(n - at, 8) : 0;
      rest[v] = _mm512_maskz_loadu_pd(static_cast<__mmask8>((1U << there) - 1U), x + at);
      most = _mm512_max_pd(most, _mm512_abs_pd(rest[v]));
    }
    __m512i words[slices][4];
    for (std::size_t w = 0; w < 4; ++w) {
      for (std::size_t k = 0; k < slices; ++k) {
        const __m512d grid = _mm512_set1_pd(shifts[k]);
        const __m512d scale = _mm512_set1_pd(scales[k]);
        __m256i half[2];
        for (std::size_t h = 0; h < 2; ++h) {
          __m512d& more = rest[2 * w + h];
          const __m512d part = _mm512_sub_pd(_mm512_add_pd(more, grid), grid);
          more = _mm512_sub_pd(more, part);
          half[h] = _mm512_cvtpd_epi32(_mm512_mul_pd(part, scale));
        }
        words[k][w] = _mm512_inserti64x4(_mm512_castsi256_si512(half[0]), half[1], 1);
      }
      // What three such bytes do not hold goes one slice up.
      for (std::size_t k = slices; k-- > 0;) {
        words[k][w] = _mm512_add_epi32(words[k][w], balance);
        if (k > 0)
          words[k - 1][w] = _mm512_add_epi32(words[k - 1][w], _mm512_srli_epi32(words[k][w], 24));
        words[k][w] = _mm512_xor_si512(words[k][w], balance);
      }
    }
    for (std::size_t k = 0; k < slices; ++k) {
      const __m512i low = _mm512_permutex2var_epi8(words[k][0], two, words[k][1]);
      const __m512i high = _mm512_permutex2var_epi8(words[k][2], two, words[k][3]);
      const __m512i third_low = _mm512_permutex2var_epi8(words[k][0], third, words[k][1]);
      const __m512i third_high = _mm512_permutex2var_epi8(words[k][2], third, words[k][3]);
      const __m512i found[bytes] = {
          _mm512_inserti64x4(low, _mm512_castsi512_si256(high), 1),
          _mm512_shuffle_i64x2(low, high, 0xEE),
          _mm512_inserti64x4(third_low, _mm512_castsi512_si256(third_high), 1)};
      for (std::size_t b = 0; b < bytes; ++b) {
        const std::size_t digit = (slices - 1 - k) * bytes + b;
        _mm512_storeu_si512(out + digit * stride + first / records * size, found[b]);
        any[digit] = _mm512_or_si512(any[digit], found[b]);
      }
    }
    for (const __m512d& more : rest) left = _mm512_or_pd(left, more);
  }
  alignas(64) double tops[8];
  _mm512_store_pd(tops, most);
  *top = *std::max_element(std::begin(tops), std::end(tops));
  unsigned present = 0;
  for (std::size_t k = 0; k < digits; ++k) {
    if (_mm512_test_epi64_mask(any[k], any[k]) != 0) present |= 1U << k;
  }
  const __m512d rests = _mm512_abs_pd(left);
  if (_mm512_cmp_pd_mask(rests, _mm512_setzero_pd(), _CMP_NEQ_UQ) != 0) present |= 1U << digits;
  return present;
}

STARFOLD_TILES void turn(const std::int8_t* tiles, std::int8_t* turned, std::size_t count) {
  const __m512i offsets =
      _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                         _mm512_set1_epi32(64));
  for (std::size_t tile = 0; tile < count; ++tile) {
    for (std::size_t four = 0; four < records / 4; ++four) {
      const __m512i all = _mm512_i32gather_epi32(offsets, tiles + tile * size + four * 4, 1);
      _mm512_store_si512(turned + tile * size + four * 64, all);
    }
  }
}

// Four places at a time: a tile of the left side is loaded once for up to four of the right, and four sums do not wait for each other.
STARFOLD_TILES void multiply(const Product& product, std::size_t tiles, std::size_t plane,
                             std::size_t row) {
  if (tiles * records > most_records) throw Bug("more records than sums of bytes have room for");
  _tile_loadconfig(&configuration);
  alignas(64) std::int32_t found[columns * columns];
  alignas(64) Sums totals[sums] = {};
  const auto left = [&](std::size_t digit, std::size_t number) {
    return product.a.tiles + (digit * tiles + number) * size;
  };
  const auto right = [&](std::size_t digit, std::size_t number) {
    return product.b.tiles + (digit * tiles + number) * size;
  };
  for (std::size_t place = 0; place < places; place += 4) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (std::size_t p = 0; p < digits; ++p) {
      if ((product.a.present >> p & 1U) == 0) continue;
      const auto there = [&](std::size_t q) {
        return q < digits && (product.b.present >> q & 1U) != 0;
      };
      // Below 0 is far above all digits.
      const std::size_t q = place - p;
      const bool some[4] = {there(q), there(q + 1), there(q + 2), there(q + 3)};
      if (!some[0] && !some[1] && !some[2] && !some[3]) continue;
      for (std::size_t number = 0; number < tiles; ++number) {
        _tile_loadd(4, left(p, number), 64);
        if (some[0]) {
          _tile_loadd(5, right(q, number), 64);
          _tile_dpbssd(0, 4, 5);
        }
        if (some[1]) {
          _tile_loadd(6, right(q + 1, number), 64);
          _tile_dpbssd(1, 4, 6);
        }
        if (some[2]) {
          _tile_loadd(7, right(q + 2, number), 64);
          _tile_dpbssd(2, 4, 7);
        }
        if (some[3]) {
          _tile_loadd(5, right(q + 3, number), 64);
          _tile_dpbssd(3, 4, 5);
        }
      }
    }
    const auto settle = [&](std::size_t at) { add_shifted(found, at % 3, totals[at / 3]); };
    _tile_stored(0, found, 64);
    settle(place);
    if (place + 1 >= places) break;
    _tile_stored(1, found, 64);
    settle(place + 1);
    _tile_stored(2, found, 64);
    settle(place + 2);
    _tile_stored(3, found, 64);
    settle(place + 3);
  }
  _tile_release();
  const unsigned across = (1U << product.across) - 1U;
  const auto low = static_cast<__mmask8>(across);
  const auto high = static_cast<__mmask8>(across >> 8U);
  for (std::size_t k = 0; k < sums; ++k) {
    for (std::size_t i = 0; i < product.rows; ++i) {
      std::int64_t* const to = product.out + k * plane + i * row;
      const std::int64_t* const from = totals[k] + i * columns;
      const __m512i first = _mm512_maskz_loadu_epi64(low, to);
      const __m512i second = _mm512_maskz_loadu_epi64(high, to + 8);
      _mm512_mask_storeu_epi64(to, low, _mm512_add_epi64(first, _mm512_load_si512(from)));
      _mm512_mask_storeu_epi64(to + 8, high, _mm512_add_epi64(second, _mm512_load_si512(from + 8)));
    }
  }
}

}  // namespace starfold::kernels::byte_tiles

#else

namespace starfold::kernels::byte_tiles {

bool available() { return false; }
unsigned cut(const double* /*x*/, const double* /*shifts*/, const double* /*scales*/,
             std::int8_t* /*out*/, std::size_t /*stride*/, double* /*top*/, std::size_t /*n*/) {
  throw Bug("no tiles of bytes here");
}
void turn(const std::int8_t* /*tiles*/, std::int8_t* /*turned*/, std::size_t /*count*/) {
  throw Bug("no tiles of bytes here");
}
void multiply(const Product& /*product*/, std::size_t /*tiles*/, std::size_t /*plane*/,
              std::size_t /*row*/) {
  throw Bug("no tiles of bytes here");
}

}  // namespace starfold::kernels::byte_tiles

#endif

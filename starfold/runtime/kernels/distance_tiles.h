// Squared distances of records from points, a few of both at a time. Included once per instruction set.
#if defined(STARFOLD_RUNTIME_KERNELS_DISTANCE_TILES_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STARFOLD_RUNTIME_KERNELS_DISTANCE_TILES_H_
#undef STARFOLD_RUNTIME_KERNELS_DISTANCE_TILES_H_
#else
#define STARFOLD_RUNTIME_KERNELS_DISTANCE_TILES_H_
#endif

#include "hwy/highway.h"
#include "starfold/runtime/kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace starfold::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, kPad>;
using V = hn::Vec<D>;
using Columns = const double* const*;

// As many groups of records as the registers hold for four points.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
inline constexpr std::size_t kGroups = 2;
#else
inline constexpr std::size_t kGroups = 4;
#endif

// a * b + c, in one rounding where the processor has such an instruction, or in two everywhere.
struct Fused {
  static HWY_INLINE V add(V a, V b, V c) { return hn::MulAdd(a, b, c); }
};
struct Rounded {
  static HWY_INLINE V add(V a, V b, V c) { return hn::Add(hn::Mul(a, b), c); }
};

// J points and G groups of records at once: each number of a point is read once for all groups.
template <class With, std::size_t J, std::size_t G>
HWY_INLINE void distances_tile(Columns columns, std::size_t count, Columns points,
                               std::size_t stride, double* const* out, std::size_t i,
                               std::size_t out_i) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V sum[G][J];
  for (std::size_t g = 0; g < G; ++g) {
    for (std::size_t j = 0; j < J; ++j) sum[g][j] = hn::Zero(d);
  }
  for (std::size_t k = 0; k < count; ++k) {
    V x[G];
    for (std::size_t g = 0; g < G; ++g) x[g] = hn::Load(d, columns[k] + i + g * lanes);
    for (std::size_t j = 0; j < J; ++j) {
      const V point = hn::Set(d, points[j][k * stride]);
      for (std::size_t g = 0; g < G; ++g) {
        const V difference = hn::Sub(x[g], point);
        sum[g][j] = With::add(difference, difference, sum[g][j]);
      }
    }
  }
  for (std::size_t g = 0; g < G; ++g) {
    for (std::size_t j = 0; j < J; ++j) hn::Store(sum[g][j], d, out[j] + out_i + g * lanes);
  }
}

}  // namespace starfold::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

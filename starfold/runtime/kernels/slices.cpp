// Columns in slices, and the sums of slices. Whatever the order of adding, no sum here is rounded.
#include <limits>

#include "starfold/runtime/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starfold/runtime/kernels/slices.cpp"
#include "starfold/runtime/kernels/targets.h"

#include "hwy/foreach_target.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace starfold::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, kPad>;
using V = hn::Vec<D>;

// The numbers of a vector that exist; zeros for the others.
HWY_INLINE V present(const double* x, std::size_t i, std::size_t n) {
  const D d;
  const V v = hn::Load(d, x + i);
  return i + hn::Lanes(d) <= n ? v : hn::IfThenElseZero(hn::FirstN(d, n - i), v);
}

HWY_INLINE bool any_bit(V v) {
  const D d;
  // Zeros may have a sign; a nan is not 0.
  return !hn::AllTrue(d, hn::Eq(hn::Abs(v), hn::Zero(d)));
}

// 0 for finite numbers, nan for the others.
HWY_INLINE V flaw(V x) { return hn::Sub(x, x); }

double top(const double* x, std::size_t n) {
  const D d;
  V most = hn::Zero(d);
  V flaws = hn::Zero(d);
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const V v = present(x, i, n);
    most = hn::Max(most, hn::Abs(v));
    flaws = hn::Add(flaws, flaw(v));
  }
  if (any_bit(flaws)) return std::numeric_limits<double>::quiet_NaN();
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

bool split(const double* x, double shift, double* slice, double* rest, std::size_t n) {
  const D d;
  const V grid = hn::Set(d, shift);
  V left = hn::Zero(d);
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const V v = present(x, i, n);
    const V part = hn::Sub(hn::Add(v, grid), grid);
    const V more = hn::Sub(v, part);
    hn::Store(part, d, slice + i);
    hn::Store(more, d, rest + i);
    left = hn::Or(left, hn::Abs(more));
  }
  return any_bit(left);
}

unsigned cut(const double* x, const double* shifts, const double* scales, double* const* slices,
             std::size_t levels, double* rest, double* largest, std::size_t n) {
  const D d;
  const V grid_1 = hn::Set(d, shifts[0]);
  const V grid_2 = hn::Set(d, shifts[1]);
  const V grid_3 = hn::Set(d, shifts[2]);
  const V scale_1 = hn::Set(d, scales[0]);
  const V scale_2 = hn::Set(d, scales[1]);
  const V scale_3 = hn::Set(d, scales[2]);
  V any_1 = hn::Zero(d);
  V any_2 = hn::Zero(d);
  V any_3 = hn::Zero(d);
  V left = hn::Zero(d);
  V most = hn::Zero(d);
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const V v = present(x, i, n);
    const V part_1 = hn::Sub(hn::Add(v, grid_1), grid_1);
    const V more_1 = hn::Sub(v, part_1);
    const V part_2 = hn::Sub(hn::Add(more_1, grid_2), grid_2);
    const V more_2 = hn::Sub(more_1, part_2);
    const V part_3 = hn::Sub(hn::Add(more_2, grid_3), grid_3);
    const V more_3 = hn::Sub(more_2, part_3);
    const V whole_1 = hn::Mul(part_1, scale_1);
    const V whole_2 = hn::Mul(part_2, scale_2);
    const V whole_3 = hn::Mul(part_3, scale_3);
    hn::Store(whole_1, d, slices[0] + i);
    hn::Store(whole_2, d, slices[1] + i);
    hn::Store(whole_3, d, slices[2] + i);
    if (levels == 6) {
      hn::Store(hn::Add(whole_1, whole_2), d, slices[3] + i);
      hn::Store(hn::Add(whole_1, whole_3), d, slices[4] + i);
      hn::Store(hn::Add(whole_2, whole_3), d, slices[5] + i);
    }
    hn::Store(more_3, d, rest + i);
    any_1 = hn::Or(any_1, part_1);
    any_2 = hn::Or(any_2, part_2);
    any_3 = hn::Or(any_3, part_3);
    left = hn::Or(left, more_3);
    most = hn::Max(most, hn::Abs(v));
  }
  *largest = hn::GetLane(hn::MaxOfLanes(d, most));
  return (any_bit(any_1) ? 1U : 0U) | (any_bit(any_2) ? 2U : 0U) | (any_bit(any_3) ? 4U : 0U) |
         (any_bit(left) ? 8U : 0U);
}

bool sums(const double* x, double first, double second, double* results, double* largest,
          std::size_t n) {
  const D d;
  const V grid_1 = hn::Set(d, first);
  const V grid_2 = hn::Set(d, second);
  V sum_1 = hn::Zero(d);
  V sum_2 = hn::Zero(d);
  V left = hn::Zero(d);
  V most = hn::Zero(d);
  constexpr std::size_t ahead = 256;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    // The next column of a block mostly follows: it should be on its way while this one is finished.
    hwy::Prefetch(x + i + ahead);
    const V v = present(x, i, n);
    const V part_1 = hn::Sub(hn::Add(v, grid_1), grid_1);
    const V more = hn::Sub(v, part_1);
    const V part_2 = hn::Sub(hn::Add(more, grid_2), grid_2);
    sum_1 = hn::Add(sum_1, part_1);
    sum_2 = hn::Add(sum_2, part_2);
    left = hn::Or(left, hn::Sub(more, part_2));
    most = hn::Max(most, hn::Abs(v));
  }
  results[0] = hn::GetLane(hn::SumOfLanes(d, sum_1));
  results[1] = hn::GetLane(hn::SumOfLanes(d, sum_2));
  *largest = hn::GetLane(hn::MaxOfLanes(d, most));
  return any_bit(left);
}

constexpr Slices kSlices = {top, split, cut, sums};

}  // namespace

const Slices& find_slices() { return kSlices; }

}  // namespace starfold::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starfold::kernels {

HWY_EXPORT(find_slices);

const Slices& slices() { return HWY_DYNAMIC_DISPATCH(find_slices)(); }

}  // namespace starfold::kernels
#endif

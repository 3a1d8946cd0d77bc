// Sums of products of slices, as whole numbers. A lane of a vector adds up so few products that its sum is exact in a
// double; lanes are then added as integers.
#include <algorithm>

#include "starfold/runtime/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starfold/runtime/kernels/whole_products.cpp"
#include "starfold/runtime/kernels/targets.h"

#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace starfold::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, kPad>;
using V = hn::Vec<D>;
using Integers = hn::RebindToSigned<D>;
using Columns = const double* const*;

// As many columns on the right as the registers hold beside four on the left.
constexpr std::size_t kRows = 4;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
constexpr std::size_t kAcross = 2;
#else
constexpr std::size_t kAcross = 4;
#endif
// Columns that stay in the first cache while the rows pass by.
constexpr std::size_t kPanel = 16;

HWY_INLINE std::int64_t whole(V sum) {
  return hn::GetLane(hn::SumOfLanes(Integers(), hn::ConvertTo(Integers(), sum)));
}

HWY_INLINE V present(const double* x, std::size_t i, std::size_t n) {
  const D d;
  const V v = hn::Load(d, x + i);
  return i + hn::Lanes(d) <= n ? v : hn::IfThenElseZero(hn::FirstN(d, n - i), v);
}

// out[i * row + j] += the sum of a_i * b_j, where numbers beyond n are 0.
template <std::size_t I, std::size_t J>
HWY_INLINE void tile(Columns a, Columns b, std::int64_t* out, std::size_t row, std::size_t n) {
  const D d;
  const std::size_t step = hn::Lanes(d);
  const double* x[I];
  const double* y[J];
  for (std::size_t i = 0; i < I; ++i) x[i] = a[i];
  for (std::size_t j = 0; j < J; ++j) y[j] = b[j];
  for (std::size_t r = 0; r < n;) {
    const std::size_t end = std::min(n, r + kWholeTerms * step);
    V sum[I][J];
    for (std::size_t i = 0; i < I; ++i) {
      for (std::size_t j = 0; j < J; ++j) sum[i][j] = hn::Zero(d);
    }
    for (; r < end; r += step) {
      V right[J];
      for (std::size_t j = 0; j < J; ++j) right[j] = hn::Load(d, y[j] + r);
      for (std::size_t i = 0; i < I; ++i) {
        const V left = hn::Load(d, x[i] + r);
        for (std::size_t j = 0; j < J; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
      }
    }
    for (std::size_t i = 0; i < I; ++i) {
      for (std::size_t j = 0; j < J; ++j) out[i * row + j] += whole(sum[i][j]);
    }
  }
}

template <std::size_t I>
void tile_rows(Columns a, Columns b, std::size_t across, std::int64_t* out, std::size_t row,
               std::size_t n) {
  std::size_t j = 0;
  for (; j + kAcross <= across; j += kAcross) tile<I, kAcross>(a, b + j, out + j, row, n);
  for (; j < across; ++j) tile<I, 1>(a, b + j, out + j, row, n);
}

void gram(Columns a, std::size_t rows, Columns b, std::size_t columns, const std::size_t* begin,
          std::int64_t* out, std::size_t n) {
  for (std::size_t first = 0; first < columns; first += kPanel) {
    const std::size_t last = std::min(first + kPanel, columns);
    for (std::size_t i = 0; i < rows;) {
      const std::size_t left = rows - i;
      const std::size_t together = left >= kRows ? kRows : left >= 2 ? 2 : 1;
      // Tiles are computed whole.
      const std::size_t from = std::max(first, begin[i]);
      if (from < last) {
        std::int64_t* const into = out + i * columns + from;
        switch (together) {
          case 1:
            tile_rows<1>(a + i, b + from, last - from, into, columns, n);
            break;
          case 2:
            tile_rows<2>(a + i, b + from, last - from, into, columns, n);
            break;
          default:
            tile_rows<kRows>(a + i, b + from, last - from, into, columns, n);
            break;
        }
      }
      i += together;
    }
  }
}

// One column, cut while it passes by.
struct Passing {
  V grid_1;
  V grid_2;
  V grid_3;
  V sums[5];
  V middle;  // a part of the third sum: fewer additions that wait for each other
  V left;    // bits that are lost
  V most;

  HWY_INLINE explicit Passing(const double* shifts) {
    const D d;
    grid_1 = hn::Set(d, shifts[0]);
    grid_2 = hn::Set(d, shifts[1]);
    grid_3 = hn::Set(d, shifts[2]);
    for (V& sum : sums) sum = hn::Zero(d);
    middle = hn::Zero(d);
    left = hn::Zero(d);
    most = hn::Zero(d);
  }
  HWY_INLINE void add(V v, V y_1, V y_2, V y_3) {
    const V part_1 = hn::Sub(hn::Add(v, grid_1), grid_1);
    const V first_2 = hn::Sub(hn::Add(v, grid_2), grid_2);
    const V part_2 = hn::Sub(first_2, part_1);
    const V more = hn::Sub(v, first_2);
    const V part_3 = hn::Sub(hn::Add(more, grid_3), grid_3);
    left = hn::Or(left, hn::Xor(more, part_3));
    most = hn::Max(most, hn::Abs(v));
    sums[0] = hn::MulAdd(part_1, y_1, sums[0]);
    sums[1] = hn::MulAdd(part_1, y_2, sums[1]);
    sums[2] = hn::MulAdd(part_1, y_3, sums[2]);
    sums[3] = hn::MulAdd(part_2, y_3, sums[3]);
    sums[4] = hn::MulAdd(part_3, y_3, sums[4]);
    sums[1] = hn::MulAdd(part_2, y_1, sums[1]);
    middle = hn::MulAdd(part_2, y_2, middle);
    sums[3] = hn::MulAdd(part_3, y_2, sums[3]);
    sums[2] = hn::MulAdd(part_3, y_1, sums[2]);
  }
  HWY_INLINE void settle(const double* scales, std::int64_t* out) {
    const D d;
    left = hn::Or(left, hn::Sub(sums[0], sums[0]));  // nan where a number was not finite
    sums[2] = hn::Add(sums[2], middle);
    middle = hn::Zero(d);
    for (std::size_t k = 0; k < 5; ++k) {
      // Where a number was too large or not finite this is anything, and nobody will use it.
      const std::int64_t sum = whole(hn::Mul(sums[k], hn::Set(d, scales[k])));
      out[k] = static_cast<std::int64_t>(static_cast<std::uint64_t>(out[k]) +
                                         static_cast<std::uint64_t>(sum));
      sums[k] = hn::Zero(d);
    }
  }
  HWY_INLINE bool rests(double* top) const {
    const D d;
    *top = hn::GetLane(hn::MaxOfLanes(d, most));
    // As integers: bits alone may be a denormal number, which a program around us may have told the processor to take for 0.
    const Integers integers;
    return !hn::AllTrue(integers, hn::Eq(hn::BitCast(integers, hn::Abs(left)), hn::Zero(integers)));
  }
};

bool dot(const double* x, const double* shifts, Columns y, const double* scales, std::int64_t* out,
         double* top, std::size_t n, const double* ahead) {
  const D d;
  const std::size_t step = hn::Lanes(d);
  Passing passing(shifts);
  for (std::size_t r = 0; r < n;) {
    const std::size_t end = std::min(n, r + kWholeTerms * step);
    for (; r < end; r += step) {
      // Here is time for all of it: products with shared numbers leave it to this pass.
      if (ahead != nullptr && r % kPad == 0) __builtin_prefetch(ahead + r, 0, 2);
      passing.add(present(x, r, n), hn::Load(d, y[0] + r), hn::Load(d, y[1] + r),
                  hn::Load(d, y[2] + r));
    }
    passing.settle(scales, out);
  }
  return passing.rests(top);
}

constexpr WholeProducts kWholeProducts = {gram, dot};

}  // namespace

const WholeProducts& find_whole_products() { return kWholeProducts; }

}  // namespace starfold::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starfold::kernels {

HWY_EXPORT(find_whole_products);

const WholeProducts& whole_products() { return HWY_DYNAMIC_DISPATCH(find_whole_products)(); }

}  // namespace starfold::kernels
#endif

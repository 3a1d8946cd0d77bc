// Sums of products of columns: linear combinations, and all dot products of two sets of columns.
// Columns are contiguous in the direction that is summed, so tiles of four by four columns in
// registers need no packing, which is what a general matrix product spends its time on in blocks as
// small as ours.
#include <algorithm>
#include <type_traits>

#include "starfold/runtime/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starfold/runtime/kernels/products.cpp"
#include "starfold/runtime/kernels/targets.h"

#include "hwy/foreach_target.h"

#include "hwy/highway.h"
#include "starfold/runtime/kernels/distance_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace starfold::kernels::HWY_NAMESPACE {
namespace {

// Sixteen registers instead of thirty-two, or narrow ones.
constexpr bool kFewRegisters = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4;

// As many columns on the right as the registers hold beside four on the left.
constexpr std::size_t kRight = kFewRegisters ? 2 : 4;

// What comes after columns in memory is mostly the next block. Passes over a block that comes from memory ask for all of it, line by
// line, so that it is on its way all the time. Each of them does: a processor drops requests while it waits for many others, and the
// next pass asks for those again.
HWY_INLINE void fetch(const double* x) { __builtin_prefetch(x, 0, 2); }
constexpr std::size_t kLines = 2 * kPad;  // two lines for each turn of a loop

// Whether columns are more than the first cache holds, so that each pass over them has to fetch them again.
bool are_large(std::size_t count, std::size_t n) { return count * n > 4096; }

// How far the next block is, or 0.
std::size_t next_block(Columns columns, std::size_t count, std::size_t n) {
  const Ahead next = after(columns, count, n);
  return static_cast<std::size_t>(next.end - next.begin);
}

// At most so many columns at once where there is one result, which is read and written again each time: as many as there are registers
// for weights.
constexpr std::size_t kMany = kFewRegisters ? 8 : 12;
// At most so many sums of one column each: they hide the latency of adding.
constexpr std::size_t kSums = 8;
// While large blocks are fetched, fewer of both: columns of whole blocks lie at the same places of the first cache, of which there
// are eight, and would drive each other out.
constexpr std::size_t kManyAhead = 5;
constexpr std::size_t kSumsAhead = kFewRegisters ? 4 : 2;

// The next of as few groups of at most `most` columns as can be, all of about the same size.
constexpr std::size_t group(std::size_t left, std::size_t most) {
  const std::size_t groups = (left + most - 1) / most;
  return groups == 0 ? 0 : (left + groups - 1) / groups;
}

// Calls work with `count`, at most K, as a constant.
template <std::size_t K, class Work>
HWY_INLINE void as_constant(std::size_t count, const Work& work) {
  if constexpr (K > 1) {
    if (count < K) return as_constant<K - 1>(count, work);
  }
  work(std::integral_constant<std::size_t, K>());
}

// out_j = [out_j +] sum over K columns. With `far`, what lies `ahead` of whole turns is fetched meanwhile.
template <class With, std::size_t J, std::size_t K, bool add, bool far>
void combine_tile(Columns columns, Columns weights, std::size_t stride, double* const* out,
                  std::size_t ahead, std::size_t n) {
  const D d;
  const double* x[K];
  V w[J][K];
  double* to[J];
  for (std::size_t k = 0; k < K; ++k) {
    x[k] = columns[k];
    for (std::size_t j = 0; j < J; ++j) w[j][k] = hn::Set(d, weights[j][k * stride]);
  }
  for (std::size_t j = 0; j < J; ++j) to[j] = out[j];
  const auto step = [&](std::size_t i) HWY_ATTR {
    V sum[J];
    for (std::size_t j = 0; j < J; ++j) sum[j] = add ? hn::Load(d, to[j] + i) : hn::Zero(d);
    for (std::size_t k = 0; k < K; ++k) {
      const V v = hn::Load(d, x[k] + i);
      for (std::size_t j = 0; j < J; ++j) sum[j] = With::add(w[j][k], v, sum[j]);
    }
    for (std::size_t j = 0; j < J; ++j) hn::Store(sum[j], d, to[j] + i);
  };
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; far && i + kLines <= n; i += kLines) {
    for (std::size_t l = 0; l < kLines; l += lanes) {
      for (std::size_t k = 0; l % kPad == 0 && k < K; ++k) fetch(x[k] + (i + l + ahead));
      step(i + l);
    }
  }
  for (; i < n; i += lanes) step(i);
}

// All columns for J results of G groups of records, which stay in registers meanwhile.
template <class With, std::size_t J, std::size_t G>
void combine_groups(Columns columns, std::size_t count, Columns weights, std::size_t stride,
                    double* const* out, std::size_t i) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V sum[J][G];
  for (std::size_t j = 0; j < J; ++j) {
    for (std::size_t g = 0; g < G; ++g) sum[j][g] = hn::Zero(d);
  }
  const double* w[J];
  for (std::size_t j = 0; j < J; ++j) w[j] = weights[j];
  for (std::size_t k = 0; k < count; ++k) {
    V x[G];
    for (std::size_t g = 0; g < G; ++g) x[g] = hn::Load(d, columns[k] + i + g * lanes);
    for (std::size_t j = 0; j < J; ++j) {
      const V weight = hn::Set(d, w[j][k * stride]);
      for (std::size_t g = 0; g < G; ++g) sum[j][g] = With::add(weight, x[g], sum[j][g]);
    }
  }
  for (std::size_t j = 0; j < J; ++j) {
    for (std::size_t g = 0; g < G; ++g) hn::Store(sum[j][g], d, out[j] + i + g * lanes);
  }
}

// Few records of many columns lie close together: going through them again is cheaper than through the results. The same
// sums in the same order.
template <class With, std::size_t J>
void combine_few(Columns columns, std::size_t count, Columns weights, std::size_t stride,
                 double* const* out, std::size_t n) {
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + kGroups * lanes <= padded(n); i += kGroups * lanes)
    combine_groups<With, J, kGroups>(columns, count, weights, stride, out, i);
  for (; i < n; i += lanes) combine_groups<With, J, 1>(columns, count, weights, stride, out, i);
}

// In groups of at most `most` columns.
template <class With, std::size_t J, std::size_t most, bool far>
void combine_columns(Columns columns, std::size_t count, Columns weights, std::size_t stride,
                     double* const* out, std::size_t ahead, std::size_t n) {
  for (std::size_t k = 0; k < count;) {
    const double* rest[J];
    for (std::size_t j = 0; j < J; ++j) rest[j] = weights[j] + k * stride;
    const std::size_t next = group(count - k, most);
    as_constant<most>(next, [&](auto constant) HWY_ATTR {
      constexpr std::size_t K = decltype(constant)::value;
      if (k == 0) {
        combine_tile<With, J, K, false, far>(columns, rest, stride, out, ahead, n);
      } else {
        combine_tile<With, J, K, true, far>(columns + k, rest, stride, out, ahead, n);
      }
    });
    k += next;
  }
}

template <class With, std::size_t J>
void combine_outputs(Columns columns, std::size_t count, Columns weights, std::size_t stride,
                     double* const* out, std::size_t n) {
  constexpr std::size_t many = 16;
  if (J == 4 && n <= kFew && count >= many)
    return combine_few<With, J>(columns, count, weights, stride, out, n);
  constexpr std::size_t most = J == 1 ? kMany : 4;
  constexpr std::size_t fewer = std::min(most, kManyAhead);
  // Exact passes over the same columns take so long that they fetch all of the next block by themselves.
  constexpr bool far = std::is_same_v<With, Fused>;
  const std::size_t ahead = next_block(columns, count, n);
  if (ahead == 0)
    return combine_columns<With, J, most, false>(columns, count, weights, stride, out, 0, n);
  if (are_large(count, n))
    return combine_columns<With, J, fewer, far>(columns, count, weights, stride, out, ahead, n);
  combine_columns<With, J, most, far>(columns, count, weights, stride, out, ahead, n);
}

template <class With>
void combine(Columns columns, std::size_t count, Columns weights, std::size_t stride,
             double* const* out, std::size_t outputs, std::size_t n) {
  switch (outputs) {
    case 1:
      return combine_outputs<With, 1>(columns, count, weights, stride, out, n);
    case 2:
      return combine_outputs<With, 2>(columns, count, weights, stride, out, n);
    case 3:
      return combine_outputs<With, 3>(columns, count, weights, stride, out, n);
    default:
      return combine_outputs<With, 4>(columns, count, weights, stride, out, n);
  }
}

// All points for the same records, which stay in the first cache meanwhile.
template <class With, std::size_t G>
void distances_of(Columns columns, std::size_t count, Columns points, std::size_t stride,
                  double* const* out, std::size_t outputs, std::size_t i) {
  std::size_t j = 0;
  for (; j + 4 <= outputs; j += 4)
    distances_tile<With, 4, G>(columns, count, points + j, stride, out + j, i, i);
  for (; j < outputs; ++j)
    distances_tile<With, 1, G>(columns, count, points + j, stride, out + j, i, i);
}

template <class With>
void distances(Columns columns, std::size_t count, Columns points, std::size_t stride,
               double* const* out, std::size_t outputs, std::size_t n) {
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + kGroups * lanes <= n; i += kGroups * lanes)
    distances_of<With, kGroups>(columns, count, points, stride, out, outputs, i);
  for (; i < n; i += lanes) distances_of<With, 1>(columns, count, points, stride, out, outputs, i);
}

template <class With>
void pair_sum(Columns a, Columns b, std::size_t count, double* out, std::size_t n) {
  const D d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    V sum = hn::Mul(hn::Load(d, a[0] + i), hn::Load(d, b[0] + i));
    for (std::size_t k = 1; k < count; ++k)
      sum = With::add(hn::Load(d, a[k] + i), hn::Load(d, b[k] + i), sum);
    hn::Store(sum, d, out + i);
  }
}

// All dot products of I with J columns, added to out.
template <std::size_t I, std::size_t J>
void gram_tile(Columns a, Columns b, double* out, std::size_t row, std::size_t n, Ahead& next) {
  const D d;
  const std::size_t step = hn::Lanes(d);
  const double* x[I];
  const double* y[J];
  V sum[I][J];
  for (std::size_t i = 0; i < I; ++i) {
    x[i] = a[i];
    for (std::size_t j = 0; j < J; ++j) sum[i][j] = hn::Zero(d);
  }
  for (std::size_t j = 0; j < J; ++j) y[j] = b[j];
  std::size_t r = 0;
  const auto add = [&](std::size_t at) HWY_ATTR {
    V right[J];
    for (std::size_t j = 0; j < J; ++j) right[j] = hn::Load(d, y[j] + at);
    for (std::size_t i = 0; i < I; ++i) {
      const V left = hn::Load(d, x[i] + at);
      for (std::size_t j = 0; j < J; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
  };
  for (; r + step <= n; r += step) {
    fetch(next.begin);
    next.begin += next.begin < next.end ? kPad : 0;
    add(r);
  }
  if (r < n) {
    const auto mask = hn::FirstN(d, n - r);
    V right[J];
    for (std::size_t j = 0; j < J; ++j) right[j] = hn::IfThenElseZero(mask, hn::Load(d, y[j] + r));
    for (std::size_t i = 0; i < I; ++i) {
      const V left = hn::IfThenElseZero(mask, hn::Load(d, x[i] + r));
      for (std::size_t j = 0; j < J; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
  }
  for (std::size_t i = 0; i < I; ++i) {
    for (std::size_t j = 0; j < J; ++j)
      out[i * row + j] += hn::GetLane(hn::SumOfLanes(d, sum[i][j]));
  }
}

template <std::size_t I>
void gram_rows(Columns a, Columns b, std::size_t columns_b, double* out, std::size_t row,
               std::size_t n, Ahead& next) {
  std::size_t j = 0;
  for (; j + kRight <= columns_b; j += kRight)
    gram_tile<I, kRight>(a, b + j, out + j, row, n, next);
  switch (columns_b - j) {
    case 1:
      return gram_tile<I, 1>(a, b + j, out + j, row, n, next);
    case 2:
      return gram_tile<I, 2>(a, b + j, out + j, row, n, next);
    case 3:
      return gram_tile<I, 3>(a, b + j, out + j, row, n, next);
    default:
      return;
  }
}

// The dot products of I columns with y, added to out, while what lies `ahead` is fetched. The same sums in the same order as in gram_tile:
// where columns lie must not show.
template <std::size_t I>
HWY_INLINE void dots_ahead(Columns a, const double* y, double* out, std::size_t ahead,
                           std::size_t n) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const double* x[I];
  V sum[I];
  for (std::size_t i = 0; i < I; ++i) {
    x[i] = a[i];
    sum[i] = hn::Zero(d);
  }
  std::size_t r = 0;
  for (; r + kLines <= n; r += kLines) {
    for (std::size_t l = 0; l < kLines; l += lanes) {
      for (std::size_t i = 0; l % kPad == 0 && i < I; ++i) fetch(x[i] + (r + l + ahead));
      const V right = hn::Load(d, y + r + l);
      for (std::size_t i = 0; i < I; ++i)
        sum[i] = hn::MulAdd(hn::Load(d, x[i] + r + l), right, sum[i]);
    }
  }
  for (; r < n; r += lanes) {
    const auto mask = hn::FirstN(d, n - r);
    const V right = hn::IfThenElseZero(mask, hn::Load(d, y + r));
    for (std::size_t i = 0; i < I; ++i)
      sum[i] = hn::MulAdd(hn::IfThenElseZero(mask, hn::Load(d, x[i] + r)), right, sum[i]);
  }
  for (std::size_t i = 0; i < I; ++i) out[i] += hn::GetLane(hn::SumOfLanes(d, sum[i]));
}

void gram(Columns a, std::size_t columns_a, Columns b, std::size_t columns_b, bool upper,
          double* out, std::size_t n, Ahead next) {
  std::size_t i = 0;
  if (next.begin == next.end && columns_a > 0) next = {a[0], a[0]};  // what is there already
  if (columns_b == 1) {
    const std::size_t ahead = are_large(columns_a, n) ? next_block(a, columns_a, n) : 0;
    for (; ahead != 0 && i + kSumsAhead <= columns_a; i += kSumsAhead)
      dots_ahead<kSumsAhead>(a + i, b[0], out + i, ahead, n);
    while (i < columns_a) {
      const std::size_t columns = group(columns_a - i, kSums);
      as_constant<kSums>(columns, [&](auto constant) {
        gram_tile<decltype(constant)::value, 1>(a + i, b, out + i, 1, n, next);
      });
      i += columns;
    }
  }
  for (; i < columns_a; i += 4) {
    const std::size_t first = upper ? i : 0;  // tiles on the diagonal are computed whole
    if (first >= columns_b) break;
    double* rows = out + i * columns_b + first;
    switch (std::min<std::size_t>(columns_a - i, 4)) {
      case 1:
        gram_rows<1>(a + i, b + first, columns_b - first, rows, columns_b, n, next);
        break;
      case 2:
        gram_rows<2>(a + i, b + first, columns_b - first, rows, columns_b, n, next);
        break;
      case 3:
        gram_rows<3>(a + i, b + first, columns_b - first, rows, columns_b, n, next);
        break;
      default:
        gram_rows<4>(a + i, b + first, columns_b - first, rows, columns_b, n, next);
        break;
    }
  }
}

// --- few records: as many sums as products would be spent on joining the lanes of each dot product. So columns on the right are turned
// into rows, a strip at a time, and each number on the left is multiplied with a row.

constexpr std::size_t kStrip = kFewRegisters ? 2 : 4;  // vectors
constexpr std::size_t kRows = 6;

// I columns on the left with a strip of J vectors, of which `width` numbers count.
template <std::size_t I, std::size_t J>
void few_tile(Columns a, const double* strip, std::size_t width, double* out, std::size_t row,
              std::size_t n, bool add) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const double* x[I];
  V sum[I][J];
  for (std::size_t i = 0; i < I; ++i) {
    x[i] = a[i];
    for (std::size_t j = 0; j < J; ++j) sum[i][j] = hn::Zero(d);
  }
  for (std::size_t r = 0; r < n; ++r) {
    V right[J];
    for (std::size_t j = 0; j < J; ++j) right[j] = hn::Load(d, strip + (r * J + j) * lanes);
    for (std::size_t i = 0; i < I; ++i) {
      const V left = hn::Set(d, x[i][r]);
      for (std::size_t j = 0; j < J; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
    }
  }
  if (width == J * lanes) {
    for (std::size_t i = 0; i < I; ++i) {
      for (std::size_t j = 0; j < J; ++j) {
        double* const to = out + i * row + j * lanes;
        // 0 + -0 is 0, as where sums begin with zeros.
        hn::StoreU(hn::Add(add ? hn::LoadU(d, to) : hn::Zero(d), sum[i][j]), d, to);
      }
    }
    return;
  }
  for (std::size_t i = 0; i < I; ++i) {
    HWY_ALIGN double sums[J * kPad];
    for (std::size_t j = 0; j < J; ++j) hn::Store(sum[i][j], d, sums + j * lanes);
    double* const to = out + i * row;
    for (std::size_t c = 0; c < width; ++c) to[c] = (add ? to[c] : 0) + sums[c];
  }
}

template <std::size_t J>
void few_rows(Columns a, std::size_t columns_a, const double* strip, std::size_t width, double* out,
              std::size_t row, std::size_t n, bool add) {
  std::size_t i = 0;
  for (; i + kRows <= columns_a; i += kRows)
    few_tile<kRows, J>(a + i, strip, width, out + i * row, row, n, add);
  for (; i + 2 <= columns_a; i += 2)
    few_tile<2, J>(a + i, strip, width, out + i * row, row, n, add);
  if (i < columns_a) few_tile<1, J>(a + i, strip, width, out + i * row, row, n, add);
}

void gram_few(Columns a, std::size_t columns_a, Columns b, std::size_t columns_b, double* out,
              std::size_t n, bool add) {
  const std::size_t lanes = hn::Lanes(D());
  HWY_ALIGN double strip[kFew * kStrip * kPad];
  for (std::size_t first = 0; first < columns_b; first += kStrip * lanes) {
    const std::size_t width = std::min(columns_b - first, kStrip * lanes);
    const std::size_t vectors = (width + lanes - 1) / lanes;
    for (std::size_t j = 0; j < vectors * lanes; ++j) {
      for (std::size_t r = 0; r < n; ++r)
        strip[r * vectors * lanes + j] = j < width ? b[first + j][r] : 0;
    }
    double* const to = out + first;
    switch (vectors) {
      case 1:
        few_rows<1>(a, columns_a, strip, width, to, columns_b, n, add);
        break;
      case 2:
        few_rows<2>(a, columns_a, strip, width, to, columns_b, n, add);
        break;
      case 3:
        if constexpr (kStrip > 2) few_rows<3>(a, columns_a, strip, width, to, columns_b, n, add);
        break;
      default:
        if constexpr (kStrip > 2) few_rows<4>(a, columns_a, strip, width, to, columns_b, n, add);
        break;
    }
  }
}

template <class With>
constexpr Products kProducts = {combine<With>, distances<With>, pair_sum<With>, gram, gram_few};

}  // namespace

const Products& find_products(bool portable) {
  return portable ? kProducts<Rounded> : kProducts<Fused>;
}

}  // namespace starfold::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starfold::kernels {

HWY_EXPORT(find_products);

Ahead after(const double* const* columns, std::size_t count, std::size_t n) {
  constexpr std::size_t many = 16;
  if (count < many) return {};
  // As numbers: the columns may lie in different arrays, and nothing need follow them.
  const auto place = [](const double* x) { return reinterpret_cast<std::uintptr_t>(x); };
  const std::uintptr_t size = count * padded(n) * sizeof(double);
  if (place(columns[count - 1]) + padded(n) * sizeof(double) != place(columns[0]) + size) return {};
  const auto at = [&](std::uintptr_t offset) {
    return reinterpret_cast<const double*>(place(columns[0]) + offset);
  };
  return {at(size), at(2 * size)};
}

const Products& products(bool portable) { return HWY_DYNAMIC_DISPATCH(find_products)(portable); }

}  // namespace starfold::kernels
#endif

// Sums of columns among the records of each group. Columns are turned into records in registers, four by four, so that a record
// is added to its group by few instructions.
#include "starfold/runtime/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starfold/runtime/kernels/groups.cpp"
#include "starfold/runtime/kernels/targets.h"

#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace starfold::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

std::size_t find_rows(const double* labels, std::size_t count, std::uint32_t* rows, std::size_t n) {
  using D = hn::CappedTag<double, kPad>;
  const D d;
  const hn::Rebind<std::int32_t, D> whole;
  const auto one = hn::Set(d, 1.0);
  const auto most = hn::Set(d, static_cast<double>(count));
  std::size_t outside = 0;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto x = hn::Load(d, labels + i);
    const auto is_label =
        hn::And(hn::And(hn::Ge(x, one), hn::Le(x, most)), hn::Eq(hn::Floor(x), x));
    const auto row = hn::IfThenElse(is_label, hn::Sub(x, one), most);
    hn::StoreU(hn::DemoteTo(whole, row), whole, reinterpret_cast<std::int32_t*>(rows + i));
    const auto strange = hn::AndNot(is_label, hn::And(hn::Eq(x, x), hn::FirstN(d, n - i)));
    outside += hn::CountTrue(d, strange);
  }
  return outside;
}

void add_column(const double* x, const std::uint32_t* rows, double* sums, std::size_t stride,
                std::size_t begin, std::size_t n) {
  for (std::size_t i = begin; i < n; ++i) sums[stride * rows[i]] += x[i];
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2

using Four = hn::FixedTag<double, 4>;
using Record = hn::Vec<Four>;

HWY_INLINE void add_to(double* sum, Record x) {
  const Four d;
  hn::Store(hn::Add(hn::Load(d, sum), x), d, sum);
}

// W times four columns.
template <std::size_t W>
std::size_t add_records(const double* const* columns, const std::uint32_t* rows, double* sums,
                        std::size_t stride, std::size_t n) {
  const Four d;
  const double* x[4 * W];
  for (std::size_t w = 0; w < 4 * W; ++w) x[w] = columns[w];
  std::size_t i = 0;
  // A cache line of each column at once: columns of a block are in each other's way in the first cache.
  for (; i + kPad <= n; i += kPad) {
    double* to[kPad];
    for (std::size_t r = 0; r < kPad; ++r) to[r] = sums + stride * rows[i + r];
    for (std::size_t w = 0; w < 4 * W; w += 4) {
      for (std::size_t r = 0; r < kPad; r += 4) {
        const Record a = hn::Load(d, x[w] + i + r);
        const Record b = hn::Load(d, x[w + 1] + i + r);
        const Record c = hn::Load(d, x[w + 2] + i + r);
        const Record e = hn::Load(d, x[w + 3] + i + r);
        const Record even_low = hn::InterleaveLower(d, a, b);  // records 0 and 2
        const Record odd_low = hn::InterleaveUpper(d, a, b);   // records 1 and 3
        const Record even_high = hn::InterleaveLower(d, c, e);
        const Record odd_high = hn::InterleaveUpper(d, c, e);
        add_to(to[r] + w, hn::ConcatLowerLower(d, even_high, even_low));
        add_to(to[r + 1] + w, hn::ConcatLowerLower(d, odd_high, odd_low));
        add_to(to[r + 2] + w, hn::ConcatUpperUpper(d, even_high, even_low));
        add_to(to[r + 3] + w, hn::ConcatUpperUpper(d, odd_high, odd_low));
      }
    }
  }
  return i;
}

#endif

void add(const double* const* columns, std::size_t count, const std::uint32_t* rows, double* sums,
         std::size_t stride, std::size_t n) {
  std::size_t w = 0;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  const auto some = [&](auto add_some, std::size_t width) {
    for (; w + width <= count; w += width) {
      const std::size_t done = add_some(columns + w, rows, sums + w, stride, n);
      for (std::size_t k = w; k < w + width; ++k)
        add_column(columns[k], rows, sums + k, stride, done, n);
    }
  };
  some(add_records<4>, 16);
  some(add_records<2>, 8);
  some(add_records<1>, 4);
#endif
  for (; w < count; ++w) add_column(columns[w], rows, sums + w, stride, 0, n);
}

constexpr Groups kGroupSums = {find_rows, add};

}  // namespace

const Groups& find_groups() { return kGroupSums; }

}  // namespace starfold::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starfold::kernels {

HWY_EXPORT(find_groups);

const Groups& groups() { return HWY_DYNAMIC_DISPATCH(find_groups)(); }

}  // namespace starfold::kernels
#endif

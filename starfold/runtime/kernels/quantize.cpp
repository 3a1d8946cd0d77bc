#include "starfold/runtime/kernels/quantize.h"

#include "starfold/runtime/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starfold/runtime/kernels/quantize.cpp"
#include "starfold/runtime/kernels/targets.h"

#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace starfold::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, kPad>;
using V = hn::Vec<D>;

void column(const double* x, double per_unit, double lo, double hi, double* out, std::size_t n) {
  const D d;
  const V factor = hn::Set(d, per_unit);
  const V least = hn::Set(d, lo);
  const V most = hn::Set(d, hi);
  const V round = hn::Set(d, 0x1.8p52);  // added and taken away, it rounds what is below 2^51
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const V scaled = hn::Mul(hn::Load(d, x + i), factor);
    const V number = hn::IfThenElseZero(hn::Eq(scaled, scaled), scaled);
    const V held = hn::Min(hn::Max(number, least), most);
    hn::Store(hn::Sub(hn::Add(held, round), round), d, out + i);
  }
}

// Sums stay in registers: columns lie at the same places of their pages, where a store would hold up the loads after it.
void norms(const double* const* x, std::size_t columns, double* sums, double* squares,
           std::size_t n) {
  const D d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    V sum = hn::Zero(d);
    V square = hn::Zero(d);
    for (std::size_t k = 0; k < columns; ++k) {
      const V v = hn::Load(d, x[k] + i);
      sum = hn::Add(sum, hn::Abs(v));
      square = hn::Add(square, hn::Mul(v, v));
    }
    hn::Store(sum, d, sums + i);
    hn::Store(square, d, squares + i);
  }
}

constexpr Quantize kQuantize = {column, norms};

}  // namespace

const Quantize& find_quantize() { return kQuantize; }

}  // namespace starfold::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starfold::kernels {

HWY_EXPORT(find_quantize);

const Quantize& quantize() { return HWY_DYNAMIC_DISPATCH(find_quantize)(); }

}  // namespace starfold::kernels
#endif

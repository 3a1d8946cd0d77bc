// Unary maps: simple ones are a few instructions, the others come from vector_math.h within the range
// where it is accurate.
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "starfold/runtime/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starfold/runtime/kernels/unary.cpp"
#include "starfold/runtime/kernels/targets.h"

#include "hwy/foreach_target.h"

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "starfold/runtime/kernels/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace starfold::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, kPad>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;

HWY_INLINE V number(double x) { return hn::Set(D(), x); }
HWY_INLINE V truth(M m) { return hn::IfThenElseZero(m, number(1)); }
HWY_INLINE M within(V x, double bound) {
  return hn::Le(hn::Abs(x), number(bound));
}  // false for nan

using Map = double (*)(double);

void each(Map map, const double* x, double* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = map(x[i]);
}

// Maps that are right for every number.
template <class Op>
void simple(Map /*map*/, const double* x, double* out, std::size_t n) {
  const D d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d))
    hn::Store(Op::of(hn::Load(d, x + i)), d, out + i);
}

// The lanes that a kernel must not touch, by the scalar map.
HWY_NOINLINE V patched(Map map, V x, V result, M usual) {
  const D d;
  HWY_ALIGN double xs[kPad];
  HWY_ALIGN double results[kPad];
  HWY_ALIGN double flags[kPad];
  hn::Store(x, d, xs);
  hn::Store(result, d, results);
  hn::Store(truth(usual), d, flags);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    if (flags[i] == 0) results[i] = map(xs[i]);
  }
  return hn::Load(d, results);
}

constexpr std::size_t kLargestBlock = 4096;

template <class Op>
void guarded(Map map, const double* x, double* out, std::size_t n) {
  const D d;
  // The next block of an input mostly follows this one, and here is time to fetch it.
  const std::size_t ahead = n <= kLargestBlock ? n : 0;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    hwy::Prefetch(x + i + ahead);
    const V v = hn::Load(d, x + i);
    const M usual = Op::usual(v);
    V result = Op::of(v);
    if (HWY_UNLIKELY(!hn::AllTrue(d, usual))) result = patched(map, v, result, usual);
    hn::Store(result, d, out + i);
  }
}

struct Negative {
  static HWY_INLINE V of(V x) { return hn::Neg(x); }
};
struct Not {
  static HWY_INLINE V of(V x) { return truth(hn::Eq(x, number(0))); }
};
struct Abs {
  static HWY_INLINE V of(V x) { return hn::Abs(x); }
};
struct Sign {
  static HWY_INLINE V of(V x) {
    const V sign = hn::Sub(truth(hn::Gt(x, number(0))), truth(hn::Lt(x, number(0))));
    return hn::IfThenElse(hn::IsNaN(x), x, sign);
  }
};
struct Sqrt {
  static HWY_INLINE V of(V x) { return hn::Sqrt(x); }
};
struct Relu {
  static HWY_INLINE V of(V x) { return hn::IfThenZeroElse(hn::Le(x, number(0)), x); }
};
struct Square {
  static HWY_INLINE V of(V x) { return hn::Mul(x, x); }
};
struct Reciprocal {
  static HWY_INLINE V of(V x) { return hn::Div(number(1), x); }
};
// Not all targets keep the sign of a zero.
struct Floor {
  static HWY_INLINE V of(V x) { return hn::CopySign(hn::Floor(x), x); }
};
struct Ceil {
  static HWY_INLINE V of(V x) { return hn::CopySign(hn::Ceil(x), x); }
};
struct Round {
  static HWY_INLINE V of(V x) { return hn::CopySign(hn::Round(x), x); }
};
struct IsNan {
  static HWY_INLINE V of(V x) { return truth(hn::IsNaN(x)); }
};

constexpr double kExpRange = 700;  // neither overflow nor denormal numbers

constexpr double kLogRange = 1e300;

// Or keeps the sign of a zero.
HWY_INLINE V signed_like(V result, V x) { return hn::Or(result, hn::And(x, hn::SignBit(D()))); }

// The functions that others are made of: as fast as the processor allows, or the same everywhere.
struct Fast {
  static HWY_INLINE V exp(V x) { return math::exp(x); }
  static HWY_INLINE V expm1(V x) { return math::expm1(x); }
  static HWY_INLINE V log(V x) { return math::log(x); }
  static HWY_INLINE V log1p(V x) { return math::log1p(x); }
  static HWY_INLINE V tanh(V x) { return math::tanh(x); }
  static HWY_INLINE V add_product(V a, V b, V c) { return hn::MulAdd(a, b, c); }
  static HWY_INLINE V subtract_product(V a, V b, V c) { return hn::NegMulAdd(a, b, c); }
};
struct Portable {
  static HWY_INLINE V exp(V x) { return portable::exp(x); }
  static HWY_INLINE V expm1(V x) { return portable::expm1(x); }
  static HWY_INLINE V log(V x) { return portable::log(x); }
  static HWY_INLINE V log1p(V x) { return portable::log1p(x); }
  static HWY_INLINE V tanh(V x) { return portable::tanh(x); }
  static HWY_INLINE V add_product(V a, V b, V c) { return hn::Add(hn::Mul(a, b), c); }
  static HWY_INLINE V subtract_product(V a, V b, V c) { return hn::Sub(c, hn::Mul(a, b)); }
};

template <class With>
struct Exp {
  static HWY_INLINE V of(V x) { return With::exp(x); }
  static HWY_INLINE M usual(V x) { return within(x, kExpRange); }
};
template <class With>
struct Expm1 {
  static HWY_INLINE V of(V x) { return signed_like(With::expm1(x), x); }
  static HWY_INLINE M usual(V x) { return within(x, kExpRange); }
};
template <class With>
struct Log {
  static HWY_INLINE V of(V x) { return With::log(x); }
  static HWY_INLINE M usual(V x) {
    return hn::And(hn::Ge(x, number(DBL_MIN)), hn::Le(x, number(kLogRange)));
  }
};
template <class With>
struct Log1p {
  static HWY_INLINE V of(V x) { return signed_like(With::log1p(x), x); }
  static HWY_INLINE M usual(V x) {
    return hn::And(hn::Gt(x, number(-1)), hn::Le(x, number(kLogRange)));
  }
};

// sin(x + quadrants * pi / 2). The angle is reduced to |r| <= pi / 4 with pi / 2 in three parts,
// the first two so short that their products with the number of quadrants are exact; there a few
// terms of Taylor's series are as good as any polynomial.
template <class With>
HWY_INLINE V sine(V x, std::int64_t quadrants) {
  const D d;
  const hn::RebindToSigned<D> di;
  const V shift = number(0x1.8p52);  // puts the nearest whole number into the low bits
  const V shifted = With::add_product(x, number(2 / std::numbers::pi), shift);
  const V q = hn::Sub(shifted, shift);
  V r = With::subtract_product(q, number(0x1.921fb544p0), x);
  r = With::subtract_product(q, number(0x1.0b4611a6p-34), r);
  r = With::subtract_product(q, number(0x1.3198a2e037073p-69), r);
  const V z = hn::Mul(r, r);

  V s = number(1 / 355687428096000.0);  // 1/17!
  for (const double term : {-1 / 1307674368000.0, 1 / 6227020800.0, -1 / 39916800.0, 1 / 362880.0,
                            -1 / 5040.0, 1 / 120.0, -1 / 6.0}) {
    s = With::add_product(s, z, number(term));
  }
  s = hn::CopySign(With::add_product(hn::Mul(s, z), r, r), r);  // for zeros
  V c = number(1 / 20922789888000.0);                           // 1/16!
  for (const double term :
       {-1 / 87178291200.0, 1 / 479001600.0, -1 / 3628800.0, 1 / 40320.0, -1 / 720.0, 1 / 24.0}) {
    c = With::add_product(c, z, number(term));
  }
  // 1 - z/2 + c z^2, with what 1 - z/2 lost.
  const V half = hn::Mul(z, number(0.5));
  const V top = hn::Sub(number(1), half);
  c = hn::Add(top, With::add_product(hn::Mul(z, z), c, hn::Sub(hn::Sub(number(1), top), half)));

  const auto turn = hn::Add(hn::BitCast(di, shifted), hn::Set(di, quadrants));
  const auto odd = hn::Eq(hn::And(turn, hn::Set(di, 1)), hn::Set(di, 1));
  const auto sign = hn::ShiftLeft<62>(hn::And(turn, hn::Set(di, 2)));
  return hn::Xor(hn::IfThenElse(hn::RebindMask(d, odd), c, s), hn::BitCast(d, sign));
}

template <class With>
struct Sin {
  static HWY_INLINE V of(V x) { return sine<With>(x, 0); }
  static HWY_INLINE M usual(V x) { return within(x, 1e4); }
};
template <class With>
struct Cos {
  static HWY_INLINE V of(V x) { return sine<With>(x, 1); }
  static HWY_INLINE M usual(V x) { return within(x, 1e4); }
};
template <class With>
struct Tanh {
  static HWY_INLINE V of(V x) { return With::tanh(x); }
  static HWY_INLINE M usual(V x) { return within(x, kExpRange / 2); }
};
template <class With>
struct Sigmoid {
  static HWY_INLINE V of(V x) {
    const V e = With::exp(hn::Neg(hn::Abs(x)));
    return hn::Div(hn::IfThenElse(hn::Ge(x, number(0)), number(1), e), hn::Add(number(1), e));
  }
  static HWY_INLINE M usual(V x) { return within(x, kExpRange); }
};
template <class With>
struct Softplus {
  static HWY_INLINE V of(V x) {
    const V tail = With::log1p(With::exp(hn::Neg(hn::Abs(x))));
    return hn::Add(hn::IfThenZeroElse(hn::Le(x, number(0)), x), tail);
  }
  static HWY_INLINE M usual(V x) { return within(x, kExpRange); }
};

}  // namespace

struct Row {
  const char* name;
  Unary kernel;
};

constexpr Row kSimple[] = {
    {"-", simple<Negative>},    {"not", simple<Not>},
    {"abs", simple<Abs>},       {"sign", simple<Sign>},
    {"sqrt", simple<Sqrt>},     {"relu", simple<Relu>},
    {"square", simple<Square>}, {"reciprocal", simple<Reciprocal>},
    {"floor", simple<Floor>},   {"ceil", simple<Ceil>},
    {"round", simple<Round>},   {"isnan", simple<IsNan>},
};

template <class With>
constexpr Row kGuarded[9] = {
    // clang wants the number
    {"exp", guarded<Exp<With>>},           {"expm1", guarded<Expm1<With>>},
    {"log", guarded<Log<With>>},           {"log1p", guarded<Log1p<With>>},
    {"sin", guarded<Sin<With>>},           {"cos", guarded<Cos<With>>},
    {"tanh", guarded<Tanh<With>>},         {"sigmoid", guarded<Sigmoid<With>>},
    {"softplus", guarded<Softplus<With>>},
};

Unary find_unary(std::string_view op, bool portable) {
  for (const Row& row : kSimple) {
    if (op == row.name) return row.kernel;
  }
  for (const Row& row : portable ? kGuarded<Portable> : kGuarded<Fast>) {
    if (op == row.name) return row.kernel;
  }
  return each;
}

}  // namespace starfold::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starfold::kernels {

HWY_EXPORT(find_unary);

Unary unary(std::string_view op, bool portable) {
  return HWY_DYNAMIC_DISPATCH(find_unary)(op, portable);
}

}  // namespace starfold::kernels
#endif

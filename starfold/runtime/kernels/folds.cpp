// Folds of one column, and the extreme one of several. Four vectors of partial results run side by side; the last, incomplete
// vector is filled up with the fold's neutral element.
#include <cmath>
#include <limits>

#include "starfold/runtime/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starfold/runtime/kernels/folds.cpp"
#include "starfold/runtime/kernels/targets.h"

#include "hwy/foreach_target.h"

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace starfold::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, kPad>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;

constexpr double kInf = std::numeric_limits<double>::infinity();

HWY_INLINE V number(double x) { return hn::Set(D(), x); }

struct Sum {
  static constexpr double neutral = 0;
  static HWY_INLINE V join(V a, V b) { return hn::Add(a, b); }
  static double join(double a, double b) { return a + b; }
};
struct Prod {
  static constexpr double neutral = 1;
  static HWY_INLINE V join(V a, V b) { return hn::Mul(a, b); }
  static double join(double a, double b) { return a * b; }
};
// Once a partial result is nan it stays nan: no comparison with it holds. Of two zeros the negative one is smaller, so that
// the order never shows: equal numbers differ in the sign alone.
struct Min {
  static constexpr double neutral = kInf;
  static HWY_INLINE V join(V a, V b) {
    const V smaller = hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
    return hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), smaller);
  }
  static double join(double a, double b) {
    return b < a || std::isnan(b) || (a == b && std::signbit(b)) ? b : a;
  }
};
struct Max {
  static constexpr double neutral = -kInf;
  static HWY_INLINE V join(V a, V b) {
    const V larger = hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
    return hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), larger);
  }
  static double join(double a, double b) {
    return b > a || std::isnan(b) || (a == b && !std::signbit(b)) ? b : a;
  }
};

// The entries of the last vector that exist, in a vector of neutral elements.
HWY_INLINE V last(const double* x, std::size_t count, double neutral) {
  const D d;
  return hn::IfThenElse(hn::FirstN(d, count), hn::Load(d, x), number(neutral));
}

template <class Op>
double lanes(V v) {
  const D d;
  HWY_ALIGN double x[kPad];
  hn::Store(v, d, x);
  for (std::size_t width = hn::Lanes(d); width > 1; width /= 2) {
    for (std::size_t i = 0; i < width / 2; ++i) x[i] = Op::join(x[i], x[i + width / 2]);
  }
  return x[0];
}

template <class Op>
double fold(const double* x, std::size_t n) {
  const D d;
  const std::size_t step = hn::Lanes(d);
  V a = number(Op::neutral);
  V b = a;
  V c = a;
  V e = a;
  std::size_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    a = Op::join(a, hn::Load(d, x + i));
    b = Op::join(b, hn::Load(d, x + i + step));
    c = Op::join(c, hn::Load(d, x + i + 2 * step));
    e = Op::join(e, hn::Load(d, x + i + 3 * step));
  }
  for (; i + step <= n; i += step) a = Op::join(a, hn::Load(d, x + i));
  if (i < n) b = Op::join(b, last(x + i, n - i, Op::neutral));
  return lanes<Op>(Op::join(Op::join(a, c), Op::join(b, e)));
}

// Whether a zero (or, with `want_zero` false, anything else) occurs.
bool occurs(const double* x, std::size_t n, bool want_zero) {
  for (std::size_t i = 0; i < n; ++i) {
    if ((x[i] == 0) == want_zero) return true;
  }
  return false;
}
bool any(const double* x, std::size_t n) { return occurs(x, n, false); }
bool all(const double* x, std::size_t n) { return !occurs(x, n, true); }

void deviations(const double* x, double center, std::size_t n, double* first, double* second) {
  const D d;
  const std::size_t step = hn::Lanes(d);
  const V c = number(center);
  V sum_a = number(0);
  V sum_b = sum_a;
  V square_a = sum_a;
  V square_b = sum_a;
  std::size_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    const V a = hn::Sub(hn::Load(d, x + i), c);
    const V b = hn::Sub(hn::Load(d, x + i + step), c);
    sum_a = hn::Add(sum_a, a);
    sum_b = hn::Add(sum_b, b);
    square_a = hn::MulAdd(a, a, square_a);
    square_b = hn::MulAdd(b, b, square_b);
  }
  for (; i < n; i += step) {
    const V a = hn::IfThenElseZero(hn::FirstN(d, n - i), hn::Sub(hn::Load(d, x + i), c));
    sum_a = hn::Add(sum_a, a);
    square_a = hn::MulAdd(a, a, square_a);
  }
  *first = lanes<Sum>(hn::Add(sum_a, sum_b));
  *second = lanes<Sum>(hn::Add(square_a, square_b));
}

double center(const double* x, double center, double* out, std::size_t n) {
  const D d;
  const std::size_t step = hn::Lanes(d);
  const V c = number(center);
  V sum_a = number(0);
  V sum_b = sum_a;
  std::size_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    const V a = hn::Sub(hn::Load(d, x + i), c);
    const V b = hn::Sub(hn::Load(d, x + i + step), c);
    hn::Store(a, d, out + i);
    hn::Store(b, d, out + i + step);
    sum_a = hn::Add(sum_a, a);
    sum_b = hn::Add(sum_b, b);
  }
  for (; i < n; i += step) {
    const V a = hn::Sub(hn::Load(d, x + i), c);
    hn::Store(a, d, out + i);
    sum_a = hn::Add(sum_a, hn::IfThenElseZero(hn::FirstN(d, n - i), a));
  }
  return lanes<Sum>(hn::Add(sum_a, sum_b));
}

double sum_exp(const double* x, double top, std::size_t n) {
  const D d;
  const std::size_t step = hn::Lanes(d);
  const V t = number(top);
  V a = number(0);
  V b = a;
  std::size_t i = 0;
  for (; i + 2 * step <= n; i += 2 * step) {
    a = hn::Add(a, hn::Exp(d, hn::Sub(hn::Load(d, x + i), t)));
    b = hn::Add(b, hn::Exp(d, hn::Sub(hn::Load(d, x + i + step), t)));
  }
  for (; i < n; i += step) {
    a = hn::Add(a, hn::Exp(d, hn::Sub(last(x + i, n - i, -kInf), t)));
  }
  return lanes<Sum>(hn::Add(a, b));
}

double dot(const double* x, const double* y, std::size_t n) {
  const D d;
  const std::size_t step = hn::Lanes(d);
  V a = number(0);
  V b = a;
  V c = a;
  V e = a;
  std::size_t i = 0;
  for (; i + 4 * step <= n; i += 4 * step) {
    a = hn::MulAdd(hn::Load(d, x + i), hn::Load(d, y + i), a);
    b = hn::MulAdd(hn::Load(d, x + i + step), hn::Load(d, y + i + step), b);
    c = hn::MulAdd(hn::Load(d, x + i + 2 * step), hn::Load(d, y + i + 2 * step), c);
    e = hn::MulAdd(hn::Load(d, x + i + 3 * step), hn::Load(d, y + i + 3 * step), e);
  }
  for (; i < n; i += step) a = hn::MulAdd(last(x + i, n - i, 0), last(y + i, n - i, 0), a);
  return lanes<Sum>(hn::Add(hn::Add(a, b), hn::Add(c, e)));
}

struct Larger {
  static HWY_INLINE M keeps(V best, V x) { return hn::Ge(best, x); }
};
struct Smaller {
  static HWY_INLINE M keeps(V best, V x) { return hn::Le(best, x); }
};

template <class Order>
void extreme(const double* const* columns, std::size_t count, double* out, std::size_t n) {
  const D d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    V best = hn::Load(d, columns[0] + i);
    V position = number(1);
    for (std::size_t k = 1; k < count; ++k) {
      const V x = hn::Load(d, columns[k] + i);
      const M stays = hn::Or(Order::keeps(best, x), hn::IsNaN(best));
      best = hn::IfThenElse(stays, best, x);
      position = hn::IfThenElse(stays, position, number(static_cast<double>(k + 1)));
    }
    hn::Store(position, d, out + i);
  }
}

constexpr Extremes kExtremes = {extreme<Larger>, extreme<Smaller>};

constexpr Folds kFolds = {fold<Sum>, fold<Prod>, fold<Min>, fold<Max>, any,
                          all,       deviations, center,    sum_exp,   dot};

}  // namespace

const Folds& find_folds() { return kFolds; }
const Extremes& find_extremes() { return kExtremes; }

}  // namespace starfold::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starfold::kernels {

HWY_EXPORT(find_folds);
HWY_EXPORT(find_extremes);

const Folds& folds() { return HWY_DYNAMIC_DISPATCH(find_folds)(); }
const Extremes& extremes() { return HWY_DYNAMIC_DISPATCH(find_extremes)(); }

}  // namespace starfold::kernels
#endif

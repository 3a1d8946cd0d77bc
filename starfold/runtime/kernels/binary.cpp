// Binary maps and comparisons, with a single number on either side, and the two maps of three.
#include "starfold/runtime/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "starfold/runtime/kernels/binary.cpp"
#include "starfold/runtime/kernels/targets.h"

#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace starfold::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, kPad>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;
using Map = Binary::Map;

HWY_INLINE V number(double x) { return hn::Set(D(), x); }
HWY_INLINE V truth(M m) { return hn::IfThenElseZero(m, number(1)); }
HWY_INLINE M is_zero(V x) { return hn::Eq(x, number(0)); }  // false for nan

struct Add {
  static HWY_INLINE V of(V a, V b) { return hn::Add(a, b); }
};
struct Subtract {
  static HWY_INLINE V of(V a, V b) { return hn::Sub(a, b); }
};
struct Multiply {
  static HWY_INLINE V of(V a, V b) { return hn::Mul(a, b); }
};
struct Divide {
  static HWY_INLINE V of(V a, V b) { return hn::Div(a, b); }
};
struct And {
  static HWY_INLINE V of(V a, V b) { return truth(hn::Not(hn::Or(is_zero(a), is_zero(b)))); }
};
struct Or {
  static HWY_INLINE V of(V a, V b) { return truth(hn::Not(hn::And(is_zero(a), is_zero(b)))); }
};
struct Min {
  static HWY_INLINE V of(V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::IsNaN(b)), b, a);
  }
};
struct Max {
  static HWY_INLINE V of(V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a);
  }
};
struct Equal {
  static HWY_INLINE V of(V a, V b) { return truth(hn::Eq(a, b)); }
};
struct Different {
  static HWY_INLINE V of(V a, V b) { return truth(hn::Not(hn::Eq(a, b))); }
};
struct Less {
  static HWY_INLINE V of(V a, V b) { return truth(hn::Lt(a, b)); }
};
struct LessEqual {
  static HWY_INLINE V of(V a, V b) { return truth(hn::Le(a, b)); }
};
struct Greater {
  static HWY_INLINE V of(V a, V b) { return truth(hn::Gt(a, b)); }
};
struct GreaterEqual {
  static HWY_INLINE V of(V a, V b) { return truth(hn::Ge(a, b)); }
};

template <class Op>
void columns(Map /*map*/, const double* a, const double* b, double* out, std::size_t n) {
  const D d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::StoreU(Op::of(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  }
}

template <class Op>
void number_left(Map /*map*/, double a, const double* b, double* out, std::size_t n) {
  const D d;
  const V left = number(a);
  for (std::size_t i = 0; i < n; i += hn::Lanes(d))
    hn::StoreU(Op::of(left, hn::LoadU(d, b + i)), d, out + i);
}

template <class Op>
void number_right(Map /*map*/, const double* a, double b, double* out, std::size_t n) {
  const D d;
  const V right = number(b);
  for (std::size_t i = 0; i < n; i += hn::Lanes(d))
    hn::StoreU(Op::of(hn::LoadU(d, a + i), right), d, out + i);
}

template <class Op>
constexpr Binary kernel_of() {
  return {columns<Op>, number_left<Op>, number_right<Op>};
}

// Maps without a kernel.
void each(Map map, const double* a, const double* b, double* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = map(a[i], b[i]);
}
void each_left(Map map, double a, const double* b, double* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = map(a, b[i]);
}
void each_right(Map map, const double* a, double b, double* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = map(a[i], b);
}

// Small whole powers are products; everything else is the map's.
void power_right(Map map, const double* a, double b, double* out, std::size_t n) {
  const D d;
  if (b == 2) {
    for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
      const V x = hn::LoadU(d, a + i);
      hn::StoreU(hn::Mul(x, x), d, out + i);
    }
  } else if (b == 3) {
    for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
      const V x = hn::LoadU(d, a + i);
      hn::StoreU(hn::Mul(hn::Mul(x, x), x), d, out + i);
    }
  } else if (b == -1) {
    number_left<Divide>(map, 1, a, out, n);
  } else {
    each_right(map, a, b, out, n);
  }
}

void where(const double* c, const double* a, const double* b, double* out, std::size_t n) {
  const D d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const V chosen =
        hn::IfThenElse(is_zero(hn::Load(d, c + i)), hn::Load(d, b + i), hn::Load(d, a + i));
    hn::Store(chosen, d, out + i);
  }
}

void clip(const double* e, const double* low, const double* high, double* out, std::size_t n) {
  const D d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::Store(Min::of(Max::of(hn::Load(d, e + i), hn::Load(d, low + i)), hn::Load(d, high + i)), d,
              out + i);
  }
}

}  // namespace

Binary find_binary(std::string_view op) {
  struct Row {
    const char* name;
    Binary kernel;
  };
  static constexpr Row rows[] = {
      {"+", kernel_of<Add>()},
      {"-", kernel_of<Subtract>()},
      {"*", kernel_of<Multiply>()},
      {"/", kernel_of<Divide>()},
      {"and", kernel_of<And>()},
      {"or", kernel_of<Or>()},
      {"min", kernel_of<Min>()},
      {"max", kernel_of<Max>()},
      {"==", kernel_of<Equal>()},
      {"!=", kernel_of<Different>()},
      {"<", kernel_of<Less>()},
      {"<=", kernel_of<LessEqual>()},
      {">", kernel_of<Greater>()},
      {">=", kernel_of<GreaterEqual>()},
      {"^", {each, each_left, power_right}},
  };
  for (const Row& row : rows) {
    if (op == row.name) return row.kernel;
  }
  return {each, each_left, each_right};
}

Ternary find_ternary(std::string_view op) {
  if (op == "where") return where;
  if (op == "clip") return clip;
  return nullptr;
}

}  // namespace starfold::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace starfold::kernels {

HWY_EXPORT(find_binary);
HWY_EXPORT(find_ternary);

Binary binary(std::string_view op) { return HWY_DYNAMIC_DISPATCH(find_binary)(op); }
Ternary ternary(std::string_view op) { return HWY_DYNAMIC_DISPATCH(find_ternary)(op); }

}  // namespace starfold::kernels
#endif

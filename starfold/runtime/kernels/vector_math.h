// Exponentials and logarithms of vectors, for kernels: on AVX-512 from tables of 16 entries that
// live in registers, with errors up to 2 ulp (tanh: 4), elsewhere Highway's. Included once per
// instruction set.
#if defined(STARFOLD_RUNTIME_KERNELS_VECTOR_MATH_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STARFOLD_RUNTIME_KERNELS_VECTOR_MATH_H_
#undef STARFOLD_RUNTIME_KERNELS_VECTOR_MATH_H_
#else
#define STARFOLD_RUNTIME_KERNELS_VECTOR_MATH_H_
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "starfold/runtime/kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace starfold::kernels::HWY_NAMESPACE::math {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, kPad>;
using V = hn::Vec<D>;

#if HWY_TARGET == HWY_AVX3

using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;

HWY_INLINE V number(double x) { return hn::Set(D(), x); }

// Entries of a table by the low four bits of each index.
HWY_INLINE V look_up(const double (&table)[16], VI index) {
  const D d;
  return V{_mm512_permutex2var_pd(hn::Load(d, table).raw, index.raw, hn::Load(d, table + 8).raw)};
}

// 2^(j/16), less j << 48 in their bits: k << 48 added to the bits of entry k mod 16 makes 2^(k/16).
alignas(64) inline constexpr double kPowers[16] = {
    0x1.0000000000000p+0, 0x1.fb5586cf9890fp-1, 0x1.f72b83c7d517bp-1, 0x1.f387a6e756238p-1,
    0x1.f06fe0a31b715p-1, 0x1.edea64c123422p-1, 0x1.ebfdad5362a27p-1, 0x1.eab07dd485429p-1,
    0x1.ea09e667f3bcdp-1, 0x1.ea11473eb0187p-1, 0x1.eace5422aa0dbp-1, 0x1.ec49182a3f090p-1,
    0x1.ee89f995ad3adp-1, 0x1.f199bdd85529cp-1, 0x1.f5818dcfba487p-1, 0x1.fa4afa2a490dap-1};
// What rounding took from these powers, relative to them.
alignas(64) inline constexpr double kPowersLow[16] = {
    0x0.0000000000000p+00,  0x1.79aa65d837b6dp-54,  -0x1.01b15eaa59348p-55, 0x1.68efde3a8a894p-54,
    0x1.34d754db0abb6p-55,  0x1.59f48a72a4c6dp-55,  0x1.690cebb7aafb0p-56,  0x1.063e1e21c5409p-54,
    -0x1.3b3efbf5e2228p-54, -0x1.b32dcb94da51dp-56, 0x1.db72fc1f0eab4p-55,  0x1.1affc2b91ce27p-56,
    0x1.c1a7792cb3387p-55,  0x1.36eae30af0cb3p-56,  0x1.4a385a63d07a7p-56,  -0x1.ff7128fd391f0p-55};

// exp(x) = power * exp(r), with power = 2^(k/16) and |r| <= ln(2)/32.
struct Reduced {
  VI k;  // its low 16 bits
  V power;
  V r;
};

HWY_INLINE Reduced reduced(V x) {
  const D d;
  const DI di;
  const V shift = number(0x1.8p52);  // puts the nearest whole number into the low bits
  const V shifted = hn::MulAdd(x, number(0x1.71547652b82fep+4), shift);
  const V k = hn::Sub(shifted, shift);
  // ln(2)/16 in two parts, the first so short that its product with k is exact.
  V r = hn::NegMulAdd(k, number(0x1.62e42fefap-5), x);
  r = hn::NegMulAdd(k, number(0x1.cf79abc9e3b3ap-44), r);
  const VI bits = hn::BitCast(di, shifted);
  const VI power = hn::Add(hn::BitCast(di, look_up(kPowers, bits)), hn::ShiftLeft<48>(bits));
  return {bits, hn::BitCast(d, power), r};
}

// For |x| <= 700. All polynomials here are the best ones for their range, by Remez's algorithm.
HWY_INLINE V exp(V x) {
  const Reduced x0 = reduced(x);
  const V r = x0.r;
  const V r2 = hn::Mul(r, r);
  // (exp(r) - 1 - r) / r^2, so that the error of exp(r) is below 2^-56.
  const V low = hn::MulAdd(number(0x1.55555554900e5p-3), r, number(0x1.ffffffffffffcp-2));
  V high = hn::MulAdd(number(0x1.11123a49b57e5p-7), r, number(0x1.55555555847c8p-5));
  high = hn::MulAdd(number(0x1.6c173dfc17db7p-10), r2, high);
  const V p = hn::MulAdd(hn::MulAdd(high, r2, low), r2, r);
  return hn::MulAdd(x0.power, p, x0.power);
}

// For |x| <= 700, without the sign of a zero.
HWY_INLINE V expm1(V x) {
  const Reduced x0 = reduced(x);
  const V r = x0.r;
  const V r2 = hn::Mul(r, r);
  // As in exp, with an error below 2^-59 of exp(r) - 1.
  const V low = hn::MulAdd(number(0x1.5555555555554p-3), r, number(0x1.0000000000002p-1));
  const V middle = hn::MulAdd(number(0x1.111111112cbebp-7), r, number(0x1.55555554b8508p-5));
  V high = hn::MulAdd(number(0x1.a01a739fd4537p-13), r, number(0x1.6c1816ade968cp-10));
  high = hn::MulAdd(high, r2, middle);
  const V rest = hn::MulAdd(hn::MulAdd(high, r2, low), r2, look_up(kPowersLow, x0.k));
  return hn::MulAdd(x0.power, hn::Add(r, rest), hn::Sub(x0.power, number(1)));
}

// For |x| <= 350.
HWY_INLINE V tanh(V x) {
  const V e = expm1(hn::Abs(hn::Add(x, x)));
  return hn::CopySign(hn::Div(e, hn::Add(e, number(2))), x);
}

// Scales, close to the reciprocals of 16 parts of [0.698, 1.396), the part around 1 having the
// scale 1; their negated logarithms, exact to 2^-60 since the scales were chosen for that.
alignas(64) inline constexpr double kScales[16] = {
    0x1.66c612af9fca5p+0, 0x1.57b8644164c98p+0, 0x1.49e112e646008p+0, 0x1.3d1c13d1ccef0p+0,
    0x1.314abba099583p+0, 0x1.2652c7480d071p+0, 0x1.1c1d986b58eb7p+0, 0x1.129799072c6a6p+0,
    0x1.09afbd935a10ap+0, 0x1.0000000000000p+0, 0x1.e6a7498297de1p-1, 0x1.cb5d4ef2bf5a0p-1,
    0x1.b2f9341a02ff4p-1, 0x1.9d0ac19d99e40p-1, 0x1.89374bc7bc017p-1, 0x1.7734c36a6ad6dp-1};
alignas(64) inline constexpr double kScaleLogs[16] = {-0x1.599d631159000p-2, -0x1.2db8ec915c000p-2,
                                                      -0x1.03a25dcb29000p-2, -0x1.b66a774632000p-3,
                                                      -0x1.68a266e2fc000p-3, -0x1.1db2fe622f000p-3,
                                                      -0x1.aad194955e000p-4, -0x1.1f2b355ee6000p-4,
                                                      -0x1.303f465b2c000p-5, 0x0.0p+0,
                                                      0x1.9fed488a58000p-5,  0x1.bc5632ea0a000p-4,
                                                      0x1.4de7b85d44000p-3,  0x1.b7dc1d019d000p-3,
                                                      0x1.0e4cfbe7b6000p-2,  0x1.3e4f3c1e0a800p-2};

// x * scale is within 0.03 of 1, and base = -log(scale). x is normal and <= 1e300.
struct Scaled {
  V scale;
  V base;
};

HWY_INLINE Scaled scaled(V x) {
  const D d;
  const DI di;
  // The bits of x / 0.698: its exponent, then the number of the part.
  const VI bits = hn::Sub(hn::BitCast(di, x), hn::Set(di, 0x3fe6555555555555));
  const VI part = hn::ShiftRight<48>(bits);
  const VI exponent = hn::And(bits, hn::Set(di, -1LL << 52));
  const VI scale = hn::Sub(hn::BitCast(di, look_up(kScales, part)), exponent);
  const V base = hn::MulAdd(hn::ConvertTo(d, exponent), number(0x1.62e42fefa39efp-1 * 0x1p-52),
                            look_up(kScaleLogs, part));
  return {hn::BitCast(d, scale), base};
}

// base + log(1 + r) for |r| <= 0.03, as base + r + r^2 p(r) with an error below 2^-62.
HWY_INLINE V log_sum(V base, V r) {
  const V r2 = hn::Mul(r, r);
  const V p0 = hn::MulAdd(number(0x1.5555555555482p-2), r, number(-0x1.fffffffffffbep-2));
  const V p2 = hn::MulAdd(number(0x1.9999999cacbf6p-3), r, number(-0x1.00000000bd80ap-2));
  const V p4 = hn::MulAdd(number(0x1.24922a38b56e9p-3), r, number(-0x1.555540ca10f06p-3));
  const V p6 = hn::MulAdd(number(0x1.c81c397cb1fe5p-4), r, number(-0x1.006ee449d4f84p-3));
  const V p = hn::MulAdd(hn::MulAdd(hn::MulAdd(p6, r2, p4), r2, p2), r2, p0);
  return hn::Add(base, hn::MulAdd(p, r2, r));
}

// For normal x <= 1e300.
HWY_INLINE V log(V x) {
  const Scaled x0 = scaled(x);
  return log_sum(x0.base, hn::MulSub(x, x0.scale, number(1)));
}

// For -1 < x <= 1e300, without the sign of a zero.
HWY_INLINE V log1p(V x) {
  const V one = number(1);
  const V sum = hn::Add(x, one);
  const V lost = hn::Sub(x, hn::Sub(sum, one));  // 1 + x - sum, where that matters
  const Scaled x0 = scaled(sum);
  return log_sum(x0.base, hn::MulAdd(lost, x0.scale, hn::MulSub(sum, x0.scale, one)));
}

#else

HWY_INLINE V exp(V x) { return hn::Exp(D(), x); }
HWY_INLINE V expm1(V x) { return hn::Expm1(D(), x); }
HWY_INLINE V log(V x) { return hn::Log(D(), x); }
HWY_INLINE V log1p(V x) { return hn::Log1p(D(), x); }
HWY_INLINE V tanh(V x) { return hn::Tanh(D(), x); }

#endif

}  // namespace starfold::kernels::HWY_NAMESPACE::math

// The same for exact runs: one sequence of operations on every processor, none of them fused. Errors up to 2 ulp (tanh: 4).
namespace starfold::kernels::HWY_NAMESPACE::portable {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<double, kPad>;
using V = hn::Vec<D>;
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;

HWY_INLINE V number(double x) { return hn::Set(D(), x); }
HWY_INLINE V plus(V a, V b) { return hn::Add(a, b); }
HWY_INLINE V times(V a, V b) { return hn::Mul(a, b); }

// c[0] + c[1] x + c[2] x^2 + ...: even and odd powers apart, which do not wait for each other.
template <std::size_t n>
HWY_INLINE V polynomial(const double (&c)[n], V x) {
  static_assert(n % 2 == 0);
  const V z = times(x, x);
  V even = number(c[n - 2]);
  V odd = number(c[n - 1]);
  for (std::size_t k = n - 2; k >= 2; k -= 2) {
    even = plus(times(even, z), number(c[k - 2]));
    odd = plus(times(odd, z), number(c[k - 1]));
  }
  return plus(even, times(odd, x));
}

// exp(x) = 2^k exp(r): the power as bits, r, and exp(r) - 1.
struct Parts {
  V power;
  V expm1;
};

HWY_INLINE Parts parts(V x) {
  const D d;
  const DI di;
  const V shift = number(0x1.8p52);  // puts the nearest whole number into the low bits
  const V shifted = plus(times(x, number(0x1.71547652b82fep+0)), shift);
  const V k = hn::Sub(shifted, shift);
  // ln(2) in two parts, the first so short that its product with k is exact.
  V r = hn::Sub(x, times(k, number(0x1.62e42fefap-1)));
  r = hn::Sub(r, times(k, number(0x1.cf79abc9e3b3ap-40)));
  const VI bits = hn::ShiftLeft<52>(hn::Add(hn::BitCast(di, shifted), hn::Set(di, 1023)));
  // The series of (exp(r) - 1 - r) / r^2, for |r| <= 0.35.
  constexpr double terms[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                              1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                              1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  const V e = plus(r, times(times(r, r), polynomial(terms, r)));
  return {hn::BitCast(d, bits), e};
}

// For |x| <= 700.
HWY_INLINE V exp(V x) {
  const Parts p = parts(x);
  return times(p.power, plus(number(1), p.expm1));
}

// For |x| <= 700, without the sign of a zero.
HWY_INLINE V expm1(V x) {
  const Parts p = parts(x);
  return plus(times(p.power, p.expm1), hn::Sub(p.power, number(1)));
}

// For |x| <= 350.
HWY_INLINE V tanh(V x) {
  const V e = expm1(hn::Abs(plus(x, x)));
  return hn::CopySign(hn::Div(e, plus(e, number(2))), x);
}

// log(2^k (1 + f) + lost) for f within [-0.3, 0.42]: with s = f / (2 + f) and the series of atanh(s).
HWY_INLINE V log_sum(V x, V lost) {
  const D d;
  const DI di;
  const VI bits = hn::BitCast(di, x);
  // The exponent, such that what is left lies around 1.
  const VI offset = hn::Sub(bits, hn::Set(di, 0x3fe6a09e00000000));
  const VI exponent = hn::ShiftRight<52>(offset);
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<52>(exponent)));
  const V k = hn::ConvertTo(d, exponent);
  const V f = hn::Sub(m, number(1));
  const V s = hn::Div(f, plus(number(2), f));
  const V z = times(s, s);
  constexpr double terms[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                              2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  const V rest = times(z, polynomial(terms, z));
  // log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + rest)): what is added to f is small.
  const V half = times(number(0.5), times(f, f));
  const V low =
      plus(times(s, plus(half, rest)), plus(times(k, number(0x1.cf79abc9e3b3ap-40)), lost));
  return plus(times(k, number(0x1.62e42fefap-1)), hn::Sub(f, hn::Sub(half, low)));
}

// For normal x <= 1e300.
HWY_INLINE V log(V x) { return log_sum(x, number(0)); }

// For -1 < x <= 1e300, without the sign of a zero.
HWY_INLINE V log1p(V x) {
  const V one = number(1);
  const V sum = plus(x, one);
  const V lost = hn::Div(hn::Sub(x, hn::Sub(sum, one)), sum);  // where that matters
  return log_sum(sum, lost);
}

}  // namespace starfold::kernels::HWY_NAMESPACE::portable
HWY_AFTER_NAMESPACE();

#endif

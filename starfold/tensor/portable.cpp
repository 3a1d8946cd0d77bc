// Everything here is done with pairs of doubles whose sum is the number, some 100 bits, and rounded at the end. No fused
// operations: processors differ in having them.
#include "starfold/tensor/portable.h"

#include <array>
#include <limits>

namespace starfold::portable {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Pair {
  double high = 0;
  double low = 0;
};

// |a| >= |b|
Pair quick_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

Pair sum(double a, double b) {
  const double s = a + b;
  const double of_b = s - a;
  return {s, (a - (s - of_b)) + (b - of_b)};
}

Pair halves(double a) {
  const double t = 134217729.0 * a;  // 2^27 + 1
  const double high = t - (t - a);
  return {high, a - high};
}

Pair product(double a, double b) {
  const double p = a * b;
  const Pair x = halves(a);
  const Pair y = halves(b);
  return {p, ((x.high * y.high - p) + x.high * y.low + x.low * y.high) + x.low * y.low};
}

Pair operator+(Pair a, Pair b) {
  Pair s = sum(a.high, b.high);
  const Pair t = sum(a.low, b.low);
  s = quick_sum(s.high, s.low + t.high);
  return quick_sum(s.high, s.low + t.low);
}
Pair operator+(Pair a, double b) { return a + Pair{b, 0}; }
Pair operator-(Pair a) { return {-a.high, -a.low}; }
Pair operator-(Pair a, Pair b) { return a + -b; }
Pair operator*(Pair a, Pair b) {
  const Pair p = product(a.high, b.high);
  return quick_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}
Pair operator*(Pair a, double b) { return a * Pair{b, 0}; }
Pair operator/(Pair a, Pair b) {
  const double first = a.high / b.high;
  Pair rest = a - b * first;
  const double second = rest.high / b.high;
  rest = rest - b * second;
  return quick_sum(first, second) + rest.high / b.high;
}
double rounded(Pair a) { return a.high + a.low; }

constexpr Pair kLn2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr Pair kHalfPi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
constexpr double kHalfPiLast = -0x1.f1976b7ed8fbcp-110;
constexpr double kLog2E = 0x1.71547652b82fep+0;

// 1/k! and 1/k as pairs.
template <std::size_t n>
std::array<Pair, n> inverse_factorials() {
  std::array<Pair, n> table;
  table[0] = {1, 0};
  for (std::size_t k = 1; k < n; ++k) table[k] = table[k - 1] / Pair{static_cast<double>(k), 0};
  return table;
}
const std::array<Pair, 28> kInverseFactorial = inverse_factorials<28>();

// exp(r) - 1 for |r| <= 0.35: that of r / 64 by its series, then squared six times.
Pair expm1_small(Pair r) {
  constexpr int times = 6;
  const Pair x = {r.high * 0x1p-6, r.low * 0x1p-6};
  Pair p = kInverseFactorial[11];
  for (std::size_t k = 11; k-- > 1;) p = p * x + kInverseFactorial[k];
  p = p * x;
  for (int i = 0; i < times; ++i) p = p * p + Pair{2 * p.high, 2 * p.low};
  return p;
}

// x = k ln 2 + r; for |x| < 2^40.
Pair without_twos(Pair x, double& k) {
  k = std::nearbyint(x.high * kLog2E);
  return x - kLn2 * k - Pair{k * 0x1.5ed0f7c7f7bacp-111, 0};
}

double scaled_up(Pair m, double k) {
  if (k > 1100) return kInf;
  if (k < -1140) return 0;
  // Once rounded: a small result has fewer bits than the pair.
  const int exponent = static_cast<int>(k);
  if (exponent > -1000) return std::ldexp(rounded(m), exponent);
  const double big = std::ldexp(0x1.8p52, -1074 - exponent);  // what the last bits are rounded to
  const Pair shifted = sum(m.high, big);
  double whole = shifted.high - big;
  const double rest = shifted.low + m.low;
  const double unit = std::ldexp(1.0, -1074 - exponent);
  // Where the pair decides what its first part left open.
  if (rest > unit / 2) whole += unit;
  if (rest < -unit / 2) whole -= unit;
  return std::ldexp(whole, exponent);
}

Pair exp_pair(Pair x, double& k) { return expm1_small(without_twos(x, k)) + 1.0; }

// log of 2^k m, for m within [0.7, 1.5]: 2 atanh((m - 1) / (m + 1)) + k ln 2.
Pair log_pair(Pair m, double k) {
  const Pair s = (m + -1.0) / (m + 1.0);
  const Pair z = s * s;
  Pair p = Pair{1, 0} / Pair{41, 0};
  for (int n = 39; n >= 1; n -= 2) p = p * z + Pair{1, 0} / Pair{static_cast<double>(n), 0};
  p = p * s;
  return Pair{2 * p.high, 2 * p.low} + kLn2 * k;
}

Pair log_of(Pair x) {
  int exponent = 0;
  double m = std::frexp(x.high, &exponent);
  if (m < 0.7) {
    m *= 2;
    --exponent;
  }
  const double low = std::ldexp(x.low, -exponent);
  return log_pair(quick_sum(m, low), exponent);
}

// The angle within a quarter turn, and how many quarters were taken away, modulo 4.
Pair within_quarter(double x, int& quarters) {
  const double q = std::nearbyint(x * (1 / kHalfPi.high));
  quarters = static_cast<int>(std::fmod(q, 4));
  if (quarters < 0) quarters += 4;
  const Pair first = product(q, kHalfPi.high);
  const Pair second = product(q, kHalfPi.low);
  Pair r = sum(x, -first.high);
  r = r + Pair{-first.low, 0};
  r = r - second;
  return r + -q * kHalfPiLast;
}

Pair sine_series(Pair r) {
  const Pair z = r * r;
  Pair p = kInverseFactorial[27];
  for (int k = 25; k >= 1; k -= 2) p = kInverseFactorial[static_cast<std::size_t>(k)] - p * z;
  return p * r;
}
Pair cosine_series(Pair r) {
  const Pair z = r * r;
  Pair p = kInverseFactorial[26];
  for (int k = 24; k >= 0; k -= 2) p = kInverseFactorial[static_cast<std::size_t>(k)] - p * z;
  return p;
}

constexpr double kLargestAngle = 1e9;

// sin(x + quarters * pi / 2)
Pair sine_pair(double x, int more) {
  int quarters = 0;
  const Pair r = within_quarter(x, quarters);
  const int turn = (quarters + more) & 3;
  const Pair value = (turn & 1) != 0 ? cosine_series(r) : sine_series(r);
  return turn >= 2 ? -value : value;
}

// atan(t) for 0 <= t <= 1: a first guess, corrected by what its sine and cosine leave.
Pair atan_pair(Pair t) {
  // tan(a / 2) halves the angle until the series is short.
  Pair x = t;
  int times = 0;
  while (x.high > 0.1) {
    const Pair one_and_square = x * x + 1.0;
    const double root = std::sqrt(one_and_square.high);
    const Pair better = quick_sum(root, rounded(one_and_square - product(root, root)) / (2 * root));
    x = x / (better + 1.0);
    ++times;
  }
  const Pair z = x * x;
  Pair p = Pair{1, 0} / Pair{35, 0};
  for (int n = 33; n >= 1; n -= 2) p = Pair{1, 0} / Pair{static_cast<double>(n), 0} - p * z;
  p = p * x;
  const double scale = std::ldexp(1.0, times);
  return {p.high * scale, p.low * scale};
}

constexpr Pair kTwoOverRootPi = {0x1.20dd750429b6dp+0, 0x1.1ae3a914fed80p-56};

// x < 3.
Pair erf_series(double x) {
  // erf(x) = 2/sqrt(pi) exp(-x^2) sum of 2^n x^(2n+1) / (1 3 ... (2n+1)): all terms have one sign.
  const Pair square = product(x, x);
  Pair term = {x, 0};
  Pair total = term;
  for (int n = 1; n < 200; ++n) {
    term = term * square * 2.0 / Pair{2.0 * n + 1, 0};
    total = total + term;
    if (std::fabs(term.high) < 0x1p-106 * std::fabs(total.high)) break;
  }
  double k = 0;
  const Pair e = exp_pair(-square, k);
  const double scale = std::ldexp(1.0, static_cast<int>(k));
  return kTwoOverRootPi * total * Pair{e.high * scale, e.low * scale};
}

// erfc(x) for x >= 3 by its continued fraction, as a pair times 2^k.
Pair erfc_fraction(double x, double& k) {
  Pair f = {x, 0};
  for (int n = 150; n >= 1; --n) f = Pair{x, 0} + Pair{n / 2.0, 0} / f;
  const Pair e = exp_pair(-product(x, x), k);
  return Pair{kTwoOverRootPi.high / 2, kTwoOverRootPi.low / 2} * e / f;
}

// Stirling's series for x >= 24.
Pair lgamma_large(Pair x) {
  static constexpr double numerators[] = {1, -1, 1, -1, 1, -691, 1, -3617, 43867, -174611};
  static constexpr double denominators[] = {12,     360, 1260,   1680,   1188,
                                            360360, 156, 122400, 244188, 125400};
  const Pair inverse = Pair{1, 0} / x;
  const Pair square = inverse * inverse;
  Pair series = {0, 0};
  for (std::size_t i = 10; i-- > 0;)
    series = series * square + Pair{numerators[i], 0} / Pair{denominators[i], 0};
  constexpr Pair half_log_two_pi = {0x1.d67f1c864beb5p-1, -0x1.65b5a1b7ff5dfp-55};
  return (x + -0.5) * log_of(x) - x + half_log_two_pi + series * inverse;
}

// log |sin(pi x)| needs the distance to the nearest whole number.
Pair sine_of_turns(double x) {
  const double near = std::nearbyint(x);
  const Pair angle = (Pair{2 * kHalfPi.high, 2 * kHalfPi.low}) * (x - near);
  return sine_series(angle);
}

constexpr Pair kPi = {2 * kHalfPi.high, 2 * kHalfPi.low};

Pair lgamma_positive(double x) {
  Pair shifted = {x, 0};
  Pair below = {1, 0};
  while (shifted.high < 24) {
    below = below * shifted;
    shifted = shifted + 1.0;
  }
  return lgamma_large(shifted) - log_of(below);
}

}  // namespace

thread_local bool Scope::on_ = false;

Scaled scaled_exp(double x) {
  // So far out neighbouring doubles are whole powers apart.
  if (std::fabs(x) > 0x1p40) return {1, std::nearbyint(x * kLog2E)};
  double k = 0;
  const Pair e = exp_pair({x, 0}, k);
  return {rounded(e), k};
}

double exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 710) return kInf;
  if (x < -746) return 0;
  double k = 0;
  const Pair e = exp_pair({x, 0}, k);
  return scaled_up(e, k);
}

double expm1(double x) {
  if (std::isnan(x) || x == 0) return x;
  if (x > 710) return kInf;
  if (x < -40) return -1;
  if (std::fabs(x) < 0x1p-54) return x;
  double k = 0;
  const Pair r = without_twos({x, 0}, k);
  const Pair e = expm1_small(r);
  if (k == 0) return rounded(e);
  if (k > 1000) return scaled_up(e + 1.0, k);
  const double scale = std::ldexp(1.0, static_cast<int>(k));
  return rounded(Pair{e.high * scale, e.low * scale} + (Pair{scale, 0} + -1.0));
}

double log(double x) {
  if (std::isnan(x) || x == kInf) return x;
  if (x < 0) return kNan;
  if (x == 0) return -kInf;
  if (x == 1) return 0;
  return rounded(log_of({x, 0}));
}

double log1p(double x) {
  if (std::isnan(x) || x == kInf || x == 0) return x;
  if (x < -1) return kNan;
  if (x == -1) return -kInf;
  if (std::fabs(x) < 0x1p-54) return x;
  return rounded(log_of(sum(1, x)));
}

double pow(double x, double y) {
  // At the edges the C library computes nothing: the standard says what comes out.
  const bool whole = y == std::floor(y);
  if (!std::isfinite(x) || !std::isfinite(y) || x == 0 || y == 0 || x == 1 || (x < 0 && !whole))
    return std::pow(x, y);
  const bool negative = x < 0 && std::fabs(std::fmod(y, 2)) == 1;
  // y log |x| with the last bits that count.
  const Pair exponent = log_of({std::fabs(x), 0}) * y;
  double result = 0;
  if (!(std::fabs(exponent.high) < 0x1p20)) {
    result = exponent.high > 0 ? kInf : 0;
  } else {
    double k = 0;
    const Pair e = exp_pair(exponent, k);
    result = scaled_up(e, k);
  }
  return negative ? -result : result;
}

double sin(double x) {
  if (x == 0 || std::isnan(x)) return x;
  if (!(std::fabs(x) <= kLargestAngle)) return std::sin(x);
  return rounded(sine_pair(x, 0));
}
double cos(double x) {
  if (!(std::fabs(x) <= kLargestAngle)) return std::cos(x);
  return rounded(sine_pair(x, 1));
}
double tan(double x) {
  if (x == 0 || std::isnan(x)) return x;
  if (!(std::fabs(x) <= kLargestAngle)) return std::tan(x);
  return rounded(sine_pair(x, 0) / sine_pair(x, 1));
}

double tanh(double x) {
  if (std::isnan(x) || x == 0) return x;
  const double a = std::fabs(x);
  if (a > 20) return std::copysign(1.0, x);
  if (a < 0x1p-28) return x;
  double k = 0;
  Pair e = expm1_small(without_twos({2 * a, 0}, k));
  const double scale = std::ldexp(1.0, static_cast<int>(k));
  e = Pair{e.high * scale, e.low * scale} + (Pair{scale, 0} + -1.0);
  return std::copysign(rounded(e / (e + 2.0)), x);
}

double atan2(double y, double x) {
  if (std::isnan(x) || std::isnan(y)) return x + y;
  if (x == 0 || y == 0 || std::isinf(x) || std::isinf(y)) return std::atan2(y, x);
  // Far apart the quotient is all there is.
  const double a = std::fabs(y);
  const double b = std::fabs(x);
  const bool steep = a > b;
  int scale = 0;
  std::frexp(steep ? a : b, &scale);
  const double top = std::ldexp(steep ? a : b, -scale);
  const double rest = std::ldexp(steep ? b : a, -scale);
  const bool far = rest < 0x1p-900;
  Pair angle = far ? Pair{rest / top, 0} : atan_pair(Pair{rest, 0} / Pair{top, 0});
  if (far && !steep && x > 0) return std::copysign(a / b, y);
  if (steep) angle = kHalfPi - angle;
  if (x < 0) angle = kPi - angle;
  return std::copysign(rounded(angle), y);
}

double erf(double x) {
  if (std::isnan(x) || x == 0) return x;
  const double a = std::fabs(x);
  if (a > 6) return std::copysign(1.0, x);
  if (a < 3) {
    if (a < 0x1p-200) return rounded(kTwoOverRootPi * x);
    return std::copysign(rounded(erf_series(a)), x);
  }
  double k = 0;
  const Pair tail = erfc_fraction(a, k);
  const double scale = std::ldexp(1.0, static_cast<int>(k));
  return std::copysign(rounded(Pair{1, 0} - Pair{tail.high * scale, tail.low * scale}), x);
}

double erfc(double x) {
  if (std::isnan(x)) return x;
  if (x > 28) return 0;
  if (x < -6) return 2;
  if (x < 3) {
    if (x <= -3) return 1 - erf(x);
    if (std::fabs(x) < 0x1p-60) return 1;
    const Pair series = erf_series(std::fabs(x));
    return rounded(x < 0 ? series + 1.0 : Pair{1, 0} - series);
  }
  double k = 0;
  const Pair tail = erfc_fraction(x, k);
  return scaled_up(tail, k);
}

double lgamma(double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return kInf;
  if (x <= 0 && x == std::floor(x)) return kInf;
  if (x == 1 || x == 2) return 0;
  if (x > 0x1p60) return rounded((log_of({x, 0}) + -1.0) * x);
  if (x > 0) {
    if (x < 0x1p-60) return rounded(-log_of({x, 0}));
    return rounded(lgamma_positive(x));
  }
  if (x > -0x1p-60) return rounded(-log_of({-x, 0}));
  // Gamma(x) Gamma(1 - x) = pi / sin(pi x)
  const Pair sine = sine_of_turns(x);
  const Pair size = sine.high < 0 ? -sine : sine;
  const Pair reflected = 1 - x < 0x1p50 ? lgamma_positive(1 - x) : (log_of({-x, 0}) + -1.0) * -x;
  return rounded(log_of(kPi / size) - reflected);
}

double digamma(double x) {
  if (std::isnan(x) || x == kInf) return x;
  if (x == -kInf || (x <= 0 && x == std::floor(x))) return kNan;
  if (x < 0) {
    // psi(1 - x) - psi(x) = pi / tan(pi x)
    const double near = std::nearbyint(x);
    const Pair angle = kPi * (x - near);
    const Pair cotangent = cosine_series(angle) / sine_series(angle);
    return digamma(1 - x) - rounded(kPi * cotangent);
  }
  Pair shifted = {x, 0};
  Pair result = {0, 0};
  while (shifted.high < 24) {
    result = result - Pair{1, 0} / shifted;
    shifted = shifted + 1.0;
  }
  static constexpr double numerators[] = {-1, 1, -1, 1, -1, 691, -1, 3617, -43867, 174611};
  static constexpr double denominators[] = {12, 120, 252, 240, 132, 32760, 12, 8160, 14364, 6600};
  const Pair inverse = Pair{1, 0} / shifted;
  const Pair square = inverse * inverse;
  Pair series = {0, 0};
  for (std::size_t i = 10; i-- > 0;)
    series = series * square + Pair{numerators[i], 0} / Pair{denominators[i], 0};
  result = result + log_of(shifted) + series * square;
  return rounded(result - Pair{inverse.high / 2, inverse.low / 2});
}

}  // namespace starfold::portable

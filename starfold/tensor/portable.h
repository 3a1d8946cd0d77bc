// Functions of numbers that give the same bits on every machine: sums, products, quotients and roots of doubles alone,
// in one order, where a C library chooses other code for other processors. Errors are below 0.51 units in the last place
// (erfc below 0: 1; lgamma below 0: 2; sin, cos and tan beyond 1e9 are the C library's).
//
// Where a run is exact, all mathematics of its values goes this way: a Scope says so for the thread it lives in.
#pragma once

#include <cmath>

namespace starfold {
namespace portable {

double exp(double x);
double expm1(double x);
double log(double x);
double log1p(double x);
double pow(double x, double y);
double sin(double x);
double cos(double x);
double tan(double x);
double tanh(double x);
double atan2(double y, double x);
double erf(double x);
double erfc(double x);
double lgamma(double x);  // of |Gamma|
double digamma(double x);

// exp(x) = mantissa * 2^exponent, for every finite x; the exponent is a whole number.
struct Scaled {
  double mantissa = 0;
  double exponent = 0;
};
Scaled scaled_exp(double x);

class Scope {
 public:
  explicit Scope(bool on) : before_(on_) { on_ = on; }
  ~Scope() { on_ = before_; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  static bool on() { return on_; }

 private:
  static thread_local bool on_;
  bool before_;
};

}  // namespace portable

// What operations compute with: the C library's functions, or the portable ones inside a scope.
namespace maths {

#define STARFOLD_MATHS(name) \
  inline double name(double x) { return portable::Scope::on() ? portable::name(x) : std::name(x); }
STARFOLD_MATHS(exp)
STARFOLD_MATHS(expm1)
STARFOLD_MATHS(log)
STARFOLD_MATHS(log1p)
STARFOLD_MATHS(sin)
STARFOLD_MATHS(cos)
STARFOLD_MATHS(tan)
STARFOLD_MATHS(tanh)
STARFOLD_MATHS(erf)
STARFOLD_MATHS(erfc)
#undef STARFOLD_MATHS
inline double pow(double x, double y) {
  return portable::Scope::on() ? portable::pow(x, y) : std::pow(x, y);
}
inline double atan2(double y, double x) {
  return portable::Scope::on() ? portable::atan2(y, x) : std::atan2(y, x);
}

}  // namespace maths
}  // namespace starfold

#include "starfold/ops/special.h"

#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "starfold/tensor/portable.h"

namespace starfold::special {
namespace {

namespace bm = boost::math;
namespace bp = boost::math::policies;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Errors become nan or inf. No promotion to long double, whose width differs between machines:
// shared values should have the same bits everywhere.
using Quiet =
    bp::policy<bp::domain_error<bp::ignore_error>, bp::pole_error<bp::ignore_error>,
               bp::overflow_error<bp::ignore_error>, bp::underflow_error<bp::ignore_error>,
               bp::denorm_error<bp::ignore_error>, bp::evaluation_error<bp::ignore_error>,
               bp::rounding_error<bp::ignore_error>,
               bp::indeterminate_result_error<bp::ignore_error>, bp::promote_double<false>>;
using StudentsT = bm::students_t_distribution<double, Quiet>;
using FisherF = bm::fisher_f_distribution<double, Quiet>;

// So large that the limiting distribution is exact, and products with it might overflow.
constexpr double kLimitFreedom = 1e100;

bool is_freedom(double df) { return df > 0; }  // false for nan
bool is_limit(double df) { return df > kLimitFreedom; }

// P(Z > x) for a finite x. erfc amplifies the rounding of x/sqrt(2) by x^2 in the far tail, so
// the rounding error of the product is taken back to first order.
double normal_upper(double x) {
  constexpr double kHigh = 0.70710678118654752440;  // 1/sqrt(2) is kHigh + kLow
  constexpr double kLow = -4.8336466567264565e-17;
  const double t = x * kHigh;
  const double error = std::fma(x, kHigh, -t) + x * kLow;
  return 0.5 * maths::erfc(t) - maths::exp(-t * t) * std::numbers::inv_sqrtpi * error;
}

// P(T > x) for x > 0 and finite df.
double t_upper(double x, double df) {
  const double ratio = x / std::sqrt(df);
  if (ratio < 1e150) return bm::cdf(bm::complement(StudentsT(df), x));
  // x^2 may overflow; only the leading term of the tail is left.
  return maths::exp(df * (maths::log(df) / 2 - maths::log(x))) /
         (df * bm::beta(df / 2, 0.5, Quiet()));
}

// Boost's quantile breaks down in the extreme lower tail, where the leading term of the tail
// says it all: p = z^(df/2) / (df B(df/2, 1/2)) with z = df / (df + x^2).
double t_lower_quantile(double p, double df) {
  const double log_z = 2 / df * (maths::log(p) + maths::log(df * bm::beta(df / 2, 0.5, Quiet())));
  if (log_z < -40) return -std::sqrt(df) * maths::exp(-log_z / 2);
  const double x = bm::quantile(StudentsT(df), p);
  return std::isfinite(x) ? x : -std::sqrt(df * maths::expm1(-log_z));
}

}  // namespace

double lgamma(double x) {
  if (portable::Scope::on()) return portable::lgamma(x);
  int sign = 0;  // the reentrant form: std::lgamma writes the sign to a global
  return ::lgamma_r(x, &sign);
}

double digamma(double x) {
  if (portable::Scope::on()) return portable::digamma(x);
  if (x == infinity) return infinity;
  if (!std::isfinite(x) || (x <= 0 && x == std::floor(x))) return kNan;
  return bm::digamma(x, Quiet());
}

double normal_cdf(double x) { return normal_sf(-x); }

double normal_sf(double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return x > 0 ? 0 : 1;
  return normal_upper(x);
}

double normal_quantile(double p) {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0) return -infinity;
  if (p == 1) return infinity;
  if (p == 0.5) return 0;  // and not -0
  return -std::numbers::sqrt2 * bm::erfc_inv(2 * p, Quiet());
}

double t_cdf(double x, double df) { return t_sf(-x, df); }

double t_sf(double x, double df) {
  if (std::isnan(x) || !is_freedom(df)) return kNan;
  if (is_limit(df)) return normal_sf(x);
  if (std::isinf(x)) return x > 0 ? 0 : 1;
  if (x == 0) return 0.5;
  return x > 0 ? t_upper(x, df) : 1 - t_upper(-x, df);
}

double t_quantile(double p, double df) {
  if (!(p >= 0 && p <= 1) || !is_freedom(df)) return kNan;
  if (is_limit(df)) return normal_quantile(p);
  if (p == 0) return -infinity;
  if (p == 1) return infinity;
  return p < 0.5 ? t_lower_quantile(p, df) : bm::quantile(StudentsT(df), p);
}

double chi2_cdf(double x, double df) {
  if (std::isnan(x) || !is_freedom(df)) return kNan;
  if (x <= 0) return 0;
  if (std::isinf(x)) return std::isinf(df) ? kNan : 1;
  return std::isinf(df) ? 0 : bm::gamma_p(df / 2, x / 2, Quiet());
}

double chi2_sf(double x, double df) {
  if (std::isnan(x) || !is_freedom(df)) return kNan;
  if (x <= 0) return 1;
  if (std::isinf(x)) return std::isinf(df) ? kNan : 0;
  return std::isinf(df) ? 1 : bm::gamma_q(df / 2, x / 2, Quiet());
}

double f_cdf(double x, double d1, double d2) {
  if (std::isnan(x) || !is_freedom(d1) || !is_freedom(d2)) return kNan;
  if (x <= 0) return 0;
  if (std::isinf(x)) return 1;
  if (is_limit(d1) && is_limit(d2)) return x < 1 ? 0 : 1;  // the point 1
  if (is_limit(d2)) return chi2_cdf(d1 * x, d1);
  if (is_limit(d1)) return chi2_sf(d2 / x, d2);
  return bm::cdf(FisherF(d1, d2), x);
}

double f_sf(double x, double d1, double d2) {
  if (std::isnan(x) || !is_freedom(d1) || !is_freedom(d2)) return kNan;
  if (x <= 0) return 1;
  if (std::isinf(x)) return 0;
  if (is_limit(d1) && is_limit(d2)) return x < 1 ? 1 : 0;
  if (is_limit(d2)) return chi2_sf(d1 * x, d1);
  if (is_limit(d1)) return chi2_cdf(d2 / x, d2);
  return bm::cdf(bm::complement(FisherF(d1, d2), x));
}

}  // namespace starfold::special

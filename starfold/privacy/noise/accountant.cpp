#include "starfold/privacy/noise/accountant.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace starfold::privacy {
namespace {

// The largest x in [lo, hi] for which a predicate holds that is true at first and false later, to the last bit but a few. It
// holds for what is returned unless it does not even for lo.
template <typename Holds>
double last_true(double lo, double hi, const Holds& holds) {
  if (holds(hi)) return hi;
  for (int step = 0; step < 200; ++step) {
    const double middle = lo + (hi - lo) / 2;
    if (middle <= lo || middle >= hi) break;
    (holds(middle) ? lo : hi) = middle;
  }
  return lo;
}

// The smallest x in [lo, hi] for which a predicate holds that is false at first and true later; hi if it never is.
template <typename Holds>
double first_true(double lo, double hi, const Holds& holds) {
  return -last_true(-hi, -lo, [&](double x) { return holds(-x); });
}

// The logarithm of the normal distribution function.
long double log_phi(long double x) {
  const long double tail = std::erfc(-x / std::numbers::sqrt2_v<long double>) / 2;
  if (tail > 0) return std::log(tail);
  return -x * x / 2 - std::log(-x) - 0.5L * std::log(2 * std::numbers::pi_v<long double>);
}

// The alpha at which (alpha - 1)(alpha rho - eps) + alpha log1p(-1/alpha) - log(alpha - 1) is least: its derivative grows.
double best_alpha(double rho, double epsilon) {
  const auto falls = [&](double log_excess) {
    const double alpha = 1 + std::exp(log_excess);
    return (2 * alpha - 1) * rho - epsilon + std::log1p(-1 / alpha) < 0;
  };
  return 1 + std::exp(last_true(-40, 80, falls));
}

constexpr double most_epsilon = 1e6;

}  // namespace

double gaussian_delta(double mu, double epsilon) {
  if (!(mu > 0)) return epsilon >= 0 ? 0 : -std::expm1(epsilon);
  const long double half = static_cast<long double>(mu) / 2;
  const long double shift = static_cast<long double>(epsilon) / mu;
  const long double first = log_phi(half - shift);
  const long double second = epsilon + log_phi(-half - shift);
  const long double delta = std::exp(first) * -std::expm1(second - first);
  return static_cast<double>(std::clamp(delta, 0.0L, 1.0L));
}

double gaussian_epsilon(double mu, double delta) {
  return first_true(0, most_epsilon, [&](double eps) { return gaussian_delta(mu, eps) <= delta; });
}

double gaussian_mu(double epsilon, double delta) {
  return last_true(0, 1e6, [&](double mu) { return gaussian_delta(mu, epsilon) <= delta; });
}

double zcdp_delta(double rho, double epsilon) {
  if (!(rho > 0)) return epsilon >= 0 ? 0 : 1;
  const double alpha = best_alpha(rho, epsilon);
  const double log_delta =
      (alpha - 1) * (alpha * rho - epsilon) + alpha * std::log1p(-1 / alpha) - std::log(alpha - 1);
  return std::min(1.0, std::exp(log_delta));
}

double zcdp_epsilon(double rho, double delta) {
  return first_true(0, most_epsilon, [&](double eps) { return zcdp_delta(rho, eps) <= delta; });
}

double zcdp_rho(double epsilon, double delta) {
  return last_true(0, 1e6, [&](double rho) { return zcdp_delta(rho, epsilon) <= delta; });
}

// --- discrete Gaussians -----------------------------------------------------------------------------

namespace {

// The sum of f(y) exp(-y^2 / (2 variance)) over integers from `first` on, the smallest terms first.
template <typename Term>
double sum_from(double variance, std::int64_t first, const Term& term) {
  const auto reach = static_cast<std::int64_t>(40 * std::sqrt(variance)) + 40;
  double sum = 0;
  for (std::int64_t y = std::max(reach, first + 1); y >= first; --y) {
    const auto x = static_cast<double>(y);
    sum += term(x) * std::exp(-x * x / (2 * variance));
  }
  return sum;
}

double one(double) { return 1; }

}  // namespace

double discrete_gaussian_normalizer(double variance) { return 1 + 2 * sum_from(variance, 1, one); }

double discrete_gaussian_variance(double variance) {
  return 2 * sum_from(variance, 1, [](double x) { return x * x; }) /
         discrete_gaussian_normalizer(variance);
}

double discrete_gaussian_delta(double variance, std::int64_t sensitivity, double epsilon) {
  const auto shift = static_cast<double>(sensitivity);
  const double total = discrete_gaussian_normalizer(variance);
  const auto above = [&](double x) {  // P[Y > x]
    const auto first = static_cast<std::int64_t>(std::floor(x)) + 1;
    if (first > 0) return sum_from(variance, first, one) / total;
    return 1 - sum_from(variance, 1 - first, one) / total;
  };
  const double threshold = epsilon * variance / shift;
  return std::max(0.0,
                  above(threshold - shift / 2) - std::exp(epsilon) * above(threshold + shift / 2));
}

// --- shares of noise --------------------------------------------------------------------------------

double shared_noise_gap(std::int64_t shares, double deviation) {
  double sum = 0;
  const double factor = 2 * std::numbers::pi * std::numbers::pi * deviation * deviation;
  for (std::int64_t k = 1; k < shares; ++k) {
    const auto x = static_cast<double>(k);
    sum += std::exp(-factor * x / (x + 1));
  }
  return 10 * sum;
}

double shared_noise_rdp(const SharedNoise& noise, double alpha) {
  const double scale = std::sqrt(static_cast<double>(noise.shares)) * noise.deviation;
  const double tau = shared_noise_gap(noise.shares, noise.deviation);
  const double d1 = noise.l1 / scale;
  const double d2 = noise.l2 / scale;
  const double root = d2 + std::sqrt(noise.numbers) * tau;
  return std::min({alpha * d2 * d2 / 2 + tau * noise.numbers,
                   alpha / 2 * (d2 * d2 + 2 * d1 * tau + tau * tau * noise.numbers),
                   alpha / 2 * root * root});
}

// Every order bounds the loss, so it is enough to look at many.
double shared_noise_epsilon(const std::vector<SharedNoise>& releases, double delta) {
  const auto epsilon = [&](double log_excess) {
    const double alpha = 1 + std::exp(log_excess);
    double rdp = 0;
    for (const SharedNoise& release : releases)
      rdp += release.times * shared_noise_rdp(release, alpha);
    return rdp + std::log1p(-1 / alpha) - (std::log(delta) + std::log(alpha)) / (alpha - 1);
  };
  double best = std::numeric_limits<double>::infinity();
  double at = 0;
  for (double x = -10; x <= 20; x += 0.05) {
    if (epsilon(x) < best) best = epsilon(at = x);
  }
  double lo = at - 0.05;
  double hi = at + 0.05;
  for (int step = 0; step < 100; ++step) {  // it has one lowest point there, or nearly
    const double a = lo + (hi - lo) / 3;
    const double b = hi - (hi - lo) / 3;
    (epsilon(a) < epsilon(b) ? hi : lo) = epsilon(a) < epsilon(b) ? b : a;
  }
  return std::max(0.0, std::min(best, epsilon((lo + hi) / 2)));
}

}  // namespace starfold::privacy

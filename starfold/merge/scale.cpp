#include "starfold/merge/scale.h"

#include <cmath>

#include "starfold/tensor/compensated_sum.h"

namespace starfold {
namespace {

constexpr int step = 256;

}  // namespace

double square_scale(double top) {
  if (!std::isfinite(top)) return 1;
  return std::ldexp(1.0, std::ilogb(top) / step * step);
}

bool is_square_scale(double x) {
  if (x == 0) return true;
  return x > 0 && std::isfinite(x) && std::ldexp(1.0, std::ilogb(x)) == x &&
         std::ilogb(x) % step == 0;
}

double rescaled(double squares, double scale, double to) {
  if (scale == to) return squares;
  // Twice, since the square of the quotient may be too small for a double while the result is not.
  return scale == 0 ? squares : squares * (scale / to) * (scale / to);
}

double merged_mean(double n_a, double mean_a, double n_b, double mean_b) {
  const double n = n_a + n_b;
  const double delta = mean_b - mean_a;
  if (!std::isfinite(delta)) return mean_a * (n_a / n) + mean_b * (n_b / n);
  return n_a >= n_b ? mean_a + delta * (n_b / n) : mean_b - delta * (n_a / n);
}

double stable_mean(std::span<const double> sample) {
  const double n = static_cast<double>(sample.size());
  CompensatedSum sum;
  for (const double x : sample) sum.add(x);
  double mean = sum.value() / n;
  if (!std::isfinite(mean)) {
    CompensatedSum parts;
    for (const double x : sample) parts.add(x / n);
    mean = parts.value();
  }
  CompensatedSum drift;
  for (const double x : sample) drift.add((x - mean) / n);
  return std::isfinite(drift.value()) ? mean + drift.value() : mean;
}

}  // namespace starfold

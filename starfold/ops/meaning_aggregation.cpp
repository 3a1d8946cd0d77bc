// Aggregations: the families alpha_n, and folding the axes of a tensor with them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "starfold/base/error.h"
#include "starfold/merge/scale.h"
#include "starfold/ops/meaning.h"
#include "starfold/tensor/compensated_sum.h"
#include "starfold/tensor/portable.h"
#include "starfold/tensor/samples.h"

namespace starfold::meaning {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Values = std::span<const double>;

bool has_nan(Values v) {
  return std::any_of(v.begin(), v.end(), [](double x) { return std::isnan(x); });
}

// R's type 7 and NumPy's default: linear between the order statistics around (n - 1) q.
double quantile_of_sorted(Values sorted, double q) {
  if (sorted.empty() || std::isnan(sorted.back())) return kNan;
  const double position = static_cast<double>(sorted.size() - 1) * q;
  const auto below = static_cast<std::size_t>(position);
  const double low = sorted[below];
  const double high = sorted[std::min(below + 1, sorted.size() - 1)];
  const double part = position - std::floor(position);
  // Without a step in between, infinities would turn to nan.
  return part == 0 || low == high ? low : std::lerp(low, high, part);
}

bool nan_last(double a, double b) { return a < b || (!std::isnan(a) && std::isnan(b)); }

}  // namespace

Results aggregate(double (*fold)(Values), const Application& a) {
  const Samples all = samples(a.arg(0), a.axes);
  Tensor result(all.kept);
  for (std::size_t i = 0; i < all.count(); ++i) result.data[i] = fold(all[i]);
  return {std::move(result)};
}

Results quantile(const Application& a) {
  const Tensor& q = a.arg(1);
  for (const double p : q.data) {
    if (!(p >= 0 && p <= 1)) {
      throw RunError(fmt::format("quantile: the probability {} is not between 0 and 1", p));
    }
  }
  const Samples all = samples(a.arg(0), a.axes);
  Tensor result(all.kept, std::vector<double>{});
  result.shape.insert(result.shape.end(), q.shape.begin(), q.shape.end());
  for (std::size_t i = 0; i < all.count(); ++i) {
    std::vector<double> sorted(all[i].begin(), all[i].end());
    std::sort(sorted.begin(), sorted.end(), nan_last);
    for (const double p : q.data) result.data.push_back(quantile_of_sorted(sorted, p));
  }
  return {std::move(result)};
}

double fold_sum(Values v) {
  CompensatedSum sum;
  for (const double x : v) sum.add(x);
  return sum.value();
}

double fold_prod(Values v) { return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>()); }

double fold_min(Values v) {
  if (has_nan(v)) return kNan;
  return v.empty() ? kInf : *std::min_element(v.begin(), v.end());
}

double fold_max(Values v) {
  if (has_nan(v)) return kNan;
  return v.empty() ? -kInf : *std::max_element(v.begin(), v.end());
}

double fold_count(Values v) { return static_cast<double>(v.size()); }

double fold_mean(Values v) { return fold_sum(v) / fold_count(v); }

double fold_var(Values v) {
  if (v.size() < 2) return kNan;
  const double mean = stable_mean(v);
  CompensatedSum squares;
  CompensatedSum deviations;
  for (const double x : v) {
    squares.add((x - mean) * (x - mean));
    deviations.add(x - mean);
  }
  const double n = fold_count(v);
  // The drift takes back what the rounding of the mean put into the squares.
  const double drift = deviations.value() * deviations.value() / n;
  return std::max((squares.value() - (std::isfinite(drift) ? drift : 0)) / (n - 1), 0.0);
}

double fold_std(Values v) { return std::sqrt(fold_var(v)); }

double fold_logsumexp(Values v) {
  const double top = fold_max(v);
  if (!std::isfinite(top)) return top;  // none, nan or inf; -inf when all are
  CompensatedSum sum;
  for (const double x : v) sum.add(maths::exp(x - top));
  return top + maths::log(sum.value());
}

double fold_any(Values v) {
  return std::any_of(v.begin(), v.end(), [](double x) { return x != 0; }) ? 1.0 : 0.0;
}

double fold_all(Values v) {
  return std::all_of(v.begin(), v.end(), [](double x) { return x != 0; }) ? 1.0 : 0.0;
}

// Scaled by a power of two, which rounds nothing, so that squares neither overflow nor vanish.
double fold_norm(Values v) {
  double top = 0;
  for (const double x : v) {
    if (std::isnan(x)) return kNan;
    top = std::max(top, std::fabs(x));
  }
  if (top == 0 || std::isinf(top)) return top;
  const int exponent = std::ilogb(top);
  CompensatedSum squares;
  for (const double x : v) {
    const double scaled = std::scalbn(x, -exponent);
    squares.add(scaled * scaled);
  }
  return std::scalbn(std::sqrt(squares.value()), exponent);
}

double fold_argmax(Values v) {
  if (v.empty()) return kNan;
  std::size_t best = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (std::isnan(v[i])) return static_cast<double>(i + 1);
    if (v[i] > v[best]) best = i;
  }
  return static_cast<double>(best + 1);
}

double fold_median(Values v) {
  if (v.empty() || has_nan(v)) return kNan;
  std::vector<double> values(v.begin(), v.end());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return std::midpoint(*std::max_element(values.begin(), middle), *middle);
}

}  // namespace starfold::meaning

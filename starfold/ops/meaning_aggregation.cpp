// Aggregations: the families alpha_n, and folding the axes of a tensor with them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "starfold/base/error.h"
#include "starfold/ops/meaning.h"
#include "starfold/ops/meaning_support.h"
#include "starfold/runtime/compensated_sum.h"

namespace starfold::meaning {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Values = std::span<const double>;

bool has_nan(Values v) {
  return std::any_of(v.begin(), v.end(), [](double x) { return std::isnan(x); });
}

// A tensor seen as rows to be folded: the kept axes in front, the folded ones merged behind them.
struct Rows {
  Shape kept;
  std::size_t length = 1;
  std::vector<double> data;

  std::size_t count() const { return static_cast<std::size_t>(element_count(kept)); }
  Values row(std::size_t i) const { return {data.data() + i * length, length}; }
};

Rows rows_of(const Tensor& tensor, std::vector<std::int64_t> folded) {
  std::sort(folded.begin(), folded.end());  // the merged axis runs row-major, however written
  Rows rows;
  std::vector<std::size_t> order;
  for (std::size_t axis = 0; axis < tensor.rank(); ++axis) {
    if (std::binary_search(folded.begin(), folded.end(), static_cast<std::int64_t>(axis))) continue;
    order.push_back(axis);
    rows.kept.push_back(tensor.shape[axis]);
  }
  for (const std::int64_t axis : folded) {
    order.push_back(static_cast<std::size_t>(axis));
    rows.length *= static_cast<std::size_t>(tensor.shape.at(axis));
  }
  rows.data = permuted(tensor, order).data;
  return rows;
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
  const Rows rows = rows_of(a.arg(0), a.axes);
  Tensor result(rows.kept);
  for (std::size_t i = 0; i < rows.count(); ++i) result.data[i] = fold(rows.row(i));
  return {std::move(result)};
}

Results quantile(const Application& a) {
  const Tensor& q = a.arg(1);
  for (const double p : q.data) {
    if (!(p >= 0 && p <= 1)) {
      throw RunError(fmt::format("quantile: the probability {} is not between 0 and 1", p));
    }
  }
  const Rows rows = rows_of(a.arg(0), a.axes);
  Tensor result(rows.kept, std::vector<double>{});
  result.shape.insert(result.shape.end(), q.shape.begin(), q.shape.end());
  for (std::size_t i = 0; i < rows.count(); ++i) {
    std::vector<double> sorted(rows.row(i).begin(), rows.row(i).end());
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

// The second sum takes back what the rounding of the mean put into the first.
double fold_var(Values v) {
  if (v.size() < 2) return kNan;
  const double mean = fold_mean(v);
  CompensatedSum squares;
  CompensatedSum deviations;
  for (const double x : v) {
    squares.add((x - mean) * (x - mean));
    deviations.add(x - mean);
  }
  const double n = fold_count(v);
  const double drift = deviations.value();
  return std::max((squares.value() - drift * drift / n) / (n - 1), 0.0);
}

double fold_std(Values v) { return std::sqrt(fold_var(v)); }

double fold_logsumexp(Values v) {
  const double top = fold_max(v);
  if (!std::isfinite(top)) return top;  // none, nan or inf; -inf when all are
  CompensatedSum sum;
  for (const double x : v) sum.add(std::exp(x - top));
  return top + std::log(sum.value());
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

// The rows of the standard merges: the distributive ones, whose state is their value, then the algebraic ones.
#include <algorithm>
#include <cmath>
#include <limits>

#include "starfold/merge/comoments.h"
#include "starfold/merge/scale.h"
#include "starfold/tensor/compensated_sum.h"
#include "starfold/tensor/samples.h"

namespace starfold {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

using Sample = std::span<const double>;

bool is_truth(double x) { return x == 0 || x == 1; }
bool is_not_negative(double x) { return !(x < 0); }

// --- states of one number per entry ---------------------------------------------------------------

// Of two zeros the negative one is smaller, so that the order of operands never shows.
double smaller(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return nan;
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
double larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return nan;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}
double plus(double a, double b) { return a + b; }
double times(double a, double b) { return a * b; }
double either(double a, double b) { return a != 0 || b != 0 ? 1 : 0; }
double both(double a, double b) { return a != 0 && b != 0 ? 1 : 0; }

template <double (*join)(double, double)>
void merge_entries(MergeState& into, const MergeState& from) {
  std::vector<double>& a = into[0].data;
  const std::vector<double>& b = from[0].data;
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = join(a[i], b[i]);
}

Tensor first_part(const MergeState& state) { return state[0]; }

// A fold whose entries are states of their own: each from its sample.
template <void (*fold_sample)(Sample, MergeState&, std::size_t)>
void fold_entries(const FoldedRecords& records, MergeState& into) {
  const Samples all = samples(*records.operands[0], records.axes);
  for (std::size_t i = 0; i < all.count(); ++i) fold_sample(all[i], into, i);
}

template <double (*join)(double, double)>
void join_sample(Sample sample, MergeState& into, std::size_t entry) {
  for (const double x : sample) into[0].data[entry] = join(into[0].data[entry], x);
}

void sum_sample(Sample sample, MergeState& into, std::size_t entry) {
  CompensatedSum sum;
  for (const double x : sample) sum.add(x);
  into[0].data[entry] = sum.value();
}

// What is counted is there whatever it holds: `records` has no axes to fold but the star of its operand.
void count_records(const FoldedRecords& records, MergeState& into) {
  std::int64_t count = records.operands[0]->shape[records.record_axes[0]];
  for (const std::int64_t axis : records.axes) {
    if (static_cast<std::size_t>(axis) != records.record_axes[0])
      count *= records.operands[0]->shape[static_cast<std::size_t>(axis)];
  }
  for (double& entry : into[0].data) entry = static_cast<double>(count);
}

// --- moments: count, means, sums of squared deviations -------------------------------------------------

// Means and squared deviations of two groups together (Chan, Golub, LeVeque): no cancellation, and
// symmetric in the two groups.
void merge_moments(MergeState& into, const MergeState& from) {
  const double n_a = into[0].item();
  const double n_b = from[0].item();
  if (n_b == 0) return;
  if (n_a == 0) {
    into = from;
    return;
  }
  const double n = n_a + n_b;
  for (std::size_t i = 0; i < into[1].data.size(); ++i) {
    const double mean_a = into[1].data[i];
    const double mean_b = from[1].data[i];
    const double delta = mean_b - mean_a;
    into[1].data[i] = merged_mean(n_a, mean_a, n_b, mean_b);
    into[2].data[i] += from[2].data[i] + delta * delta * (n_a * n_b / n);
  }
  into[0].data[0] = n;
}

Tensor finish_moments(const MergeState& state) {
  Tensor variance = state[2];
  const double n = state[0].item();
  for (double& value : variance.data) value = n < 2 ? nan : value / (n - 1);
  return variance;
}

std::string_view invalid_moments(const MergeState& state) {
  const auto is_zero = [](double x) { return x == 0; };
  const auto none = [&](const Tensor& part) {
    return std::all_of(part.data.begin(), part.data.end(), is_zero);
  };
  if (state[0].item() == 0 && !(none(state[1]) && none(state[2])))
    return "it holds moments of no records";
  return {};
}

void moments_sample(Sample sample, MergeState& into, std::size_t entry) {
  if (sample.empty()) return;
  const double n = static_cast<double>(sample.size());
  into[0].data[0] = n;
  const double mean = stable_mean(sample);
  CompensatedSum squares;
  for (const double x : sample) squares.add((x - mean) * (x - mean));
  into[1].data[entry] = mean;
  into[2].data[entry] = squares.value();
}

// --- logsumexp: the value itself, so that a message does not show the largest number -----------------

double log_plus(double a, double b) {
  const double top = larger(a, b);
  const double rest = smaller(a, b);
  // An infinity or a nan is the answer; nothing is added to what is alone.
  if (!std::isfinite(top) || rest == -inf) return top;
  return top + std::log1p(std::exp(rest - top));
}

void logsumexp_sample(Sample sample, MergeState& into, std::size_t entry) {
  double top = -inf;
  for (const double x : sample) top = larger(top, x);
  CompensatedSum sum;
  for (const double x : sample) {
    if (std::isfinite(top)) sum.add(std::exp(x - top));
  }
  into[0].data[entry] = std::isfinite(top) ? top + std::log(sum.value()) : top;
}

// --- norm: scales, and sums of squares relative to them -------------------------------------------------

void merge_norm(MergeState& into, const MergeState& from) {
  for (std::size_t i = 0; i < into[0].data.size(); ++i) {
    double& scale = into[0].data[i];
    double& squares = into[1].data[i];
    const double top = std::max(scale, from[0].data[i]);
    squares = rescaled(squares, scale, top) + rescaled(from[1].data[i], from[0].data[i], top);
    scale = top;
  }
}

Tensor finish_norm(const MergeState& state) {
  Tensor result = state[1];
  for (std::size_t i = 0; i < result.data.size(); ++i)
    result.data[i] = std::sqrt(result.data[i]) * state[0].data[i];
  return result;
}

std::string_view invalid_norm(const MergeState& state) {
  for (std::size_t i = 0; i < state[0].data.size(); ++i) {
    if (state[0].data[i] == 0 && state[1].data[i] != 0) return "it holds squares of no numbers";
  }
  return {};
}

void norm_sample(Sample sample, MergeState& into, std::size_t entry) {
  double top = 0;
  for (const double x : sample) top = larger(top, std::fabs(x));
  if (top == 0) return;
  const double scale = square_scale(top);
  CompensatedSum squares;
  for (const double x : sample) squares.add((x / scale) * (x / scale));
  into[0].data[entry] = scale;
  into[1].data[entry] = squares.value();
}

// One number per entry of the result.
Monoid entries(std::string_view name, std::string_view words, Part part,
               void (*merge)(MergeState&, const MergeState&),
               void (*fold)(const FoldedRecords&, MergeState&)) {
  Monoid row;
  row.name = name;
  row.words = words;
  row.parts = {part};
  row.exact = true;
  row.merge = merge;
  row.finish = first_part;
  row.fold = fold;
  return row;
}

using Extent = Part::Extent;

Monoid sum_row() {
  Monoid row = entries("sum", "added up", {"sums"}, merge_entries<plus>, fold_entries<sum_sample>);
  row.additive = true;
  row.exact = false;
  row.total = "it adds up all records, each with the same weight";
  return row;
}

Monoid prod_row() {
  Monoid row = entries("prod", "multiplied", {"products", Extent::result, 1}, merge_entries<times>,
                       fold_entries<join_sample<times>>);
  row.exact = false;
  row.joins = "multiplies";
  row.instead = "add up logarithms: `exp(sum[*](clip(log(e), lo, hi)))` for positive numbers";
  return row;
}

constexpr std::string_view count_below =
    "count records over a public grid, `sum[*](e[:, new] <= linspace(lo, hi, k))`, or take a "
    "quantile near "
    "the end with `stats.quantile`";

Monoid min_row() {
  Monoid row = entries("min", "the smallest kept", {"smallest", Extent::result, inf},
                       merge_entries<smaller>, fold_entries<join_sample<smaller>>);
  row.instead = count_below;
  row.shows_single = true;
  return row;
}

Monoid max_row() {
  Monoid row = entries("max", "the largest kept", {"largest", Extent::result, -inf},
                       merge_entries<larger>, fold_entries<join_sample<larger>>);
  row.instead = count_below;
  row.shows_single = true;
  return row;
}

Monoid count_row() {
  Monoid row = entries("count", "counts added up",
                       {"counts", Extent::result, 0, is_whole, "a count is not a whole number"},
                       merge_entries<plus>, count_records);
  row.additive = true;
  row.total = "it is the number of records";
  return row;
}

constexpr std::string_view no_truth = "a truth value is neither 0 nor 1";

Monoid any_row() {
  return entries("any", "true if any is",
                 {"whether any is true", Extent::result, 0, is_truth, no_truth},
                 merge_entries<either>, fold_entries<join_sample<either>>);
}

Monoid all_row() {
  return entries("all", "true if all are",
                 {"whether all are true", Extent::result, 1, is_truth, no_truth},
                 merge_entries<both>, fold_entries<join_sample<both>>);
}

Monoid moments_row() {
  Monoid row;
  row.name = "moments";
  row.words = "counts, means and squared deviations combined";
  row.parts = {
      {"count", Extent::one, 0, is_whole, "a count is not a whole number"},
      {"means"},
      {"squared deviations", Extent::result, 0, is_not_negative, "a sum of squares is negative"}};
  row.total = "count, mean and spread of all records, each with the same weight";
  row.merge = merge_moments;
  row.finish = finish_moments;
  row.invalid = invalid_moments;
  row.fold = fold_entries<moments_sample>;
  return row;
}

Monoid logsumexp_row() {
  Monoid row = entries("logsumexp", "their exponentials added up",
                       {"logarithms of sums of exponentials", Extent::result, -inf},
                       merge_entries<log_plus>, fold_entries<logsumexp_sample>);
  row.exact = false;
  return row;
}

Monoid norm_row() {
  Monoid row;
  row.name = "norm";
  row.words = "squares added up at a common scale";
  row.parts = {
      {"scales", Extent::result, 0, is_square_scale, "a scale is not one of the steps"},
      {"scaled squares", Extent::result, 0, is_not_negative, "a sum of squares is negative"}};
  row.merge = merge_norm;
  row.finish = finish_norm;
  row.invalid = invalid_norm;
  row.fold = fold_entries<norm_sample>;
  return row;
}

}  // namespace

namespace monoids {
const Monoid sum = sum_row(), prod = prod_row(), min = min_row(), max = max_row(),
             count = count_row(), any = any_row(), all = all_row(), moments = moments_row(),
             logsumexp = logsumexp_row(), norm = norm_row();
}

std::span<const Monoid* const> all_monoids() {
  using namespace monoids;
  static constexpr const Monoid* rows[] = {&sum,       &prod, &min,       &max,
                                           &count,     &any,  &all,       &moments,
                                           &logsumexp, &norm, &comoments, &cross_comoments};
  return rows;
}

}  // namespace starfold

#include "tests/laws/generator_facts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "starfold/ops/standard.h"

namespace starfold::laws {
namespace {

constexpr double ulp = std::numeric_limits<double>::epsilon();
constexpr double largest = 2000;
constexpr double largest_error = 1e-11;
constexpr int exact_bits = 40;

// What no longer fits into the bits of a double is no longer exact.
Facts settled(Facts facts) {
  const double bits = std::log2(std::max(facts.size(), 1.0)) + facts.grain;
  if (facts.exact() && bits > exact_bits) {
    facts.grain = -1;
    facts.error = std::max(facts.error, 4 * ulp * facts.size());
  }
  if (facts.exact()) facts.error = 0;
  return facts;
}

Facts rounded(double lo, double hi, double error) {
  Facts facts{lo, hi, error, -1};
  facts.error += 8 * ulp * std::max(facts.size(), 1e-3);
  return facts;
}

// Grain of the result of an exact element-wise row, -1 when it rounds.
int result_grain(const std::string& name, int a, int b) {
  if (a < 0 || b < 0) return -1;
  static const std::set<std::string> whole = {
      "sign", "not", "isnan", "floor", "ceil", "round", "and",
      "or",   "==",  "!=",    "<",     "<=",   ">",     ">="};
  if (whole.count(name) != 0) return 0;
  static const std::set<std::string> same = {"-", "abs", "relu", "+", "min", "max", "mod"};
  if (same.count(name) != 0) return std::max(a, b);
  if (name == "*") return a + b;
  if (name == "square") return 2 * a;
  return -1;
}

// Where the entries of a result lie, as its row says; nullopt where the row does not know. A row rounds outward, but
// on a grid the ends are known.
std::optional<Interval> row_range(const Op& op, std::initializer_list<Facts> operands,
                                  double folded, int grain) {
  std::vector<Interval> ranges;
  for (const Facts& operand : operands) ranges.push_back({operand.lo, operand.hi});
  if (!op.range) return std::nullopt;
  Interval range = op.range(ranges, folded);
  if (!range.bounded()) return std::nullopt;
  if (grain >= 0) {
    range.lo = std::ldexp(std::ceil(std::ldexp(range.lo, grain)), -grain);
    range.hi = std::ldexp(std::floor(std::ldexp(range.hi, grain)), -grain);
  }
  return range;
}

// The bounds that the row knows, and the rest as it was.
Facts bounded_by(const std::optional<Interval>& range, Facts facts) {
  if (!range) return facts;
  facts.lo = range->lo;
  facts.hi = range->hi;
  return facts;
}

}  // namespace

double Facts::size() const { return std::max(std::fabs(lo), std::fabs(hi)); }

bool usable(const Facts& facts) { return facts.size() <= largest && facts.error <= largest_error; }

Facts constant_facts(double value) {
  for (int grain = 0; grain <= 4; ++grain) {
    const double scaled = std::ldexp(value, grain);
    if (scaled == std::floor(scaled)) return {value, value, 0, grain};
  }
  return {value, value, 0, -1};
}

Facts either(const Facts& a, const Facts& b) {
  Facts facts{std::min(a.lo, b.lo), std::max(a.hi, b.hi), std::max(a.error, b.error), -1};
  if (a.exact() && b.exact()) facts.grain = std::max(a.grain, b.grain);
  return settled(facts);
}

Facts unary_facts(const Op& op, const Facts& a) {
  const int grain = result_grain(op.name, a.grain, 0);
  if (op.truth) return {0, 1, 0, 0};
  const std::optional<Interval> range = row_range(op, {a}, 1, grain);
  constexpr int steps = 64;
  double lo = std::numeric_limits<double>::infinity();
  double hi = -lo;
  double slope = 0;
  double before = 0;
  const double width = (a.hi - a.lo) / steps;
  for (int i = 0; i <= steps; ++i) {
    const double value = op.map1(i == steps ? a.hi : a.lo + width * i);
    lo = std::min(lo, value);
    hi = std::max(hi, value);
    if (i > 0 && width > 0) slope = std::max(slope, std::fabs(value - before) / width);
    before = value;
  }
  if (width <= 0) slope = 10;  // a single point says nothing about its neighbours
  if (grain >= 0) return settled(bounded_by(range, {lo, hi, 0, grain}));
  const double margin = 0.5 * slope * width;
  const Facts sampled = bounded_by(range, {lo - margin, hi + margin, 0, -1});
  return rounded(sampled.lo, sampled.hi, 1.5 * slope * a.error);
}

Facts binary_facts(const Op& op, const Facts& a, const Facts& b) {
  const int grain = result_grain(op.name, a.grain, b.grain);
  if (op.truth) return {0, 1, 0, 0};
  const std::optional<Interval> range = row_range(op, {a, b}, 1, grain);
  if (op.name == "mod") return settled(bounded_by(range, {0, b.hi, 0, grain}));
  constexpr int steps = 12;
  double lo = std::numeric_limits<double>::infinity();
  double hi = -lo;
  double slope_a = 0;
  double slope_b = 0;
  const double width_a = (a.hi - a.lo) / steps;
  const double width_b = (b.hi - b.lo) / steps;
  const auto at = [&](int i, int j) {
    return op.map2(i == steps ? a.hi : a.lo + width_a * i, j == steps ? b.hi : b.lo + width_b * j);
  };
  const double nudge = 1e-4;
  for (int i = 0; i <= steps; ++i) {
    for (int j = 0; j <= steps; ++j) {
      const double value = at(i, j);
      lo = std::min(lo, value);
      hi = std::max(hi, value);
      const double x = i == steps ? a.hi : a.lo + width_a * i;
      const double y = j == steps ? b.hi : b.lo + width_b * j;
      slope_a = std::max(slope_a, std::fabs(op.map2(x + nudge, y) - value) / nudge);
      slope_b = std::max(slope_b, std::fabs(op.map2(x, y + nudge) - value) / nudge);
    }
  }
  const Facts sampled = bounded_by(range, {lo, hi, 0, grain});
  if (grain >= 0) return settled(sampled);
  return rounded(sampled.lo, sampled.hi, 1.5 * (slope_a * a.error + slope_b * b.error));
}

Facts product_facts(const Facts& a, const Facts& b) {
  const int grain = a.exact() && b.exact() ? a.grain + b.grain : -1;
  const Facts facts = bounded_by(row_range(*standard_signature().find("*"), {a, b}, 1, grain),
                                 {-a.size() * b.size(), a.size() * b.size(), 0, grain});
  if (facts.exact()) return settled(facts);
  return rounded(facts.lo, facts.hi, a.error * b.size() + b.error * a.size());
}

Facts sum_facts(const Facts& a, std::int64_t count) { return aggregation_facts("sum", a, count); }

Facts aggregation_facts(std::string_view name, const Facts& a, std::int64_t count) {
  const auto n = static_cast<double>(count);
  const double size = a.size();
  const Op* op = name == "records" ? standard_signature().find(name)
                                   : standard_signature().find(name, 1, true);
  if (op == nullptr) op = standard_signature().find(name);
  int grain = -1;
  if (op->shape_only || op->truth || name == "argmax") grain = 0;
  if (name == "sum" || name == "min" || name == "max") grain = a.grain;
  // The operands of sane products lie around 1, or are exact and no larger than 1.
  if (name == "prod" && a.exact() && (count <= 4 || (a.grain == 0 && size <= 1)))
    grain = a.grain * static_cast<int>(count);
  const Facts all = bounded_by(row_range(*op, {a}, n, grain), {-size * n, size * n, 0, grain});
  if (all.exact()) return settled(all);
  double error = 10 * n * a.error;
  if (name == "sum") error = n * a.error + 2 * ulp * n * size;
  if (name == "min" || name == "max" || name == "mean" || name == "median" || name == "quantile")
    error = a.error;
  if (name == "var") error = 8 * size * a.error;
  if (name == "std") error = 4 * a.error + 32 * ulp * size;
  if (name == "norm") error = std::sqrt(n) * a.error;
  if (name == "logsumexp") error = a.error;
  if (name == "prod") error = 2 * all.size() * n * (a.error + ulp);
  return rounded(all.lo, all.hi, error);
}

bool jumps(const Op& op) {
  static const std::set<std::string> names = {"sign", "not", "floor", "ceil", "round", "and",
                                              "or",   "mod", "any",   "all",  "argmax"};
  return op.family == Family::comparison || names.count(op.name) != 0;
}

bool keeps_exact(const Op& op) {
  switch (op.family) {
    case Family::unary:
      return result_grain(op.name, 0, 0) >= 0 || op.name == "isnan";
    case Family::binary:
      return result_grain(op.name, 0, 0) >= 0;
    case Family::comparison:
    case Family::permutation:
    case Family::matmul:
      return true;
    case Family::aggregation: {
      static const std::set<std::string> names = {"sum", "prod", "min",    "max",    "count",
                                                  "any", "all",  "argmax", "records"};
      return names.count(op.name) != 0;
    }
    default: {
      static const std::set<std::string> names = {
          "[:]",   "concat", "[,]",     "reshape",       "zeros_like", "ones_like", "outer",
          "where", "clip",   "one_hot", "stop_gradient", "diag",       "trace_of",  "eye",
          "zeros", "ones",   "full",    "sort",          "cumsum",     "[e]"};
      return names.count(op.name) != 0;
    }
  }
}

bool selects(const Op& op) {
  static const std::set<std::string> adds = {"+",        "*",     "square",  "mod",
                                             "sum",      "prod",  "round",   "cumsum",
                                             "trace_of", "outer", "one_hot", "[e]"};
  const bool minus = op.family == Family::binary && op.name == "-";
  return keeps_exact(op) && op.family != Family::matmul && !minus && adds.count(op.name) == 0;
}

Interval domain(const Op& op, std::size_t operand) {
  static const std::map<std::string, std::vector<Interval>> domains = {
      {"sqrt", {{0.1, 50}}},
      {"exp", {{-4, 4}}},
      {"expm1", {{-4, 4}}},
      {"log", {{0.1, 50}}},
      {"log1p", {{-0.5, 50}}},
      {"tan", {{-1, 1}}},
      {"lgamma", {{0.5, 10}}},
      {"digamma", {{0.5, 10}}},
      {"reciprocal", {{0.2, 5}}},
      {"square", {{-30, 30}}},
      {"*", {{-30, 30}, {-30, 30}}},
      {"/", {{-100, 100}, {0.25, 8}}},
      {"^", {{0.5, 2}, {-3, 3}}},
      {"atan2", {{-5, 5}, {0.5, 5}}},
      {"mod", {{-100, 100}, {0.5, 4}}},
      {"logsumexp", {{-20, 20}}},
      {"softmax", {{-10, 10}}},
      {"log_softmax", {{-10, 10}}},
      {"normal_quantile", {{0.1, 0.9}}},
      {"t_quantile", {{0.1, 0.9}, {2, 10}}},
      {"normal_cdf", {{-3, 3}}},
      {"normal_sf", {{-3, 3}}},
      {"t_cdf", {{-3, 3}, {2, 10}}},
      {"t_sf", {{-3, 3}, {2, 10}}},
      {"chi2_cdf", {{0.5, 6}, {2, 10}}},
      {"chi2_sf", {{0.5, 6}, {2, 10}}},
      {"f_cdf", {{0.5, 6}, {2, 10}, {2, 10}}},
      {"f_sf", {{0.5, 6}, {2, 10}, {2, 10}}},
  };
  const auto found = domains.find(op.name);
  if (found != domains.end() && operand < found->second.size()) return found->second[operand];
  const bool built_in = standard_signature().find(op.name) != nullptr;
  return built_in ? Interval{-1000, 1000} : Interval{-2, 2};
}

}  // namespace starfold::laws

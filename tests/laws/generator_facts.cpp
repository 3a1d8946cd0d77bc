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
  if (op.name == "not" || op.name == "isnan") return {0, 1, 0, 0};
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
  if (grain >= 0) return settled({lo, hi, 0, grain});
  const double margin = 0.5 * slope * width;
  return rounded(lo - margin, hi + margin, 1.5 * slope * a.error);
}

Facts binary_facts(const Op& op, const Facts& a, const Facts& b) {
  const int grain = result_grain(op.name, a.grain, b.grain);
  if (op.family == Family::comparison || op.name == "and" || op.name == "or") return {0, 1, 0, 0};
  if (op.name == "mod") return settled({0, b.hi, 0, grain});
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
  if (grain >= 0) return settled({lo, hi, 0, grain});
  return rounded(lo, hi, 1.5 * (slope_a * a.error + slope_b * b.error));
}

Facts product_facts(const Facts& a, const Facts& b) {
  const double corners[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  Facts facts{*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4), 0,
              -1};
  if (a.exact() && b.exact()) {
    facts.grain = a.grain + b.grain;
    return settled(facts);
  }
  return rounded(facts.lo, facts.hi, a.error * b.size() + b.error * a.size());
}

Facts sum_facts(const Facts& a, std::int64_t count, bool maybe_empty) {
  const auto n = static_cast<double>(count);
  Facts facts{n * a.lo, n * a.hi, 0, a.grain};
  if (maybe_empty) {
    facts.lo = std::min(0.0, facts.lo);
    facts.hi = std::max(0.0, facts.hi);
  }
  if (facts.exact()) return settled(facts);
  return rounded(facts.lo, facts.hi, n * a.error + 2 * ulp * n * a.size());
}

Facts aggregation_facts(std::string_view name, const Facts& a, std::int64_t count,
                        bool maybe_empty) {
  const auto n = static_cast<double>(count);
  const double size = a.size();
  if (name == "sum") return sum_facts(a, count, maybe_empty);
  if (name == "count" || name == "records") return {0, n, 0, 0};
  if (name == "any" || name == "all") return {0, 1, 0, 0};
  if (name == "argmax") return {1, n, 0, 0};
  if (name == "min" || name == "max") return settled(a);
  if (name == "mean" || name == "median" || name == "quantile") return rounded(a.lo, a.hi, a.error);
  if (name == "var") return rounded(0, 2 * size * size, 8 * size * a.error);
  if (name == "std") return rounded(0, 2 * size, 4 * a.error + 32 * ulp * size);
  if (name == "norm") return rounded(0, std::sqrt(n) * size, std::sqrt(n) * a.error);
  if (name == "logsumexp") return rounded(a.lo, a.hi + std::log(n), a.error);
  if (name == "prod") {
    // The operands of sane products lie around 1, or are exact and no larger than 1.
    if (a.grain == 0 && size <= 1) return {-1, 1, 0, 0};
    if (a.exact() && count <= 4) {
      const double bound = std::pow(std::max(size, 1.0), n);
      return settled({-bound, bound, 0, a.grain * static_cast<int>(count)});
    }
    const double top = std::pow(std::max(size, 1.0), n);
    return rounded(0, top, 2 * top * n * (a.error + ulp));
  }
  return rounded(-size * n, size * n, 10 * n * a.error);
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

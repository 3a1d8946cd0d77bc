// Family U: scalar maps applied to every entry. The type is unchanged (def:typing-unary).
#include <cmath>

#include "starfold/ops/meaning.h"
#include "starfold/ops/op.h"
#include "starfold/ops/special.h"
#include "starfold/ops/typing.h"

namespace starfold {
namespace {

double sign(double x) {
  if (std::isnan(x)) return x;
  return static_cast<double>(x > 0) - static_cast<double>(x < 0);
}

// Both branches call exp where it cannot overflow.
double sigmoid(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1 + e);
}

// log(1 + exp(x)), exact at both ends: exp(x) far left, x far right.
double softplus(double x) { return (x > 0 ? x : 0.0) + std::log1p(std::exp(-std::fabs(x))); }

double relu(double x) { return x > 0 || std::isnan(x) ? x : 0.0; }

// Half to even, as in NumPy and R: nearbyint in the default rounding mode.
double round_half_even(double x) { return std::nearbyint(x); }

struct Row {
  const char* name;
  double (*map)(double);
  const char* doc;
  bool flat = false;  // derivative zero everywhere
};

constexpr Row kRows[] = {
    {"-", [](double x) { return -x; }, "the opposite number"},
    {"not", [](double x) { return x == 0 ? 1.0 : 0.0; }, "1 where the entry is 0, else 0", true},
    {"abs", [](double x) { return std::fabs(x); }, "absolute value"},
    {"sign", sign, "-1, 0 or 1 by sign; nan stays", true},
    {"sqrt", [](double x) { return std::sqrt(x); }, "square root; nan below 0"},
    {"exp", [](double x) { return std::exp(x); }, "e to the power of the entry"},
    {"expm1", [](double x) { return std::expm1(x); }, "exp(e) - 1, accurate near 0"},
    {"log", [](double x) { return std::log(x); }, "natural logarithm; -inf at 0, nan below"},
    {"log1p", [](double x) { return std::log1p(x); }, "log(1 + e), accurate near 0"},
    {"sin", [](double x) { return std::sin(x); }, "sine of radians"},
    {"cos", [](double x) { return std::cos(x); }, "cosine of radians"},
    {"tan", [](double x) { return std::tan(x); }, "tangent of radians"},
    {"tanh", [](double x) { return std::tanh(x); }, "hyperbolic tangent"},
    {"sigmoid", sigmoid, "1 / (1 + exp(-e)), without overflow"},
    {"softplus", softplus, "log(1 + exp(e)), without overflow"},
    {"relu", relu, "the positive part, max(e, 0)"},
    {"square", [](double x) { return x * x; }, "e * e"},
    {"reciprocal", [](double x) { return 1 / x; }, "1 / e"},
    {"floor", [](double x) { return std::floor(x); }, "largest whole number not above e", true},
    {"ceil", [](double x) { return std::ceil(x); }, "smallest whole number not below e", true},
    {"round", round_half_even, "nearest whole number, halves to even", true},
    {"erf", [](double x) { return std::erf(x); }, "error function"},
    {"lgamma", special::lgamma, "log |Gamma(e)|; inf at the poles"},
    {"digamma", special::digamma, "derivative of log Gamma; nan at the poles"},
    {"isnan", [](double x) { return std::isnan(x) ? 1.0 : 0.0; },
     "1 where the entry is nan, else 0", true},
};

std::string surface_of(const std::string& name) {
  if (name == "-") return "-e";
  if (name == "not") return "not e";
  return name + "(e)";
}

}  // namespace

std::vector<Op> unary_ops() {
  std::vector<Op> ops;
  for (const Row& row : kRows) {
    Op op;
    op.name = row.name;
    op.family = Family::unary;
    op.surface = surface_of(op.name);
    op.rule = "T -> T";
    op.doc = row.doc;
    op.type = typing::unchanged;
    op.map1 = row.map;
    op.flat = row.flat ? 1U : 0U;
    op.meaning = [map = row.map](const Application& a) { return meaning::map_unary(map, a); };
    ops.push_back(std::move(op));
  }
  return ops;
}

}  // namespace starfold

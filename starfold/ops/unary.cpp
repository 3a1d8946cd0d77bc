// Family U: scalar maps applied to every entry. The type is unchanged (def:typing-unary).
#include <cmath>

#include "starfold/ops/derivative.h"
#include "starfold/ops/meaning.h"
#include "starfold/ops/special.h"
#include "starfold/ops/standard.h"
#include "starfold/signature/typing.h"
#include "starfold/tensor/portable.h"

namespace starfold {
namespace {

double sign(double x) {
  if (std::isnan(x)) return x;
  return static_cast<double>(x > 0) - static_cast<double>(x < 0);
}

// Both branches call exp where it cannot overflow.
double sigmoid(double x) {
  if (x >= 0) return 1 / (1 + maths::exp(-x));
  const double e = maths::exp(x);
  return e / (1 + e);
}

// log(1 + exp(x)), exact at both ends: exp(x) far left, x far right.
double softplus(double x) { return (x > 0 ? x : 0.0) + maths::log1p(maths::exp(-std::fabs(x))); }

double relu(double x) { return x > 0 || std::isnan(x) ? x : 0.0; }

// Half to even, as in NumPy and R: nearbyint in the default rounding mode.
double round_half_even(double x) { return std::nearbyint(x); }

// Below 0 there is no root, and nan is no entry that a range speaks of.
Interval root_range(Interval x, double (*map)(double)) {
  return range::increasing({std::max(x.lo, 0.0), std::max(x.hi, 0.0)}, map);
}

enum Trait { plain, cheap, truth };

struct Row {
  const char* name;
  Trait trait;
  Interval (*range)(Interval, double (*map)(double));
  double (*map)(double);
  const char* doc;
  DerivativeRule derivative;  // null: zero everywhere
  NormRule norms = nullptr;
};

using D = diff::Pullback;
constexpr double two_over_sqrt_pi = 1.1283791670955126;

constexpr Row kRows[] = {
    {"-", cheap, range::negative, [](double x) { return -x; }, "the opposite number",
     [](D& d) { d.pass(0, -1); }, norms::no_larger},
    {"not", truth, range::between<0, 1>, [](double x) { return x == 0 ? 1.0 : 0.0; },
     "1 where the entry is 0, else 0", nullptr},
    {"abs", cheap, range::magnitude, [](double x) { return std::fabs(x); }, "absolute value",
     [](D& d) { d.pass(0, 1, {d.call("sign", {d.x()})}); }, norms::no_larger},
    {"sign", plain, range::between<-1, 1>, sign, "-1, 0 or 1 by sign; nan stays", nullptr},
    {"sqrt", plain, root_range, [](double x) { return std::sqrt(x); }, "square root; nan below 0",
     [](D& d) { d.pass(0, 0.5, {}, {d.y()}); }, norms::root},
    {"exp", plain, range::increasing, [](double x) { return maths::exp(x); },
     "e to the power of the entry", [](D& d) { d.pass(0, 1, {d.y()}); }},
    {"expm1", plain, range::increasing, [](double x) { return maths::expm1(x); },
     "exp(e) - 1, accurate near 0", [](D& d) { d.pass(0, 1, {d.call("exp", {d.x()})}); }},
    {"log", plain, range::increasing, [](double x) { return maths::log(x); },
     "natural logarithm; -inf at 0, nan below", [](D& d) { d.pass(0, 1, {}, {d.x()}); }},
    {"log1p", plain, range::increasing, [](double x) { return maths::log1p(x); },
     "log(1 + e), accurate near 0",
     [](D& d) {
       d.pass(0, 1, {}, {d.call("+", {d.number(1), d.x()})});
     }},
    {"sin", plain, range::between<-1, 1>, [](double x) { return maths::sin(x); }, "sine of radians",
     [](D& d) { d.pass(0, 1, {d.call("cos", {d.x()})}); }, norms::no_larger},
    {"cos", plain, range::between<-1, 1>, [](double x) { return maths::cos(x); },
     "cosine of radians", [](D& d) { d.pass(0, -1, {d.call("sin", {d.x()})}); }},
    {"tan", plain, range::unknown, [](double x) { return maths::tan(x); }, "tangent of radians",
     [](D& d) {
       d.pass(0, 1, {d.call("+", {d.number(1), d.call("square", {d.y()})})});
     }},
    {"tanh", plain, range::increasing, [](double x) { return maths::tanh(x); },
     "hyperbolic tangent",
     [](D& d) {
       d.pass(0, 1, {d.call("-", {d.number(1), d.call("square", {d.y()})})});
     },
     norms::no_larger},
    {"sigmoid", plain, range::increasing, sigmoid, "1 / (1 + exp(-e)), without overflow",
     [](D& d) {
       d.pass(0, 1, {d.call("*", {d.y(), d.call("-", {d.number(1), d.y()})})});
     }},
    {"softplus", plain, range::increasing, softplus, "log(1 + exp(e)), without overflow",
     [](D& d) { d.pass(0, 1, {d.call("sigmoid", {d.x()})}); }},
    {"relu", plain, range::increasing, relu, "the positive part, max(e, 0)",
     [](D& d) {
       d.pass(0, 1, {d.call(">", {d.x(), d.number(0)})});
     },
     norms::no_larger},
    {"square", cheap, range::square, [](double x) { return x * x; }, "e * e",
     [](D& d) { d.pass(0, 2, {d.x()}); }, norms::square},
    {"reciprocal", plain, range::reciprocal, [](double x) { return 1 / x; }, "1 / e",
     [](D& d) { d.pass(0, -1, {d.call("square", {d.y()})}); }},
    {"floor", plain, range::increasing, [](double x) { return std::floor(x); },
     "largest whole number not above e", nullptr},
    {"ceil", plain, range::increasing, [](double x) { return std::ceil(x); },
     "smallest whole number not below e", nullptr},
    {"round", plain, range::increasing, round_half_even, "nearest whole number, halves to even",
     nullptr},
    {"erf", plain, range::increasing, [](double x) { return maths::erf(x); }, "error function",
     [](D& d) {
       d.pass(0, two_over_sqrt_pi, {d.call("exp", {d.call("-", {d.call("square", {d.x()})})})});
     }},
    {"lgamma", plain, range::unknown, special::lgamma, "log |Gamma(e)|; inf at the poles",
     [](D& d) { d.pass(0, 1, {d.call("digamma", {d.x()})}); }},
    {"digamma", plain, range::unknown, special::digamma,
     "derivative of log Gamma; nan at the poles", derivative::digamma},
    {"isnan", truth, range::between<0, 1>, [](double x) { return std::isnan(x) ? 1.0 : 0.0; },
     "1 where the entry is nan, else 0", nullptr},
};

// Written before its operand instead of around it.
void make_prefix(Op& op, int binding, std::string surface) {
  op.notation = Notation::prefix;
  op.binding = binding;
  op.surface = std::move(surface);
}

}  // namespace

std::vector<Op> unary_ops() {
  std::vector<Op> ops;
  for (const Row& row : kRows) {
    Op op;
    op.name = row.name;
    op.family = Family::unary;
    op.surface = op.name + "(e)";
    if (op.name == "not") make_prefix(op, 3, "not e");
    if (op.name == "-") {
      make_prefix(op, 7, "-e");
      op.linear = Linear::jointly;
    }
    op.rule = "T -> T";
    op.doc = row.doc;
    op.type = typing::unchanged;
    op.map1 = row.map;
    op.kernel = Kernel::unary;
    op.cheap = row.trait == cheap;
    op.truth = row.trait == truth;
    op.range = [&row](std::span<const Interval> x, double) { return row.range(x[0], row.map); };
    op.norms = row.norms;
    op.flat = row.derivative == nullptr ? 1U : 0U;
    op.derivative = row.derivative;
    op.meaning = [map = row.map](const Application& a) { return meaning::map_unary(map, a); };
    ops.push_back(std::move(op));
  }
  return ops;
}

}  // namespace starfold

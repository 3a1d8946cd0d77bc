// Families B and G: scalar maps of two operands, joined by broadcasting
// (def:typing-binary-elementwise and its extension).
#include <cmath>

#include "starfold/ops/derivative.h"
#include "starfold/ops/meaning.h"
#include "starfold/ops/standard.h"
#include "starfold/signature/typing.h"
#include "starfold/tensor/portable.h"

namespace starfold {
namespace {

double minimum(double a, double b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  return b < a ? b : a;
}

double maximum(double a, double b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  return b > a ? b : a;
}

// The remainder of floored division: it has the sign of the divisor, as in NumPy and R.
double floored_mod(double a, double b) {
  const double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

constexpr double as_number(bool value) { return value ? 1.0 : 0.0; }

Interval unit(Interval, Interval) { return {0, 1}; }
Interval difference_range(Interval a, Interval b) { return range::plus(a, {-b.hi, -b.lo}); }
Interval minimum_range(Interval a, Interval b) {
  return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
}
Interval maximum_range(Interval a, Interval b) {
  return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
}
Interval mod_range(Interval, Interval b) { return {std::min(b.lo, 0.0), std::max(b.hi, 0.0)}; }
Interval angle_range(Interval, Interval) { return range::outward({-M_PI, M_PI}); }

// a ^ b = exp(b log a): known where a is positive, and for the squares that people write.
Interval power_range(Interval a, Interval b) {
  if (a.lo > 0) {
    const Interval exponent = range::times(b, range::outward({std::log(a.lo), std::log(a.hi)}));
    return range::outward({std::exp(exponent.lo), std::exp(exponent.hi)});
  }
  if (b.lo != b.hi || b.lo < 1 || b.lo != std::floor(b.lo)) return {};
  if (std::fmod(b.lo, 2) != 0) return range::outward({std::pow(a.lo, b.lo), std::pow(a.hi, b.lo)});
  return range::outward({a.hi < 0 ? std::pow(a.hi, b.lo) : 0, std::pow(a.size(), b.lo)});
}

enum Traits : unsigned { plain = 0, cheap = 1, truth = 2, jointly = 4, singly = 8, first = 16 };

Linear linear_of(unsigned traits) {
  if ((traits & jointly) != 0) return Linear::jointly;
  if ((traits & singly) != 0) return Linear::singly;
  return (traits & first) != 0 ? Linear::first : Linear::no;
}

struct Row {
  const char* name;
  Family family;
  int binding;  // 10: written as a call
  unsigned traits;
  Interval (*range)(Interval, Interval);
  double (*map)(double, double);
  const char* doc;
  DerivativeRule derivative;  // null: zero everywhere
  NormRule norms = nullptr;
};

using D = diff::Pullback;

using F = Family;
constexpr Row kRows[] = {
    {"+", F::binary, 5, cheap | jointly, range::plus, [](double a, double b) { return a + b; },
     "sum",
     [](D& d) {
       d.pass(0);
       d.pass(1);
     },
     norms::plus},
    {"-", F::binary, 5, cheap | jointly, difference_range, [](double a, double b) { return a - b; },
     "difference",
     [](D& d) {
       d.pass(0);
       d.pass(1, -1);
     },
     norms::plus},
    {"*", F::binary, 6, cheap | singly, range::times, [](double a, double b) { return a * b; },
     "product",
     [](D& d) {
       d.pass(0, 1, {d.x(1)});
       d.pass(1, 1, {d.x(0)});
     },
     norms::times},
    {"/", F::binary, 6, cheap | first, range::over, [](double a, double b) { return a / b; },
     "quotient",
     [](D& d) {
       d.pass(0, 1, {}, {d.x(1)});
       d.pass(1, -1, {d.y()}, {d.x(1)});
     },
     norms::over},
    {"^", F::binary, 8, plain, power_range, [](double a, double b) { return maths::pow(a, b); },
     "power", derivative::power, norms::power},
    {"and", F::binary, 2, truth, unit,
     [](double a, double b) { return as_number(a != 0 && b != 0); },
     "1 where both are non-zero, else 0", nullptr},
    {"or", F::binary, 1, truth, unit,
     [](double a, double b) { return as_number(a != 0 || b != 0); },
     "1 where either is non-zero, else 0", nullptr},
    {"min", F::binary, 10, cheap, minimum_range, minimum, "the smaller of two; nan if either is",
     derivative::minimum, norms::either},
    {"max", F::binary, 10, cheap, maximum_range, maximum, "the larger of two; nan if either is",
     derivative::maximum, norms::either},
    {"mod", F::binary, 10, plain, mod_range, floored_mod, "remainder with the sign of the divisor",
     derivative::mod},
    {"atan2", F::binary, 10, plain, angle_range,
     [](double a, double b) { return maths::atan2(a, b); },
     "angle of the point (b, a), in radians from -pi to pi", derivative::atan2},
    {"==", F::comparison, 4, cheap | truth, unit,
     [](double a, double b) { return as_number(a == b); }, "1 where equal, else 0", nullptr},
    {"!=", F::comparison, 4, cheap | truth, unit,
     [](double a, double b) { return as_number(a != b); }, "1 where different, else 0", nullptr},
    {"<", F::comparison, 4, cheap | truth, unit,
     [](double a, double b) { return as_number(a < b); }, "1 where less, else 0", nullptr},
    {"<=", F::comparison, 4, cheap | truth, unit,
     [](double a, double b) { return as_number(a <= b); }, "1 where less or equal, else 0",
     nullptr},
    {">", F::comparison, 4, cheap | truth, unit,
     [](double a, double b) { return as_number(a > b); }, "1 where greater, else 0", nullptr},
    {">=", F::comparison, 4, cheap | truth, unit,
     [](double a, double b) { return as_number(a >= b); }, "1 where greater or equal, else 0",
     nullptr},
};

}  // namespace

std::vector<Op> binary_ops() {
  std::vector<Op> ops;
  for (const Row& row : kRows) {
    Op op;
    op.name = row.name;
    op.family = row.family;
    op.min_args = op.max_args = 2;
    op.binding = row.binding;
    op.notation = row.binding < 10 ? Notation::infix : Notation::call;
    op.linear = linear_of(row.traits);
    op.surface = op.notation == Notation::infix ? "a " + op.name + " b" : op.name + "(a, b)";
    op.rule = "S, T -> broadcast(S, T)";
    op.doc = row.doc;
    op.type = typing::broadcasting;
    op.map2 = row.map;
    op.kernel = Kernel::binary;
    op.cheap = (row.traits & cheap) != 0;
    op.truth = (row.traits & truth) != 0;
    op.range = [&row](std::span<const Interval> x, double) { return row.range(x[0], x[1]); };
    op.norms = row.norms;
    op.flat = row.derivative == nullptr ? 3U : 0U;
    op.derivative = row.derivative;
    op.meaning = [map = row.map](const Application& a) { return meaning::map_binary(map, a); };
    ops.push_back(std::move(op));
  }
  return ops;
}

}  // namespace starfold

// Rules of maps that work entry by entry, with broadcasting.
#include <cmath>

#include "starfold/ops/derivative.h"

namespace starfold::derivative {

using ir::NodeId;

void digamma(Pullback& d) {
  d.fail("its derivative, the trigamma function, is not an operation of the language",
         "differentiate `lgamma` once only, or hold this part fixed with `stop_gradient(...)`");
}

void power(Pullback& d) {
  const NodeId x = d.x(0);
  const NodeId e = d.x(1);
  const ir::Node exponent = d.build().node(e);
  if (exponent.kind == ir::Kind::constant && exponent.type().is_scalar()) {
    // No logarithms and no 0 * inf for a fixed exponent.
    const double c = exponent.value.item();
    if (c == 1) return d.pass(0);
    if (c == 2) return d.pass(0, 2, {x});
    if (c == 3) return d.pass(0, 3, {d.call("square", {x})});
    return d.pass(0, c, {d.call("^", {x, d.number(c - 1)})});
  }
  if (d.wants(0)) {
    const NodeId slope = d.call("*", {e, d.call("^", {x, d.call("-", {e, d.number(1)})})});
    d.pass(0, 1, {d.call("where", {d.call("==", {e, d.number(0)}), d.number(0), slope})});
  }
  if (d.wants(1)) {
    const NodeId positive = d.call("where", {d.call("==", {x, d.number(0)}), d.number(1), x});
    d.pass(1, 1, {d.y(), d.call("log", {positive})});
  }
}

void minimum(Pullback& d) {
  const NodeId first = d.call("<=", {d.x(0), d.x(1)});
  d.pass_where(0, first);
  d.pass_where(1, d.call("not", {first}));
}

void maximum(Pullback& d) {
  const NodeId first = d.call(">=", {d.x(0), d.x(1)});
  d.pass_where(0, first);
  d.pass_where(1, d.call("not", {first}));
}

void mod(Pullback& d) {
  d.pass(0);
  d.pass(1, -1, {d.call("floor", {d.call("/", {d.x(0), d.x(1)})})});
}

void atan2(Pullback& d) {
  const NodeId squares = d.call("+", {d.call("square", {d.x(0)}), d.call("square", {d.x(1)})});
  d.pass(0, 1, {d.x(1)}, {squares});
  d.pass(1, -1, {d.x(0)}, {squares});
}

void where(Pullback& d) {
  const ir::Node condition = d.build().node(d.x(0));
  const bool truth = condition.kind == ir::Kind::apply &&
                     (condition.op->family == Family::comparison || condition.op->name == "and" ||
                      condition.op->name == "or" || condition.op->name == "not" || condition.op->name == "isnan");
  d.pass_where(1, truth ? d.x(0) : d.call("!=", {d.x(0), d.number(0)}));
  d.pass_where(2, d.call("not", {d.x(0)}));
}

// min(max(e, lo), hi)
void clip(Pullback& d) {
  const NodeId e = d.x(0);
  const NodeId low = d.x(1);
  const NodeId high = d.x(2);
  d.pass_where(0, d.call("and", {d.call(">=", {e, low}), d.call("<=", {e, high})}));
  if (d.wants(1)) d.pass_where(1, d.call("and", {d.call("<", {e, low}), d.call("<=", {low, high})}));
  if (d.wants(2)) d.pass_where(2, d.call(">", {d.call("max", {e, low}), high}));
}

namespace {

constexpr double half_log_2pi = 0.91893853320467274178;
constexpr double log_2 = 0.69314718055994530942;
constexpr double pi = 3.14159265358979323846;

// Arithmetic on nodes, for formulas that are written as such.
struct Term {
  Pullback* d;
  NodeId node;
};
Term operator+(Term a, Term b) { return {a.d, a.d->call("+", {a.node, b.node})}; }
Term operator-(Term a, Term b) { return {a.d, a.d->call("-", {a.node, b.node})}; }
Term operator*(Term a, Term b) { return {a.d, a.d->call("*", {a.node, b.node})}; }
Term operator/(Term a, Term b) { return {a.d, a.d->call("/", {a.node, b.node})}; }
Term operator+(Term a, double b) { return a + Term{a.d, a.d->number(b)}; }
Term operator-(Term a, double b) { return a - Term{a.d, a.d->number(b)}; }
Term operator*(double a, Term b) { return Term{b.d, b.d->number(a)} * b; }
Term map(const char* op, Term x) { return {x.d, x.d->call(op, {x.node})}; }

NodeId normal_density(Pullback& d, NodeId x) {
  return map("exp", -0.5 * map("square", Term{&d, x}) - half_log_2pi).node;
}

NodeId t_density(Pullback& d, NodeId at) {
  const Term x{&d, at};
  const Term df{&d, d.x(1)};
  const Term half = 0.5 * (df + 1);
  return map("exp", map("lgamma", half) - map("lgamma", 0.5 * df) - 0.5 * map("log", pi * df) -
                        half * map("log1p", map("square", x) / df))
      .node;
}

// Of a distribution on the positive numbers, from the logarithm of its density there.
NodeId positive_density(Pullback& d, Term log_density) {
  return d.call("where", {d.call(">", {d.x(0), d.number(0)}), map("exp", log_density).node, d.number(0)});
}

NodeId chi2_density(Pullback& d) {
  const Term x{&d, d.x(0)};
  const Term half = 0.5 * Term{&d, d.x(1)};
  return positive_density(d, (half - 1) * map("log", x) - 0.5 * x - log_2 * half - map("lgamma", half));
}

NodeId f_density(Pullback& d) {
  const Term x{&d, d.x(0)};
  const Term a = 0.5 * Term{&d, d.x(1)};
  const Term b = 0.5 * Term{&d, d.x(2)};
  const Term beta = map("lgamma", a) + map("lgamma", b) - map("lgamma", a + b);
  return positive_density(d, a * map("log", a) + b * map("log", b) + (a - 1) * map("log", x) -
                                 (a + b) * map("log", a * x + b) - beta);
}

void by_first(Pullback& d, double sign, NodeId density) {
  for (std::size_t i = 1; i < d.operands(); ++i) {
    if (!d.wants(i)) continue;
    return d.fail("its derivative by the degrees of freedom is not an operation of the language",
                  "hold the degrees of freedom fixed with `stop_gradient(...)`");
  }
  d.pass(0, sign, {density});
}

}  // namespace

void normal_cdf(Pullback& d) { d.pass(0, 1, {normal_density(d, d.x())}); }
void normal_sf(Pullback& d) { d.pass(0, -1, {normal_density(d, d.x())}); }
void normal_quantile(Pullback& d) { d.pass(0, 1, {}, {normal_density(d, d.y())}); }
void t_cdf(Pullback& d) { by_first(d, 1, t_density(d, d.x())); }
void t_sf(Pullback& d) { by_first(d, -1, t_density(d, d.x())); }
void t_quantile(Pullback& d) { by_first(d, 1, d.call("/", {d.number(1), t_density(d, d.y())})); }
void chi2_cdf(Pullback& d) { by_first(d, 1, chi2_density(d)); }
void chi2_sf(Pullback& d) { by_first(d, -1, chi2_density(d)); }
void f_cdf(Pullback& d) { by_first(d, 1, f_density(d)); }
void f_sf(Pullback& d) { by_first(d, -1, f_density(d)); }

}  // namespace starfold::derivative

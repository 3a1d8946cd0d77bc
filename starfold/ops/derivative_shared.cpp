// Rules of shared-only operations: constructions and linear algebra.
#include <fmt/format.h>

#include <algorithm>

#include "starfold/ops/derivative.h"

namespace starfold::derivative {
namespace {

using ir::Factor;
using ir::Label;
using ir::Labels;
using ir::no_label;
using ir::NodeId;
using ir::Product;

Product with_delta(Product p, Label a, Label b) {
  if (a != no_label) p.deltas.emplace_back(a, b);
  return p;
}

// 1, 2, ..., n
NodeId positions(const Pullback& d, const Size& n) { return d.call("cumsum", {d.call("ones", {}, {}, {n})}, {0}); }

NodeId as_column(const Pullback& d, NodeId vector) {
  return d.call("[:]", {vector}, {}, {}, {{Slice::Kind::all, {}, {}}, {Slice::Kind::new_axis, {}, {}}});
}

NodeId transposed(const Pullback& d, NodeId matrix) { return d.call("permute", {matrix}, {1, 0}); }

Product scaled(Product p, double number) {
  p.number *= number;
  return p;
}

}  // namespace

void full(Pullback& d) { d.give(0, {}, d.adjoint()); }

void linspace(Pullback& d) {
  const NodeId share = d.call("linspace", {d.number(0), d.number(1)}, {}, d.node().attrs.sizes);
  d.give(0, {}, d.with(d.adjoint(), d.call("-", {d.number(1), share}), d.labels()));
  d.give(1, {}, d.with(d.adjoint(), share, d.labels()));
}

void cumsum(Pullback& d) {
  const auto axis = static_cast<std::size_t>(d.node().attrs.axes[0]);
  const Dim& dim = d.type(d.x()).dims[axis];
  Labels labels = d.labels();
  if (dim.is_one()) return d.give(0, labels, d.adjoint());
  labels[axis] = d.algebra().label(dim);
  const NodeId place = positions(d, dim.size);
  const NodeId up_to = d.call(">=", {as_column(d, place), place});
  d.give(0, labels, d.with(d.adjoint(), up_to, {d.labels()[axis], labels[axis]}));
}

void diag(Pullback& d) {
  if (d.labels().size() == 2) {
    d.give(0, {d.labels()[0]}, with_delta(d.adjoint(), d.labels()[0], d.labels()[1]));
  } else {
    const Label column = d.algebra().label(d.type(d.x()).dims[1]);
    d.give(0, {d.labels()[0], column}, with_delta(d.adjoint(), d.labels()[0], column));
  }
}

void trace_of(Pullback& d) {
  const Labels labels = d.fresh(d.type(d.x()));
  d.give(0, labels, with_delta(d.adjoint(), labels[0], labels[1]));
}

namespace {

// w with a' @ w = g for the adjoint g, along its first axis.
Product solve_back(const Pullback& d, Product g, Label along, Label solved) {
  if (along == no_label) return d.with(std::move(g), d.x(0), {no_label, no_label}, true);
  bool in_delta = false;
  for (const auto& [a, b] : g.deltas) in_delta = in_delta || a == along || b == along;
  bool federated = false;
  for (const Factor& factor : g.factors) federated = federated || (factor.has(along) && d.type(factor.node).federated());
  if (in_delta || federated) return d.sum(d.with(std::move(g), d.call("inv", {d.x(0)}), {along, solved}), {along});
  const NodeId matrix = transposed(d, d.x(0));
  if (!g.has(along)) {
    return d.with(std::move(g), d.call("solve", {matrix, d.call("ones", {}, {}, {d.algebra().dim(along).size})}), {solved});
  }
  return d.change_along(std::move(g), along, [&](const Factor& factor) {
    Labels layout = {along};
    std::vector<Size> sizes = {d.algebra().dim(along).size};
    std::optional<Size> columns = Size(1);
    for (const Label label : factor.labels) {
      if (label == along || label == no_label) continue;
      layout.push_back(label);
      sizes.push_back(d.algebra().dim(label).size);
      if (columns) columns = multiply(*columns, sizes.back());
    }
    if (!columns) throw ir::TooLarge("a size is too large");
    NodeId right = d.algebra().view(factor, layout, true);
    if (layout.size() > 2) right = d.call("reshape", {right}, {}, {sizes[0], *columns});
    NodeId solution = d.call("solve", {matrix, right});
    if (layout.size() > 2) solution = d.call("reshape", {solution}, {}, sizes);
    layout[0] = solved;
    return Factor{solution, layout, false};
  });
}

}  // namespace

void solve(Pullback& d) {
  const Dim& dim = d.type(d.x(0)).dims[0];
  const Label along = d.labels()[0];
  const Label row = d.algebra().label(dim);
  const Label column = d.algebra().label(dim);
  const Product w = solve_back(d, d.adjoint(), along, row);
  Labels of_right = d.labels();
  of_right[0] = row;
  d.give(1, of_right, w, {along});
  Labels of_solution = d.labels();
  of_solution[0] = column;
  d.give(0, {row, column}, scaled(d.with(w, d.y(), of_solution), -1), {along});
}

// Phi keeps the lower triangle and half of the diagonal: a = l'^-1 Phi(l' g) l^-1, made symmetric.
void cholesky(Pullback& d) {
  const Dim& dim = d.type(d.x()).dims[0];
  if (dim.is_one()) return d.pass(0, 0.5, {}, {d.y()});
  const Label k = d.labels()[0];
  const Label j = d.labels()[1];
  const Label i = d.algebra().label(dim);
  const Label a = d.algebra().label(dim);
  const Label b = d.algebra().label(dim);
  const NodeId place = positions(d, dim.size);
  const NodeId lower = d.call(">", {as_column(d, place), place});
  const NodeId half_diagonal = d.call("*", {d.number(0.5), d.call("eye", {}, {}, {dim.size})});
  const NodeId inverse = d.call("inv", {d.y()});
  Product p = d.sum(d.with(d.adjoint(), d.y(), {k, i}), {k});
  p = d.with(std::move(p), d.call("+", {lower, half_diagonal}), {i, j});
  p = d.sum(d.with(std::move(p), inverse, {i, a}), {i});
  p = scaled(d.sum(d.with(std::move(p), inverse, {j, b}), {j}), 0.5);
  d.give(0, {a, b}, p, d.labels());
  d.give(0, {b, a}, p, d.labels());
}

void logdet(Pullback& d) {
  const Labels labels = d.fresh(d.type(d.x()));
  d.give(0, labels, d.with(d.adjoint(), d.call("inv", {d.x()}), {labels[1], labels[0]}));
}

void det(Pullback& d) {
  const Labels labels = d.fresh(d.type(d.x()));
  const Product p = d.with(d.adjoint(), d.y(), {});
  d.give(0, labels, d.with(p, d.call("inv", {d.x()}), {labels[1], labels[0]}));
}

void inv(Pullback& d) {
  const Labels labels = d.fresh(d.type(d.x()));
  Product p = d.sum(d.with(d.adjoint(), d.y(), {d.labels()[0], labels[0]}), {d.labels()[0]});
  p = d.sum(d.with(std::move(p), d.y(), {labels[1], d.labels()[1]}), {d.labels()[1]});
  d.give(0, labels, scaled(std::move(p), -1), d.labels());
}

void factorization(Pullback& d) {
  d.fail("no rule is defined for it: where values coincide it has no derivative",
         d.node().op->name == "eigh" ? "`trace_of`, `logdet`, `det` and `solve` can be differentiated"
                                     : "`solve`, `cholesky` and `inv` can be differentiated");
}

}  // namespace starfold::derivative

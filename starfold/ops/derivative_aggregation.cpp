// Rules of folds along axes, the record axis or others, and of maps along an axis.
#include <fmt/format.h>

#include <algorithm>

#include "starfold/ops/derivative.h"

namespace starfold::derivative {
namespace {

using ir::Label;
using ir::Labels;
using ir::NodeId;
using ir::Product;

bool folds(const Pullback& d, std::size_t axis) {
  const auto& axes = d.node().attrs.axes;
  return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
}

// The labels of the operand of a fold: the result's, and new ones where it folds.
Labels unfolded(const Pullback& d) {
  Labels labels;
  auto kept = d.labels().begin();
  const Type& type = d.type(d.x());
  for (std::size_t axis = 0; axis < type.rank(); ++axis) {
    labels.push_back(folds(d, axis) ? d.algebra().label(type.dims[axis]) : *kept++);
  }
  return labels;
}

NodeId fold(const Pullback& d, const char* op, NodeId x) {
  return d.node().attrs.axes.empty() ? x : d.call(op, {x}, d.node().attrs.axes);
}

// p divided by the number of folded elements.
void divide_by_count(const Pullback& d, Product& p, const Labels& labels) {
  for (std::size_t axis = 0; axis < labels.size(); ++axis) {
    if (folds(d, axis)) d.algebra().multiply_by_size(p, labels[axis], true);
  }
}

// The number of folded elements less one.
NodeId degrees_of_freedom(const Pullback& d, const Labels& labels) {
  Product count;
  for (std::size_t axis = 0; axis < labels.size(); ++axis) {
    if (folds(d, axis)) d.algebra().multiply_by_size(count, labels[axis]);
  }
  if (count.factors.empty()) return d.number(count.number - 1);
  return d.call("-", {d.algebra().node(count, {}), d.number(1)});
}

NodeId deviations(const Pullback& d) {
  return d.call("-", {d.x(), d.keep(fold(d, "mean", d.x()))});
}

NodeId or_one(const Pullback& d, NodeId x) {
  return d.call("where", {d.call("==", {x, d.number(0)}), d.number(1), x});
}

}  // namespace

void sum(Pullback& d) { d.give(0, unfolded(d), d.adjoint()); }

void mean(Pullback& d) {
  const Labels labels = unfolded(d);
  Product p = d.adjoint();
  divide_by_count(d, p, labels);
  d.give(0, labels, std::move(p));
}

void var(Pullback& d) {
  const Labels labels = unfolded(d);
  Product p = d.with(d.adjoint(), deviations(d), labels);
  p.number *= 2;
  d.give(0, labels, d.with(std::move(p), degrees_of_freedom(d, labels), {}, true));
}

void std(Pullback& d) {
  const Labels labels = unfolded(d);
  Product p = d.with(d.adjoint(), deviations(d), labels);
  p = d.with(std::move(p), or_one(d, d.y()), d.labels(), true);
  d.give(0, labels, d.with(std::move(p), degrees_of_freedom(d, labels), {}, true));
}

// With the records of both operands under one label, the adjoint of a column is the other operand's deviations
// times the adjoint of the result. The means need no adjoint: deviations sum to zero.
void cov(Pullback& d) {
  const std::size_t last = d.operands() - 1;
  const auto record_axis = [&](std::size_t i) {
    const std::optional<std::size_t> star = d.type(d.x(i)).record_axis();
    return star ? *star : static_cast<std::size_t>(d.node().attrs.axes[0]);
  };
  const Label record = d.algebra().label(d.type(d.x()).dims[record_axis(0)]);
  const auto records_first = [&](std::size_t i) {
    const NodeId x = record_axis(i) == 0 ? d.x(i) : d.call("permute", {d.x(i)}, {1, 0});
    return d.call("-", {x, d.call("mean", {x}, {0})});
  };
  Product count;
  d.algebra().multiply_by_size(count, record);
  const NodeId degrees = count.factors.empty()
                             ? d.number(count.number - 1)
                             : d.call("-", {d.algebra().node(count, {}), d.number(1)});
  const auto pass = [&](std::size_t to, Label own, std::size_t from, Label other) {
    if (!d.wants(to)) return;
    const Product p = d.with(d.adjoint(), records_first(from), {record, other});
    const Labels labels = record_axis(to) == 0 ? Labels{record, own} : Labels{own, record};
    d.give(to, labels, d.with(p, degrees, {}, true));
  };
  const Label row = d.labels()[0];
  const Label column = d.labels()[1];
  pass(0, row, last, column);
  pass(last, column, 0, row);
}

void logsumexp(Pullback& d) {
  const NodeId share = d.call("exp", {d.call("-", {d.x(), d.keep(d.y())})});
  const Labels labels = unfolded(d);
  d.give(0, labels, d.with(d.adjoint(), share, labels));
}

void norm(Pullback& d) {
  const Labels labels = unfolded(d);
  d.give(0, labels, d.with(d.with(d.adjoint(), d.x(), labels), or_one(d, d.y()), d.labels(), true));
}

// The product of all others, also where some are zero: zeros are counted and left out.
void prod(Pullback& d) {
  const NodeId is_zero = d.call("==", {d.x(), d.number(0)});
  const NodeId rest = or_one(d, d.x());
  const NodeId other_zeros = d.call("-", {d.keep(fold(d, "sum", is_zero)), is_zero});
  const NodeId others = d.call("/", {d.keep(fold(d, "prod", rest)), rest});
  const NodeId slope =
      d.call("where", {d.call("==", {other_zeros, d.number(0)}), others, d.number(0)});
  const Labels labels = unfolded(d);
  d.give(0, labels, d.with(d.adjoint(), slope, labels));
}

void extreme(Pullback& d) {
  const std::optional<std::size_t> star = d.type(d.x()).record_axis();
  if (star && folds(d, *star)) {
    const bool most = d.node().op->name == "max";
    return d.fail("one record decides it, and which one changes abruptly with the variable",
                  most ? "use a smooth maximum such as `logsumexp[*](k * e) / k` with a large k"
                       : "use a smooth minimum such as `-logsumexp[*](-k * e) / k` with a large k");
  }
  const NodeId hit = d.call("==", {d.x(), d.keep(d.y())});
  const Labels labels = unfolded(d);
  d.give(0, labels,
         d.with(d.with(d.adjoint(), hit, labels), fold(d, "sum", hit), d.labels(), true));
}

void order_statistic(Pullback& d) {
  d.fail("which entries it picks changes abruptly with the variable, and no rule is defined for it",
         d.node().op->name == "sort"
             ? "hold it fixed with `stop_gradient(...)`"
             : "use `mean`, or a smooth share such as `mean(sigmoid(k * (e - c)))`");
}

void softmax(Pullback& d) {
  const Label along = d.labels()[static_cast<std::size_t>(d.node().attrs.axes[0])];
  const Product own = d.with(d.adjoint(), d.y(), d.labels());
  d.give(0, d.labels(), own);
  Product others = d.with(d.sum(own, {along}), d.y(), d.labels());
  others.number = -others.number;
  d.give(0, d.labels(), std::move(others));
}

void log_softmax(Pullback& d) {
  const Label along = d.labels()[static_cast<std::size_t>(d.node().attrs.axes[0])];
  d.give(0, d.labels(), d.adjoint());
  Product others = d.with(d.sum(d.adjoint(), {along}), d.call("exp", {d.y()}), d.labels());
  others.number = -others.number;
  d.give(0, d.labels(), std::move(others));
}

// With n the norm of a record: e where n <= c, else e * c / n.
void clip_norm(Pullback& d) {
  std::vector<std::int64_t> axes;
  Labels of_norm;
  for (std::size_t axis = 0; axis < d.labels().size(); ++axis) {
    if (d.type(d.x()).dims[axis].star) {
      of_norm.push_back(d.labels()[axis]);
    } else {
      axes.push_back(static_cast<std::int64_t>(axis));
    }
  }
  const NodeId norm = axes.empty() ? d.call("abs", {d.x(0)}) : d.call("norm", {d.x(0)}, axes);
  const NodeId beyond = d.call(">", {norm, d.x(1)});
  const NodeId safe = d.call("where", {beyond, norm, d.number(1)});
  const Product along = d.with(d.adjoint(), d.x(0), d.labels());
  Labels cell;
  for (const std::int64_t axis : axes) cell.push_back(d.labels()[static_cast<std::size_t>(axis)]);
  const Product inner = d.sum(along, cell);
  if (d.wants(0)) {
    d.give(0, d.labels(),
           d.with(d.adjoint(), d.call("where", {beyond, d.call("/", {d.x(1), safe}), d.number(1)}),
                  of_norm));
    const NodeId pull =
        d.call("/", {d.call("*", {beyond, d.x(1)}), d.call("^", {safe, d.number(3)})});
    Product back = d.with(d.with(inner, d.x(0), d.labels()), pull, of_norm);
    back.number = -back.number;
    d.give(0, d.labels(), std::move(back));
  }
  d.give(1, {}, d.with(inner, d.call("/", {beyond, safe}), of_norm), cell);
}

}  // namespace starfold::derivative

#include "starfold/diff/pullback.h"

#include <algorithm>

#include "starfold/diff/sweep.h"

namespace starfold::diff {

using ir::Factor;
using ir::Label;
using ir::no_label;

namespace {

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

}  // namespace

Pullback::Pullback(Sweep& sweep, NodeId result, Product adjoint)
    : sweep_(sweep),
      result_(result),
      node_(sweep.build_.node(result)),
      adjoint_(std::move(adjoint)),
      labels_(sweep.labels_of(result)) {}

ir::Builder& Pullback::build() const { return sweep_.build_; }
ir::Algebra& Pullback::algebra() const { return sweep_.algebra_; }
bool Pullback::wants(std::size_t i) const {
  return sweep_.active(node_.args[i]) && (node_.op == nullptr || !node_.op->flat_in(i));
}
Labels Pullback::fresh(const Type& type) const { return algebra().labels(type); }

NodeId Pullback::call(std::string_view op, std::vector<NodeId> args, std::vector<std::int64_t> axes,
                      std::vector<Size> sizes, std::vector<Slice> slices) const {
  return build().call(op, std::move(args), std::move(axes), std::move(sizes), std::move(slices));
}

Labels Pullback::aligned(NodeId id) const {
  const Type& of = type(id);
  Labels labels;
  for (std::size_t i = 0; i < of.rank(); ++i) {
    labels.push_back(of.dims[i].is_one() ? no_label : labels_[labels_.size() - of.rank() + i]);
  }
  return labels;
}

void Pullback::give(std::size_t i, const Labels& labels, Product product, const Labels& done) {
  if (!wants(i)) return;
  Labels over;
  const auto consider = [&](Label label) {
    const bool stays = label == no_label || contains(sweep_.lead_, label) || contains(labels, label);
    if (!stays && !contains(over, label)) over.push_back(label);
  };
  for (const Label label : labels_) {
    if (!contains(done, label)) consider(label);
  }
  for (const Factor& factor : product.factors) std::for_each(factor.labels.begin(), factor.labels.end(), consider);
  for (const auto& [a, b] : product.deltas) {
    consider(a);
    consider(b);
  }
  product = algebra().sum(std::move(product), std::move(over), sweep_.order_for(labels));
  const Labels& own = sweep_.labels_of(x(i));
  std::map<Label, Label> names;
  for (std::size_t k = 0; k < labels.size(); ++k) {
    if (labels[k] != no_label) names.emplace(labels[k], own[k]);
  }
  algebra().rename(product, names);
  sweep_.contribute(x(i), std::move(product));
}

Product Pullback::with(Product p, NodeId node, const Labels& labels, bool inverse) const {
  algebra().multiply(p, node, labels, inverse);
  return p;
}

Product Pullback::sum(Product p, const Labels& over) const {
  return algebra().sum(std::move(p), over, sweep_.order_for(labels_));
}

void Pullback::pass(std::size_t i, double number, const std::vector<NodeId>& times, const std::vector<NodeId>& over) {
  if (!wants(i)) return;
  Product product = adjoint_;
  product.number *= number;
  for (const NodeId node : times) algebra().multiply(product, node, aligned(node));
  for (const NodeId node : over) algebra().multiply(product, node, aligned(node), true);
  give(i, aligned(x(i)), std::move(product));
}

void Pullback::pass_where(std::size_t i, NodeId condition) {
  if (!wants(i)) return;
  Product product = adjoint_;
  std::vector<Factor> inside;
  std::vector<Factor> outside;
  for (Factor& factor : product.factors) {
    const bool own = !factor.labels.empty() && std::all_of(factor.labels.begin(), factor.labels.end(), [&](Label label) {
      return label == no_label || contains(labels_, label);
    });
    (own ? inside : outside).push_back(std::move(factor));
  }
  product.factors = std::move(outside);
  const Labels of_condition = aligned(condition);
  if (inside.empty()) {
    algebra().multiply(product, condition, of_condition);
  } else {
    Factor value = algebra().join(std::move(inside), 1, sweep_.order_for(labels_));
    if (value.inverse) value = {call("/", {number(1), value.node}), value.labels, false};
    const Factor mask{condition, of_condition, false};
    Labels layout;
    for (const Label label : labels_) {
      if (value.has(label) || mask.has(label)) layout.push_back(label);
    }
    const NodeId chosen = call("where", {algebra().view(mask, layout, false), algebra().view(value, layout, false), number(0)});
    product.factors.push_back({chosen, layout, false});
  }
  give(i, aligned(x(i)), std::move(product));
}

Product Pullback::change_along(Product p, Label label, const Change& change) const {
  std::vector<Factor> inner;
  std::vector<Factor> outer;
  for (Factor& factor : p.factors) (factor.has(label) ? inner : outer).push_back(std::move(factor));
  std::erase_if(p.deltas, [&](const auto& delta) {
    if (delta.first != label && delta.second != label) return false;
    inner.push_back({call("eye", {}, {}, {algebra().dim(label).size}), {delta.first, delta.second}, false});
    return true;
  });
  Factor joined = algebra().join(std::move(inner), 1, sweep_.order_for(labels_));
  if (joined.inverse) joined = {call("/", {number(1), joined.node}), joined.labels, false};
  p.factors = std::move(outer);
  p.factors.push_back(change(joined));
  return p;
}

NodeId Pullback::keep(NodeId folded) const {
  std::vector<Slice> slices;
  for (std::size_t axis = 0; axis < type(x()).rank(); ++axis) {
    const bool gone = std::find(node_.attrs.axes.begin(), node_.attrs.axes.end(), static_cast<std::int64_t>(axis)) != node_.attrs.axes.end();
    slices.push_back({gone ? Slice::Kind::new_axis : Slice::Kind::all, {}, {}});
  }
  return node_.attrs.axes.empty() ? folded : call("[:]", {folded}, {}, {}, slices);
}

void Pullback::fail(std::string reason, std::string help) { sweep_.fail(node_, std::move(reason), std::move(help)); }

}  // namespace starfold::diff

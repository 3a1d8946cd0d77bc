#include "starfold/ir/product.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "starfold/base/error.h"
#include "starfold/ir/forms.h"

namespace starfold::ir {

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

namespace {

std::size_t width(const Factor& factor) {
  return static_cast<std::size_t>(std::count_if(factor.labels.begin(), factor.labels.end(),
                                                [](Label l) { return l != no_label; }));
}

bool covers(const Factor& wide, const Factor& narrow) {
  return std::all_of(narrow.labels.begin(), narrow.labels.end(),
                     [&](Label label) { return label == no_label || wide.has(label); });
}

Slice all() { return {Slice::Kind::all, {}, {}}; }
Slice first() { return {Slice::Kind::index, 1, 1}; }
Slice new_axis() { return {Slice::Kind::new_axis, {}, {}}; }

bool is_only_new_axes(const Node& node) {
  return std::all_of(node.attrs.slices.begin(), node.attrs.slices.end(), [](const Slice& slice) {
    return slice.kind == Slice::Kind::all || slice.kind == Slice::Kind::new_axis;
  });
}

// The labels of the operand of a permutation or of an indexing that only adds axes.
std::optional<Labels> labels_below(const Node& node, const Labels& labels) {
  Labels below;
  if (node.op->family == Family::permutation) {
    below.resize(labels.size());
    for (std::size_t i = 0; i < labels.size(); ++i)
      below[static_cast<std::size_t>(node.attrs.axes[i])] = labels[i];
    return below;
  }
  if (!is_op(node, "[:]", 1) || !is_only_new_axes(node)) return std::nullopt;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const bool added =
        i < node.attrs.slices.size() && node.attrs.slices[i].kind == Slice::Kind::new_axis;
    if (!added) below.push_back(labels[i]);
  }
  return below;
}

}  // namespace

bool Factor::has(Label label) const { return label != no_label && contains(labels, label); }

bool Product::has(Label label) const {
  return std::any_of(factors.begin(), factors.end(),
                     [&](const Factor& factor) { return factor.has(label); });
}

Label Algebra::label(const Dim& dim) {
  if (dim.is_one()) return no_label;
  if (dim.star) {
    const auto known = stars_.find(dim.record_set);
    if (known != stars_.end()) return known->second;
    stars_.emplace(dim.record_set, static_cast<Label>(dims_.size()));
  }
  dims_.push_back(dim);
  return static_cast<Label>(dims_.size() - 1);
}

Labels Algebra::labels(const Type& type) {
  Labels labels;
  for (const Dim& dim : type.dims) labels.push_back(label(dim));
  return labels;
}

// Reads signs, constants, transposes and the like off a factor; false when nothing is left of it.
bool Algebra::unwrap(Product& product, NodeId& id, Labels& labels, bool inverse) const {
  while (true) {
    const Node& node = build_.node(id);
    if (node.kind == Kind::constant && node.type().is_scalar()) {
      product.number =
          inverse ? product.number / node.value.item() : product.number * node.value.item();
      return false;
    }
    if (node.kind != Kind::apply) return true;
    if (is_ones(build_.program().graph, id)) return false;
    if (is_op(node, "eye", 0) && !inverse) {
      if (labels[0] != labels[1]) product.deltas.emplace_back(labels[0], labels[1]);
      return false;
    }
    if (is_op(node, "-", 1)) {
      product.number = -product.number;
    } else if (is_op(node, "full", 1)) {
      labels.clear();
    } else if (std::optional<Labels> below = labels_below(node, labels)) {
      labels = std::move(*below);
    } else {
      return true;
    }
    id = node.args[0];
  }
}

void Algebra::multiply(Product& product, NodeId id, Labels labels, bool inverse) const {
  if (unwrap(product, id, labels, inverse))
    product.factors.push_back({id, std::move(labels), inverse});
}

void Algebra::multiply_parts(Product& product, NodeId id, Labels labels, bool inverse) const {
  if (!unwrap(product, id, labels, inverse)) return;
  const Node& node = build_.node(id);
  const bool outer = is_outer(node);
  const bool divides = is_quotient(node);
  if (!outer && !divides && !is_product(node)) {
    product.factors.push_back({id, std::move(labels), inverse});
    return;
  }
  std::vector<Factor> parts;
  for (std::size_t i = 0; i < 2; ++i) {
    Factor part{node.args[i], {}, false};
    const Type& type = build_.type(part.node);
    for (std::size_t axis = 0; axis < type.rank(); ++axis) {
      const std::size_t aligned = labels.size() - type.rank() + axis;
      const std::size_t from_outer = type.dims[axis].star ? 0 : labels.size() - 2 + i;
      part.labels.push_back(type.dims[axis].is_one() ? no_label
                                                     : labels[outer ? from_outer : aligned]);
    }
    parts.push_back(std::move(part));
  }
  const bool broadcasts = !covers(parts[0], parts[1]) || !covers(parts[1], parts[0]);
  if (!broadcasts) {
    product.factors.push_back({id, std::move(labels), inverse});
    return;
  }
  multiply_parts(product, parts[0].node, parts[0].labels, inverse);
  multiply_parts(product, parts[1].node, parts[1].labels, inverse != divides);
}

void Algebra::multiply(Product& product, const Product& by) const {
  product.number *= by.number;
  product.factors.insert(product.factors.end(), by.factors.begin(), by.factors.end());
  product.deltas.insert(product.deltas.end(), by.deltas.begin(), by.deltas.end());
}

void Algebra::multiply_by_size(Product& product, Label label, bool inverse) const {
  if (label == no_label) return;
  const Dim& dim = dims_[label];
  if (!dim.star) return multiply(product, build_.size(dim.size), {}, inverse);
  for (const Input& input : build_.program().inputs) {
    if (!input.type.federated() || input.type.record_set() != dim.record_set) continue;
    return multiply(product, build_.call("records", {input.node}), {}, inverse);
  }
  throw Bug("a record set without an input");
}

void Algebra::rename(Product& product, const std::map<Label, Label>& names) const {
  const auto change = [&](Label& label) {
    const auto found = names.find(label);
    if (found != names.end()) label = found->second;
  };
  for (Factor& factor : product.factors)
    std::for_each(factor.labels.begin(), factor.labels.end(), change);
  for (auto& [a, b] : product.deltas) {
    change(a);
    change(b);
  }
}

Type Algebra::type_of(const Labels& layout) const {
  Type type;
  for (const Label label : layout)
    type.dims.push_back(label == no_label ? Dim::of(1) : dims_[label]);
  return type;
}

NodeId Algebra::scaled(NodeId node, double number) const {
  if (number == 1) return node;
  return number == -1 ? build_.call("-", {node}) : build_.mul(build_.number(number), node);
}

NodeId Algebra::view(const Factor& factor, const Labels& layout, bool exact) const {
  // As it is, where the axes are in place already.
  const std::size_t rank = factor.labels.size();
  bool fits = exact ? rank == layout.size() : rank <= layout.size();
  for (std::size_t i = 0; fits && i < layout.size(); ++i) {
    const Label wanted = layout[layout.size() - 1 - i];
    const Label there = i < rank ? factor.labels[rank - 1 - i] : no_label;
    fits = there == (factor.has(wanted) ? wanted : no_label);
  }
  if (fits) return factor.node;

  NodeId node = factor.node;
  Labels labels;
  std::vector<Slice> slices;
  for (const Label label : factor.labels) {
    slices.push_back(label == no_label ? first() : all());
    if (label != no_label) labels.push_back(label);
  }
  if (labels.size() < rank) node = build_.call("[:]", {node}, {}, {}, slices);

  std::vector<std::int64_t> axes;
  slices.clear();
  for (const Label label : layout) {
    const auto at =
        label == no_label ? labels.end() : std::find(labels.begin(), labels.end(), label);
    if (at != labels.end()) {
      axes.push_back(at - labels.begin());
      slices.push_back(all());
    } else if (exact || !slices.empty()) {
      slices.push_back(new_axis());
    }
  }
  if (axes.size() != labels.size()) throw Bug("a layout lacks an axis");
  if (!std::is_sorted(axes.begin(), axes.end())) node = build_.call("permute", {node}, axes);
  const bool adds = std::any_of(slices.begin(), slices.end(),
                                [](const Slice& s) { return s.kind == Slice::Kind::new_axis; });
  return adds ? build_.call("[:]", {node}, {}, {}, slices) : node;
}

Labels Algebra::layout_of(const Factor& a, const Factor& b, const Labels& order) const {
  const Factor* wide = covers(a, b) ? &a : covers(b, a) ? &b : nullptr;
  Labels layout;
  if (wide != nullptr) {
    std::copy_if(wide->labels.begin(), wide->labels.end(), std::back_inserter(layout),
                 [](Label l) { return l != no_label; });
    return layout;
  }
  const auto take = [&](const Labels& from) {
    for (const Label label : from) {
      if ((a.has(label) || b.has(label)) && !contains(layout, label)) layout.push_back(label);
    }
  };
  // A record axis that is about to be folded goes first.
  for (const Factor* factor : {&a, &b}) {
    for (const Label label : factor->labels) {
      if (label != no_label && is_star(label) && !contains(order, label) &&
          !contains(layout, label))
        layout.push_back(label);
    }
  }
  take(order);
  take(a.labels);
  take(b.labels);
  return layout;
}

Factor Algebra::combine(const Factor& a, const Factor& b, const Labels& order) const {
  const Labels layout = layout_of(a, b, order);
  const NodeId x = view(a, layout, false);
  const NodeId y = view(b, layout, false);
  Factor result{no_node, layout, false};
  if (a.inverse && b.inverse) {
    result.inverse = true;
    result.node = build_.mul(x, y);
  } else if (b.inverse) {
    result.node = build_.div(x, y);
  } else if (a.inverse) {
    result.node = build_.div(y, x);
  } else {
    result.node = width(b) == 0 ? build_.mul(y, x) : build_.mul(x, y);
  }
  return result;
}

Factor Algebra::join(std::vector<Factor> factors, double number, const Labels& order) {
  if (factors.empty()) return {build_.number(number), {}, false};
  const auto narrower = [](const Factor& a, const Factor& b) { return width(a) < width(b); };
  // Equal shapes first, so that wide values are multiplied once.
  for (std::size_t i = 0; i < factors.size(); ++i) {
    for (std::size_t j = i + 1; j < factors.size();) {
      const bool equal = width(factors[i]) == width(factors[j]) && covers(factors[i], factors[j]);
      if (!equal) {
        ++j;
        continue;
      }
      factors[i] = combine(factors[i], factors[j], order);
      factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
  const auto narrowest = std::min_element(factors.begin(), factors.end(), narrower);
  if (number != 1 && narrowest->inverse) {
    *narrowest = {build_.div(build_.number(number), narrowest->node), narrowest->labels, false};
  } else {
    narrowest->node = scaled(narrowest->node, number);
  }
  while (factors.size() > 1) {
    const auto narrow = std::min_element(factors.begin(), factors.end(), narrower);
    const Factor small = *narrow;
    factors.erase(narrow);
    auto wide = factors.end();
    for (auto it = factors.begin(); it != factors.end(); ++it) {
      if (covers(*it, small) && (wide == factors.end() || width(*it) < width(*wide))) wide = it;
    }
    if (wide == factors.end()) wide = std::min_element(factors.begin(), factors.end(), narrower);
    *wide = covers(*wide, small) ? combine(*wide, small, order) : combine(small, *wide, order);
  }
  return factors.front();
}

NodeId Algebra::record_ones(const std::string& record_set) const {
  if (record_set == client_set) return build_.one_per_client();
  for (const Input& input : build_.program().inputs) {
    if (!input.type.federated() || input.type.record_set() != record_set) continue;
    std::vector<Slice> slices;
    for (const Dim& dim : input.type.dims) slices.push_back(dim.star ? all() : first());
    const NodeId ones = build_.call("ones_like", {input.node});
    return slices.size() == 1 ? ones : build_.call("[:]", {ones}, {}, {}, slices);
  }
  throw Bug("a record set without an input");
}

NodeId Algebra::fill(NodeId node, const Labels& present, const Labels& layout) const {
  const Type wanted = type_of(layout);
  if (build_.type(node) == wanted) return node;
  std::vector<Size> sizes;
  Labels missing;
  std::optional<std::string> record_set;
  for (const Label label : layout) {
    if (label == no_label || contains(present, label)) continue;
    if (is_star(label)) {
      record_set = dims_[label].record_set;
    } else {
      sizes.push_back(dims_[label].size);
      missing.push_back(label);
    }
  }
  if (present.empty() && !record_set) {
    std::vector<Size> whole;
    for (const Dim& dim : wanted.dims) whole.push_back(dim.size);
    const NodeId scalar = node;
    const Node& value = build_.node(scalar);
    if (value.kind == Kind::constant && value.value.item() == 0)
      return build_.call("zeros", {}, {}, std::move(whole));
    if (value.kind == Kind::constant && value.value.item() == 1)
      return build_.call("ones", {}, {}, std::move(whole));
    return build_.call("full", {scalar}, {}, std::move(whole));
  }
  node = view({node, present, false}, layout, true);
  if (!sizes.empty()) {
    const NodeId ones = build_.call("ones", {}, {}, std::move(sizes));
    node = build_.mul(node, view({ones, missing, false}, layout, false));
  }
  if (record_set) {
    const Label star = stars_.at(*record_set);
    node = build_.mul(view({record_ones(*record_set), {star}, false}, layout, false), node);
  }
  return node;
}

NodeId Algebra::node(Product product, const Labels& layout) {
  for (const auto& [a, b] : product.deltas) {
    product.factors.push_back({build_.call("eye", {}, {}, {dims_[a].size}), {a, b}, false});
  }
  Factor factor = join(std::move(product.factors), product.number, layout);
  if (factor.inverse) factor.node = build_.div(build_.number(1), factor.node);
  Labels present;
  for (const Label label : layout) {
    if (factor.has(label)) present.push_back(label);
  }
  if (present.empty()) return fill(view(factor, {}, true), present, layout);
  const NodeId laid = view(factor, layout, true);
  if (build_.type(laid) == type_of(layout)) return laid;
  return fill(view(factor, present, true), present, layout);
}

}  // namespace starfold::ir

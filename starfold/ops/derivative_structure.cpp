// Rules of operations that move values without changing them, and of matrix products. In index
// notation most of them only say which label stands where.
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

Slice all() { return {Slice::Kind::all, {}, {}}; }

bool mentions(const Product& p, Label label) {
  return label != no_label && (p.has(label) || std::any_of(p.deltas.begin(), p.deltas.end(), [&](const auto& delta) {
                                 return delta.first == label || delta.second == label;
                               }));
}

// Picks along one label of a factor: a position, which removes the axis, or a range under a new label.
Factor pick(const Pullback& d, const Factor& factor, Label label, const Slice& slice, Label new_label) {
  std::vector<Slice> slices;
  Factor result;
  for (const Label at : factor.labels) {
    slices.push_back(at == label ? slice : all());
    if (at != label) result.labels.push_back(at);
    if (at == label && slice.kind == Slice::Kind::range) result.labels.push_back(new_label);
  }
  result.node = d.call("[:]", {factor.node}, {}, {}, slices);
  return result;
}

Size minus(const Size& a, const Size& b) {
  const std::optional<Size> difference = subtract(a, b);
  if (!difference) throw ir::TooLarge("a size is too large");
  return *difference;
}

Size plus(const Size& a, const Size& b) {
  const std::optional<Size> total = add(a, b);
  if (!total) throw ir::TooLarge("a size is too large");
  return *total;
}

// Puts zeros before and after along a label, so that a range becomes the whole axis again.
Factor pad(const Pullback& d, const Factor& factor, Label label, Label whole, std::int64_t before, std::int64_t after) {
  Factor result = factor;
  std::int64_t axis = 0;
  for (std::size_t i = 0; i < factor.labels.size(); ++i) {
    if (factor.labels[i] == label) axis = static_cast<std::int64_t>(i);
  }
  result.labels[static_cast<std::size_t>(axis)] = whole;
  const auto zeros = [&](std::int64_t length) {
    std::vector<Size> sizes;
    for (std::size_t i = 0; i < factor.labels.size(); ++i) {
      const Dim& dim = d.type(factor.node).dims[i];
      if (!dim.star) sizes.push_back(factor.labels[i] == label ? Size(length) : dim.size);
    }
    return d.call("zeros", {}, {}, std::move(sizes));
  };
  std::vector<NodeId> parts;
  if (before > 0) parts.push_back(zeros(before));
  parts.push_back(factor.node);
  if (after > 0) parts.push_back(zeros(after));
  result.node = d.call("concat", std::move(parts), {axis});
  return result;
}

// The adjoint of a range first..last of an axis with `size` positions.
Product unslice(const Pullback& d, Product p, Label part, Label whole, const Slice& slice, const Size& size) {
  const Size before = minus(slice.first, 1);
  const Size after = minus(size, slice.last);
  if (p.has(part) && before.is_constant() && after.is_constant()) {
    return d.change_along(std::move(p), part, [&](const Factor& factor) {
      return pad(d, factor, part, whole, before.constant(), after.constant());
    });
  }
  // How many zeros there are is known only at the run: a matrix of zeros and ones picks instead.
  const NodeId rows = d.call("[:]", {d.call("eye", {}, {}, {size})}, {}, {}, {slice});
  return d.sum(d.with(std::move(p), rows, {part, whole}), {part});
}

}  // namespace

void permute(Pullback& d) {
  Labels labels(d.labels().size());
  for (std::size_t i = 0; i < labels.size(); ++i) labels[static_cast<std::size_t>(d.node().attrs.axes[i])] = d.labels()[i];
  d.give(0, labels, d.adjoint());
}

void matmul(Pullback& d) {
  const Type& a = d.type(d.x(0));
  const Type& b = d.type(d.x(1));
  const Label contracted = d.algebra().label(a.dims.back());
  const Labels& result = d.labels();
  const std::size_t batch = result.size() - (a.rank() > 1 ? 1 : 0) - (b.rank() > 1 ? 1 : 0);
  const auto leading = [&](const Type& type) {
    Labels labels;
    const std::size_t own = type.rank() > 2 ? type.rank() - 2 : 0;
    for (std::size_t i = 0; i < own; ++i) labels.push_back(type.dims[i].is_one() ? no_label : result[batch - own + i]);
    return labels;
  };
  Labels of_a = leading(a);
  if (a.rank() > 1) of_a.push_back(result[batch]);
  of_a.push_back(contracted);
  Labels of_b = leading(b);
  of_b.push_back(contracted);
  if (b.rank() > 1) of_b.push_back(result.back());
  d.give(0, of_a, d.with(d.adjoint(), d.x(1), of_b));
  d.give(1, of_b, d.with(d.adjoint(), d.x(0), of_a));
}

void index(Pullback& d) {
  const Type type = d.type(d.x());
  Product p = d.adjoint();
  Labels labels;
  auto result = d.labels().begin();
  for (const Slice& slice : d.node().attrs.slices) {
    if (slice.kind == Slice::Kind::new_axis) {
      ++result;
      continue;
    }
    const Dim& dim = type.dims[labels.size()];
    if (slice.kind == Slice::Kind::all || dim.is_one()) {
      labels.push_back(slice.kind == Slice::Kind::index ? no_label : *result);
    } else {
      labels.push_back(d.algebra().label(dim));
      if (slice.kind == Slice::Kind::index || *result == no_label) {
        p = d.with(std::move(p), d.call("one_hot", {d.build().size(slice.first)}, {}, {dim.size}), {labels.back()});
      } else {
        p = unslice(d, std::move(p), *result, labels.back(), slice, dim.size);
      }
    }
    if (slice.kind != Slice::Kind::index) ++result;
  }
  while (labels.size() < type.rank()) labels.push_back(*result++);
  d.give(0, labels, std::move(p), d.labels());
}

void lookup(Pullback& d) {
  const Type table = d.type(d.x(0));
  const std::size_t rank = d.type(d.x(1)).rank();
  Labels labels = {d.algebra().label(table.dims[0])};
  labels.insert(labels.end(), d.labels().begin() + static_cast<std::ptrdiff_t>(rank), d.labels().end());
  Labels of_choice(d.labels().begin(), d.labels().begin() + static_cast<std::ptrdiff_t>(rank));
  of_choice.push_back(labels[0]);
  const NodeId choice = d.call("one_hot", {d.x(1)}, {}, {table.dims[0].size});
  d.give(0, labels, d.with(d.adjoint(), choice, of_choice));
}

void concat(Pullback& d) {
  const auto axis = static_cast<std::size_t>(d.node().attrs.axes[0]);
  const std::optional<std::size_t> star = d.node().type().record_axis();
  const Label joined = d.labels()[axis];
  Size offset = 0;
  for (std::size_t i = 0; i < d.operands(); ++i) {
    const Type type = d.type(d.x(i));
    Labels labels;
    Size length = 1;
    Label part = no_label;
    for (std::size_t k = 0; k < d.labels().size(); ++k) {
      const bool lacks_star = star && k == *star && !type.federated();
      if (lacks_star && type.rank() < d.labels().size()) continue;
      if (k == axis) {
        length = type.dims[labels.size()].size;
        part = d.algebra().label(Dim::of(length));
        labels.push_back(part);
      } else {
        labels.push_back(lacks_star ? no_label : d.labels()[k]);
      }
    }
    const Size last = plus(offset, length);
    if (d.wants(i)) {
      Product p = d.adjoint();
      if (mentions(p, joined)) {
        const Slice slice{Slice::Kind::range, plus(offset, 1), last};
        p = d.change_along(std::move(p), joined, [&](const Factor& f) { return pick(d, f, joined, slice, part); });
      }
      d.give(i, labels, std::move(p), {joined});
    }
    offset = last;
  }
}

void stack(Pullback& d) {
  const Label stacked = d.labels()[0];
  const Labels labels(d.labels().begin() + 1, d.labels().end());
  for (std::size_t i = 0; i < d.operands(); ++i) {
    if (!d.wants(i)) continue;
    const Slice slice{Slice::Kind::index, static_cast<std::int64_t>(i) + 1, static_cast<std::int64_t>(i) + 1};
    Product p = d.adjoint();
    if (mentions(p, stacked)) {
      p = d.change_along(std::move(p), stacked, [&](const Factor& f) { return pick(d, f, stacked, slice, no_label); });
    }
    d.give(i, labels, std::move(p), {stacked});
  }
}

// The factors that know the reshaped axes are laid out in full and reshaped back.
void reshape(Pullback& d) {
  const Type type = d.type(d.x());
  const Labels labels = d.fresh(type);
  Labels shaped;
  for (const Label label : d.labels()) {
    if (label != no_label && !d.algebra().is_star(label)) shaped.push_back(label);
  }
  const auto speaks = [&](Label label) { return std::find(shaped.begin(), shaped.end(), label) != shaped.end(); };
  Product p = d.adjoint();
  Product inner;
  std::erase_if(p.factors, [&](const Factor& factor) {
    const bool moves = std::any_of(factor.labels.begin(), factor.labels.end(), speaks);
    if (moves) inner.factors.push_back(factor);
    return moves;
  });
  std::erase_if(p.deltas, [&](const auto& delta) {
    const bool moves = speaks(delta.first) || speaks(delta.second);
    if (moves) inner.deltas.push_back(delta);
    return moves;
  });
  if (!inner.factors.empty() || !inner.deltas.empty()) {
    Labels others;
    const auto note = [&](Label label) {
      if (label == no_label || speaks(label) || std::find(others.begin(), others.end(), label) != others.end()) return;
      others.insert(d.algebra().is_star(label) ? others.begin() : others.end(), label);
    };
    for (const Factor& factor : inner.factors) std::for_each(factor.labels.begin(), factor.labels.end(), note);
    for (const auto& [a, b] : inner.deltas) {
      note(a);
      note(b);
    }
    Labels layout = others;
    layout.insert(layout.end(), shaped.begin(), shaped.end());
    const NodeId whole = d.algebra().node(std::move(inner), layout);
    std::vector<Size> sizes;
    Labels back;
    for (const Label label : others) {
      back.push_back(label);
      if (!d.algebra().is_star(label)) sizes.push_back(d.algebra().dim(label).size);
    }
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (type.dims[i].star) continue;
      back.push_back(labels[i]);
      sizes.push_back(type.dims[i].size);
    }
    const NodeId reshaped = sizes.empty() ? whole : d.call("reshape", {whole}, {}, std::move(sizes));
    p = d.with(std::move(p), reshaped, back);
  }
  d.give(0, labels, std::move(p), shaped);
}

void outer(Pullback& d) {
  const std::size_t cell = d.labels().size() - 2;
  const auto labels_of = [&](std::size_t i) {
    Labels labels;
    for (const Dim& dim : d.type(d.x(i)).dims) labels.push_back(dim.star ? d.labels()[0] : d.labels()[cell + i]);
    return labels;
  };
  d.give(0, labels_of(0), d.with(d.adjoint(), d.x(1), labels_of(1)));
  d.give(1, labels_of(1), d.with(d.adjoint(), d.x(0), labels_of(0)));
}

}  // namespace starfold::derivative

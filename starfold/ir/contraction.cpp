// Sums of products in index notation, as matrix products where two groups of factors share a
// summed label, and as sums of element-wise products where they do not.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "starfold/base/error.h"
#include "starfold/ir/product.h"

namespace starfold::ir {
namespace {

// The labels of `from` for which `keep` holds, without those of axes of size 1.
template <typename Keep>
Labels filter(const Labels& from, const Keep& keep) {
  Labels result;
  for (const Label label : from) {
    if (label != no_label && keep(label)) result.push_back(label);
  }
  return result;
}

// Sorts by the place in `order`; what it lacks stays behind, in place.
Labels sorted(Labels labels, const Labels& order) {
  const auto place = [&](Label label) {
    return std::find(order.begin(), order.end(), label) - order.begin();
  };
  std::stable_sort(labels.begin(), labels.end(),
                   [&](Label a, Label b) { return place(a) < place(b); });
  return labels;
}

Size product_of(const std::vector<Size>& sizes) {
  std::optional<Size> product = Size(1);
  for (const Size& size : sizes) {
    if (product) product = multiply(*product, size);
  }
  if (!product) throw TooLarge("a size in it leaves the range of numbers");
  return *product;
}

}  // namespace

// A summed label of a delta takes the name of the other: sum_j delta_ij a_j = a_i.
void Algebra::drop_deltas(Product& product, Labels& over) const {
  for (std::size_t i = 0; i < product.deltas.size();) {
    auto [gone, stays] = product.deltas[i];
    if (!contains(over, gone)) std::swap(gone, stays);
    if (!contains(over, gone)) {
      ++i;
      continue;
    }
    product.deltas.erase(product.deltas.begin() + static_cast<std::ptrdiff_t>(i));
    const bool diagonal =
        std::any_of(product.factors.begin(), product.factors.end(),
                    [&, a = gone, b = stays](const Factor& f) { return f.has(a) && f.has(b); });
    if (diagonal) {
      const NodeId eye = build_.call("eye", {}, {}, {dims_[gone].size});
      product.factors.push_back({eye, {gone, stays}, false});
      continue;
    }
    rename(product, {{gone, stays}});
    std::erase(over, gone);
    std::erase_if(product.deltas, [](const auto& delta) { return delta.first == delta.second; });
    i = 0;
  }
}

Product Algebra::sum(Product product, Labels over, const Labels& order) {
  std::erase(over, no_label);
  drop_deltas(product, over);
  for (const Label label : over) {
    if (!product.has(label)) multiply_by_size(product, label);
  }
  std::erase_if(over, [&](Label label) { return !product.has(label); });
  while (!over.empty()) {
    // Ordinary axes first: what is folded over records should be small.
    const auto ordinary =
        std::find_if(over.begin(), over.end(), [&](Label label) { return !is_star(label); });
    sum_one(product, ordinary != over.end() ? *ordinary : over.front(), over, order);
  }
  return product;
}

Factor Algebra::sum_axes(const Factor& factor, const Labels& over) const {
  std::vector<std::int64_t> axes;
  Factor result;
  for (std::size_t i = 0; i < factor.labels.size(); ++i) {
    if (contains(over, factor.labels[i])) {
      axes.push_back(static_cast<std::int64_t>(i));
    } else {
      result.labels.push_back(factor.labels[i]);
    }
  }
  result.node = axes.empty() ? factor.node : build_.call("sum", {factor.node}, axes);
  return result;
}

void Algebra::sum_one(Product& product, Label label, Labels& over, const Labels& order) {
  std::vector<Factor> inner;
  std::vector<Factor> outer;
  for (Factor& factor : product.factors)
    (factor.has(label) ? inner : outer).push_back(std::move(factor));
  const auto summable = [&](Label at) {
    return contains(over, at) &&
           std::none_of(outer.begin(), outer.end(), [&](const Factor& f) { return f.has(at); });
  };
  std::vector<Factor> groups = gather_groups(std::move(inner), label, order);
  Labels done;
  Factor result;
  if (groups.size() == 1) {
    done = filter(groups[0].labels, summable);
    result = sum_axes(groups[0], done);
  } else {
    for (std::size_t i = 0; i < 2; ++i) {
      const Labels alone = filter(groups[i].labels, [&](Label at) {
        return summable(at) && !groups[1 - i].has(at) && !is_star(at);
      });
      groups[i] = sum_axes(groups[i], alone);
      done.insert(done.end(), alone.begin(), alone.end());
    }
    const Labels common = filter(groups[0].labels, [&](Label at) {
      return summable(at) && groups[1].has(at) && (at == label || !is_star(at));
    });
    done.insert(done.end(), common.begin(), common.end());
    result = contract(groups[0], groups[1], common, order);
  }
  std::erase_if(over, [&](Label at) { return contains(done, at); });
  product.factors = std::move(outer);
  product.factors.push_back(std::move(result));
}

// One or two factors with the same product: those to be contracted with each other. Narrow ones go
// along with wide ones, so that x_ij w_i x_ik is x_ij (x_ik w_i).
std::vector<Factor> Algebra::gather_groups(std::vector<Factor> factors, Label over,
                                           const Labels& order) {
  struct Group {
    std::vector<Factor> factors;
    std::set<Label> labels;  // without `over`
  };
  const auto first_place = [&](const Group& group) {
    auto first = order.size();
    for (const Label label : group.labels) {
      first = std::min(first, static_cast<std::size_t>(
                                  std::find(order.begin(), order.end(), label) - order.begin()));
    }
    return first;
  };
  std::vector<Group> groups;
  Group vectors;
  for (Factor& factor : factors) {
    std::set<Label> labels(factor.labels.begin(), factor.labels.end());
    labels.erase(no_label);
    labels.erase(over);
    auto same = std::find_if(groups.begin(), groups.end(),
                             [&](const Group& g) { return g.labels == labels; });
    if (labels.empty()) {
      vectors.factors.push_back(std::move(factor));
    } else if (same != groups.end()) {
      same->factors.push_back(std::move(factor));
    } else {
      groups.push_back({{std::move(factor)}, std::move(labels)});
    }
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const Group& a, const Group& b) { return first_place(a) < first_place(b); });
  const auto absorb = [](Group& into, Group& from) {
    into.factors.insert(into.factors.end(), from.factors.begin(), from.factors.end());
    into.labels.insert(from.labels.begin(), from.labels.end());
  };
  for (std::size_t i = 0; groups.size() > 1 && i < groups.size();) {
    std::optional<std::size_t> host;
    for (std::size_t j = 0; j < groups.size(); ++j) {
      const auto& inside = groups[j].labels;
      if (j != i && std::includes(inside.begin(), inside.end(), groups[i].labels.begin(),
                                  groups[i].labels.end()))
        host = j;
    }
    if (!host) {
      ++i;
      continue;
    }
    absorb(groups[*host], groups[i]);
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
    i = 0;
  }
  // More than two kinds of axes: two halves of about the same width.
  while (groups.size() > 2) {
    const bool left = groups[0].labels.size() + groups[1].labels.size() <
                      groups.back().labels.size() + groups[groups.size() - 2].labels.size();
    const std::size_t at = left ? 0 : groups.size() - 2;
    absorb(groups[at], groups[at + 1]);
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(at + 1));
  }
  if (!vectors.factors.empty()) {
    if (groups.size() < 2) {
      groups.push_back(std::move(vectors));
    } else {
      absorb(groups.back(), vectors);
    }
  }
  std::vector<Factor> joined;
  // Two numbers per record are contracted with each other, not multiplied.
  if (groups.size() == 1 && groups[0].labels.empty() && groups[0].factors.size() > 1) {
    Factor last = groups[0].factors.back();
    groups[0].factors.pop_back();
    joined = {join(std::move(groups[0].factors), 1, order), std::move(last)};
  } else {
    for (Group& group : groups) joined.push_back(join(std::move(group.factors), 1, order));
  }
  for (Factor& factor : joined) {
    if (factor.inverse) factor = {build_.div(build_.number(1), factor.node), factor.labels, false};
  }
  return joined;
}

Label Algebra::merged_label(const Labels& group) {
  std::vector<Size> sizes;
  for (const Label label : group) sizes.push_back(dims_[label].size);
  return label(Dim::of(product_of(sizes)));
}

// Several ordinary axes as one, the last.
Factor Algebra::merge(const Factor& factor, const Labels& group, Label merged,
                      const Labels& order) const {
  Labels others =
      sorted(filter(factor.labels, [&](Label at) { return !contains(group, at); }), order);
  std::stable_partition(others.begin(), others.end(), [&](Label at) { return is_star(at); });
  Labels layout = others;
  layout.insert(layout.end(), group.begin(), group.end());
  std::vector<Size> sizes;
  for (const Label label : others) {
    if (!is_star(label)) sizes.push_back(dims_[label].size);
  }
  sizes.push_back(dims_[merged].size);
  others.push_back(merged);
  return {build_.call("reshape", {view(factor, layout, true)}, {}, std::move(sizes)),
          std::move(others), false};
}

// The axes that were merged, in place of those they became.
Factor Algebra::split(const Factor& factor, const std::map<Label, Labels>& merged) const {
  if (merged.empty()) return factor;
  Factor result;
  std::vector<Size> sizes;
  for (const Label label : factor.labels) {
    const auto parts = merged.find(label);
    for (const Label part : parts == merged.end() ? Labels{label} : parts->second) {
      result.labels.push_back(part);
      if (!is_star(part)) sizes.push_back(dims_[part].size);
    }
  }
  result.node = build_.call("reshape", {factor.node}, {}, std::move(sizes));
  return result;
}

Factor Algebra::contract(Factor left, Factor right, Labels over, const Labels& order) {
  const Labels batch =
      filter(left.labels, [&](Label at) { return right.has(at) && !contains(over, at); });
  const Labels of_left = filter(left.labels, [&](Label at) { return !right.has(at); });
  const Labels of_right = filter(right.labels, [&](Label at) { return !left.has(at); });
  if (!batch.empty()) {
    if (of_left.size() == 1 && of_right.size() == 1 && over.size() == 1)
      return batched_product(left, right, over[0], order);
    return sum_axes(combine(left, right, order), over);
  }
  if (over.size() > 1) {
    const Labels group = sorted(over, left.labels);
    const Label merged = merged_label(group);
    left = merge(left, group, merged, order);
    right = merge(right, group, merged, order);
    over = {merged};
  }
  return matrix_product(std::move(left), std::move(right), over[0], order);
}

Factor Algebra::batched_product(const Factor& left, const Factor& right, Label over,
                                const Labels& order) {
  Labels batch =
      sorted(filter(left.labels, [&](Label at) { return at != over && right.has(at); }), order);
  std::stable_partition(batch.begin(), batch.end(), [&](Label at) { return is_star(at); });
  const Label row = filter(left.labels, [&](Label at) { return !right.has(at); })[0];
  const Label column = filter(right.labels, [&](Label at) { return !left.has(at); })[0];
  const auto with = [&](Label a, Label b) {
    Labels layout = batch;
    layout.push_back(a);
    layout.push_back(b);
    return layout;
  };
  const NodeId product =
      build_.call("@", {view(left, with(row, over), true), view(right, with(over, column), true)});
  return {product, with(row, column), false};
}

// The only label that both have is contracted.
Factor Algebra::matrix_product(Factor left, Factor right, Label over, const Labels& order) {
  const auto free_labels = [&](const Factor& factor) {
    Labels labels = sorted(filter(factor.labels, [&](Label at) { return at != over; }), order);
    std::stable_partition(labels.begin(), labels.end(), [&](Label at) { return is_star(at); });
    return labels;
  };
  Labels rows = free_labels(left);
  Labels columns = free_labels(right);
  const auto place = [&](const Labels& labels) {
    return std::find(order.begin(), order.end(), labels.front()) - order.begin();
  };
  const bool many_records = columns.size() > 1 && is_star(columns.front());
  const bool vector_first = rows.empty() && !columns.empty();
  const bool out_of_order = !columns.empty() && !rows.empty() && place(columns) < place(rows) &&
                            !(rows.size() > 1 && is_star(rows.front()));
  if (many_records || vector_first || out_of_order) {
    std::swap(left, right);
    std::swap(rows, columns);
  }
  // Folds of records and right operands are matrices; further axes are merged for the product.
  std::map<Label, Labels> merged;
  const auto as_one = [&](Factor& factor, Labels& labels) {
    const Label label = merged_label(labels);
    factor = merge(factor, labels, label, order);
    merged.emplace(label, std::exchange(labels, {label}));
  };
  if (rows.size() > 1 && is_star(over)) as_one(left, rows);
  if (columns.size() > 1) as_one(right, columns);
  Labels row_layout = rows;
  row_layout.push_back(over);
  Labels column_layout = {over};
  column_layout.insert(column_layout.end(), columns.begin(), columns.end());
  Factor result;
  result.node = build_.call("@", {view(left, row_layout, true), view(right, column_layout, true)});
  result.labels = rows;
  result.labels.insert(result.labels.end(), columns.begin(), columns.end());
  return split(result, merged);
}

Product Algebra::add(Product a, Product b, const Labels& order) {
  Product sum;
  sum.deltas = a.deltas;
  for (std::size_t i = 0; i < a.factors.size();) {
    const auto same = std::find(b.factors.begin(), b.factors.end(), a.factors[i]);
    if (same == b.factors.end()) {
      ++i;
      continue;
    }
    sum.factors.push_back(std::move(a.factors[i]));
    a.factors.erase(a.factors.begin() + static_cast<std::ptrdiff_t>(i));
    b.factors.erase(same);
  }
  if (a.factors.empty() && b.factors.empty()) {
    sum.number = a.number + b.number;
    return sum;
  }
  if (std::abs(a.number) == std::abs(b.number)) {
    sum.number = std::abs(a.number);
    a.number /= sum.number;
    b.number /= sum.number;
  }
  if (a.number < 0 && b.number < 0) {
    sum.number = -sum.number;
    a.number = -a.number;
    b.number = -b.number;
  }
  Factor x = join(std::move(a.factors), std::abs(a.number), order);
  Factor y = join(std::move(b.factors), std::abs(b.number), order);
  for (Factor* factor : {&x, &y}) {
    if (factor->inverse)
      *factor = {build_.div(build_.number(1), factor->node), factor->labels, false};
  }
  const Labels layout = layout_of(x, y, order);
  const NodeId left = view(x, layout, false);
  const NodeId right = view(y, layout, false);
  NodeId node = no_node;
  if (a.number < 0) {
    node = build_.sub(right, left);
  } else {
    node = b.number < 0 ? build_.sub(left, right) : build_.add(left, right);
  }
  sum.factors.push_back({node, layout, false});
  return sum;
}

}  // namespace starfold::ir

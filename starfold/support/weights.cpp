#include "starfold/support/weights.h"

#include <cmath>

#include "starfold/ir/forms.h"
namespace starfold::support {
namespace {

using ir::is_op;
using ir::Kind;
using ir::no_node;
using ir::NodeId;

// 1 - t for a truth value t, which is one too.
bool is_opposite(const ir::Graph& graph, const ir::Node& node) {
  if (!is_op(node, "-", 2)) return false;
  const ir::Node& one = graph[node.args[0]];
  const ir::Node& truth = graph[node.args[1]];
  return one.kind == Kind::constant && one.type().is_scalar() && one.value.item() == 1 &&
         truth.kind == Kind::apply && truth.op->truth;
}

// A value's entries without their signs, or squared: of products factor by factor, so that sums over them stay products of
// matrices. So deep into products of products.
constexpr int factor_depth = 8;
NodeId sizes(ir::Builder& build, NodeId id, const char* op, int depth = factor_depth) {
  const ir::Node node = build.node(id);
  if (node.kind != Kind::apply || depth == 0) return build.call(op, {id});
  const bool unit = node.op->fill == 0 || node.op->fill == 1;
  if (node.op->truth || unit || is_opposite(build.program().graph, node)) return id;
  if (is_op(node, "-", 1)) return sizes(build, node.args[0], op, depth - 1);
  const bool product = ir::only_moves_or_multiplies(node) || ir::is_quotient(node);
  const bool choice = is_op(node, "where", 3);
  if (!product && !choice) return build.call(op, {id});
  ir::Node result = node;
  for (std::size_t i = choice ? 1 : 0; i < node.args.size(); ++i)
    result.args[i] = sizes(build, node.args[i], op, depth - 1);
  return build.program().graph.add(std::move(result));
}

NodeId sum_records(ir::Builder& build, NodeId terms, const char* op) {
  const auto star = static_cast<std::int64_t>(*build.type(terms).record_axis());
  return build.call(op, {terms}, {star});
}

NodeId sum_sizes(ir::Builder& build, const Terms& terms, const char* op) {
  const NodeId left = sizes(build, terms.left, op);
  if (terms.right == no_node) return sum_records(build, left, "sum");
  return build.call("@", {left, sizes(build, terms.right, op)});
}

// The star first, then so many new axes, then the others, with a new axis at the place `gap` from the end.
NodeId spread(ir::Builder& build, NodeId id, std::size_t pad, std::optional<std::size_t> gap) {
  const Type type = build.type(id);
  const auto star = static_cast<std::int64_t>(*type.record_axis());
  std::vector<std::int64_t> order = {star};
  for (std::int64_t axis = 0; axis < static_cast<std::int64_t>(type.rank()); ++axis) {
    if (axis != star) order.push_back(axis);
  }
  if (star != 0) id = build.call("permute", {id}, order);
  std::vector<Slice> slices = {{Slice::Kind::all, {}, {}}};
  slices.insert(slices.end(), pad, {Slice::Kind::new_axis, {}, {}});
  for (std::size_t axis = 1; axis < type.rank(); ++axis)
    slices.push_back({Slice::Kind::all, {}, {}});
  if (gap) {
    slices.insert(slices.end() - static_cast<std::ptrdiff_t>(*gap),
                  {Slice::Kind::new_axis, {}, {}});
  }
  return slices.size() == type.rank() ? id : build.call("[:]", {id}, {}, {}, std::move(slices));
}

}  // namespace

Terms terms_of(ir::Builder& build, NodeId sum) {
  const ir::Node node = build.node(sum);
  if (!ir::is_sum(node)) return {node.args[0], node.args[1]};
  const Type type = build.type(node.args[0]);
  std::vector<std::int64_t> others;
  for (const std::int64_t axis : node.attrs.axes) {
    if (!type.dims[static_cast<std::size_t>(axis)].star) others.push_back(axis);
  }
  if (others.empty()) return {node.args[0], no_node};
  return {build.call("sum", {node.args[0]}, others), no_node};
}

NodeId whole(ir::Builder& build, const Terms& terms) {
  if (terms.right == no_node) return terms.left;
  const std::size_t a = build.type(terms.left).rank();
  const std::size_t b = build.type(terms.right).rank();
  const std::size_t before_a = a > 2 ? a - 2 : 0;
  const std::size_t before_b = b > 2 ? b - 2 : 0;
  const std::size_t before = std::max(before_a, before_b);
  // [.., i, *] @ [.., *, j]: of the left a new last axis, of the right one before the last.
  const auto at = [](bool there, std::size_t place) {
    return there ? std::optional(place) : std::nullopt;
  };
  const NodeId right = spread(build, terms.right, before - before_b, at(a > 1, b > 1 ? 1 : 0));
  return build.mul(spread(build, terms.left, before - before_a, at(b > 1, 0)), right);
}

NodeId sum_of_sizes(ir::Builder& build, const Terms& terms) {
  return sum_sizes(build, terms, "abs");
}

NodeId sum_of_squares(ir::Builder& build, const Terms& terms) {
  return sum_sizes(build, terms, "square");
}

NodeId root_of_squares(ir::Builder& build, const Terms& terms) {
  return sum_records(build, whole(build, terms), "norm");
}

}  // namespace starfold::support

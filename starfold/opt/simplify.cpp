#include <algorithm>

#include "starfold/ir/builder.h"
#include "starfold/opt/passes.h"

namespace starfold::opt {
namespace {

using ir::is_op;
using ir::Kind;
using ir::NodeId;

bool is_number(const ir::Program& program, NodeId id, double value) {
  const ir::Node& node = program.graph[id];
  return node.kind == Kind::constant && node.type().is_scalar() && node.value.item() == value;
}

bool is_one(const ir::Program& program, NodeId id) {
  return is_number(program, id, 1) || ir::is_ones(program.graph, id);
}

bool keeps_all(const ir::Node& index) {
  return std::all_of(index.attrs.slices.begin(), index.attrs.slices.end(),
                     [](const Slice& slice) { return slice.kind == Slice::Kind::all; });
}

// The operand that equals the whole application, or no_node. Only identities that hold for nan,
// infinities and signed zeros (x + 0 turns -0 into 0, so it is not one of them).
NodeId same_as_operand(const ir::Program& to, const ir::Node& node) {
  const auto keeps_type = [&](NodeId id) { return to.graph[id].type() == node.type(); };
  const auto second_is = [&](const char* op, double value) {
    return is_op(node, op, 2) && is_number(to, node.args[1], value) && keeps_type(node.args[0]);
  };
  if (is_op(node, "*", 2) && is_one(to, node.args[1]) && keeps_type(node.args[0]))
    return node.args[0];
  if (is_op(node, "*", 2) && is_one(to, node.args[0]) && keeps_type(node.args[1]))
    return node.args[1];
  if (second_is("/", 1) || second_is("^", 1) || second_is("-", 0)) return node.args[0];
  if (is_op(node, "-", 1) && is_op(to.graph[node.args[0]], "-", 1))
    return to.graph[node.args[0]].args[0];
  if (is_op(node, "stop_gradient", 1)) return node.args[0];
  if (is_op(node, "[:]", 1) && keeps_all(node)) return node.args[0];
  if (is_op(node, "reshape", 1) && keeps_type(node.args[0])) return node.args[0];
  if (is_op(node, "permute", 1) && std::is_sorted(node.attrs.axes.begin(), node.attrs.axes.end()))
    return node.args[0];
  return ir::no_node;
}

// Two rearrangements in a row are one.
ir::Node joined(const ir::Program& to, ir::Node node) {
  if (node.kind != Kind::apply || node.args.size() != 1) return node;
  const ir::Node& inner = to.graph[node.args[0]];
  if (is_op(node, "permute", 1) && is_op(inner, "permute", 1)) {
    for (std::int64_t& axis : node.attrs.axes)
      axis = inner.attrs.axes[static_cast<std::size_t>(axis)];
    node.args = inner.args;
  } else if (is_op(node, "reshape", 1) && is_op(inner, "reshape", 1)) {
    // Through [*] the star of [1, *] may have come to stand first.
    const ir::Typing once =
        ir::type_again(*node.op, {to.graph[inner.args[0]].type()}, node.attrs, node.span);
    if (once.types == node.types) node.args = inner.args;
  }
  return node;
}

}  // namespace

ir::Program simplify(const ir::Program& program) {
  return ir::rebuild(program, [](ir::Program& to, ir::Node node) {
    node = joined(to, std::move(node));
    const NodeId operand = same_as_operand(to, node);
    return operand != ir::no_node ? operand : to.graph.add(std::move(node));
  });
}

}  // namespace starfold::opt

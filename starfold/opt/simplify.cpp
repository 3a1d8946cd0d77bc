#include "starfold/opt/passes.h"

namespace starfold::opt {
namespace {

using ir::Kind;
using ir::NodeId;

bool is_number(const ir::Program& program, NodeId id, double value) {
  const ir::Node& node = program.graph[id];
  return node.kind == Kind::constant && node.type().is_scalar() && node.value.item() == value;
}

bool is_op(const ir::Node& node, std::string_view name, std::size_t arity) {
  return node.kind == Kind::apply && node.op->name == name && node.args.size() == arity;
}

// The operand that equals the whole application, or no_node. Only identities that hold for nan,
// infinities and signed zeros (x + 0 turns -0 into 0, so it is not one of them).
NodeId same_as_operand(const ir::Program& to, const ir::Node& node) {
  const auto keeps_type = [&](NodeId id) { return to.graph[id].type() == node.type(); };
  if (is_op(node, "*", 2) && is_number(to, node.args[1], 1) && keeps_type(node.args[0])) return node.args[0];
  if (is_op(node, "*", 2) && is_number(to, node.args[0], 1) && keeps_type(node.args[1])) return node.args[1];
  if (is_op(node, "/", 2) && is_number(to, node.args[1], 1) && keeps_type(node.args[0])) return node.args[0];
  if (is_op(node, "^", 2) && is_number(to, node.args[1], 1) && keeps_type(node.args[0])) return node.args[0];
  if (is_op(node, "-", 2) && is_number(to, node.args[1], 0) && keeps_type(node.args[0])) return node.args[0];
  if (is_op(node, "-", 1) && is_op(to.graph[node.args[0]], "-", 1)) return to.graph[node.args[0]].args[0];
  if (is_op(node, "stop_gradient", 1)) return node.args[0];
  if (is_op(node, "permute", 1)) {
    const ir::Node& inner = to.graph[node.args[0]];
    bool identity = true;
    for (std::size_t i = 0; i < node.attrs.axes.size(); ++i) {
      const auto axis = static_cast<std::size_t>(node.attrs.axes[i]);
      const std::int64_t from = is_op(inner, "permute", 1) ? inner.attrs.axes[axis] : node.attrs.axes[i];
      identity = identity && from == static_cast<std::int64_t>(i);
    }
    if (identity) return is_op(inner, "permute", 1) ? inner.args[0] : node.args[0];
  }
  return ir::no_node;
}

}  // namespace

ir::Program simplify(const ir::Program& program) {
  return ir::rebuild(program, [](ir::Program& to, ir::Node node) {
    const NodeId operand = same_as_operand(to, node);
    return operand != ir::no_node ? operand : to.graph.add(std::move(node));
  });
}

}  // namespace starfold::opt

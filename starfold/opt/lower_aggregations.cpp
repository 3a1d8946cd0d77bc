#include <algorithm>

#include "starfold/ir/builder.h"
#include "starfold/opt/passes.h"

namespace starfold::opt {
namespace {

// Whether an aggregation folds the record axis of its operand.
bool folds_star(const ir::Program& program, const ir::Node& node) {
  const std::optional<std::size_t> star = program.graph[node.args[0]].type().record_axis();
  const auto& axes = node.attrs.axes;
  return star &&
         std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(*star)) != axes.end();
}

// Who only counts does not look, and would miss that a value cannot be computed.
bool loses_refusal(const ir::Program& program, const ir::Node& node) {
  return node.op->shape_only && program.graph.can_refuse(node.args[0]);
}

// Folds of the record axis become what a column of their rows says.
ir::Program lower(const ir::Program& program, Lowering Op::*column) {
  return ir::rebuild(program, [column](ir::Program& to, ir::Node node) {
    const bool other = node.kind == ir::Kind::apply && node.op->*column != nullptr &&
                       folds_star(to, node) && !loses_refusal(to, node);
    if (!other) return to.graph.add(std::move(node));
    ir::Builder build(to, node.span);
    return (node.op->*column)(build, node);
  });
}

}  // namespace

ir::Program lower_aggregations(const ir::Program& program) { return lower(program, &Op::lowering); }

ir::Program lower_to_sums(const ir::Program& program) { return lower(program, &Op::in_sums); }

}  // namespace starfold::opt

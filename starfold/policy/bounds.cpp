#include "starfold/policy/bounds.h"

#include <algorithm>
#include <cmath>

#include "starfold/runtime/apply.h"

namespace starfold::policy {
namespace {

using ir::Kind;
using ir::NodeId;

// How many elements of its first operand one entry of a result is folded from.
double folded(const ir::Program& program, const ir::Node& node, const SizeValues& sizes) {
  const bool matmul = node.op->family == Family::matmul;
  if (!matmul && node.op->family != Family::aggregation) return 1;
  const Type& type = program.graph[node.args[0]].type();
  double count = 1;
  for (std::size_t axis = 0; axis < type.rank(); ++axis) {
    const auto& axes = node.attrs.axes;
    const bool folds =
        matmul ? axis + 1 == type.rank()
               : std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
    if (!folds) continue;
    const auto size = type.dims[axis].star ? std::nullopt : type.dims[axis].size.evaluate(sizes);
    if (!size) return std::numeric_limits<double>::infinity();
    count *= static_cast<double>(*size);
  }
  return count;
}

Interval range_of(const ir::Program& program, const ir::Node& node, const SizeValues& sizes,
                  const InputRanges& inputs, const std::vector<Interval>& known) {
  if (node.kind == Kind::constant || node.kind == Kind::size)
    return policy::range_of(leaf_value(node, sizes));
  if (node.kind == Kind::input) {
    const auto found = inputs.find(program.inputs[node.index].name);
    return found == inputs.end() ? Interval() : found->second;
  }
  if (node.kind != Kind::apply || !node.op->range) return {};
  std::vector<Interval> operands;
  for (const NodeId arg : node.args) operands.push_back(known[arg]);
  const Interval result = node.op->range(operands, folded(program, node, sizes));
  // Rules speak of numbers; what they make of nan is none.
  return std::isnan(result.lo) || std::isnan(result.hi) ? Interval() : result;
}

}  // namespace

Interval range_of(const Tensor& tensor) {
  if (tensor.data.empty()) return {0, 0};
  Interval range{tensor.data[0], tensor.data[0]};
  for (const double x : tensor.data) {
    if (std::isnan(x)) return {};
    range = range::hull(range, {x, x});
  }
  return range;
}

std::vector<double> largest_terms(const SupportProgram& support, const SizeValues& sizes,
                                  const InputRanges& inputs) {
  const ir::Graph& graph = support.program.graph;
  std::vector<Interval> known;
  for (NodeId id = 0; id < graph.size(); ++id)
    known.push_back(range_of(support.program, graph[id], sizes, inputs, known));
  std::vector<double> largest;
  for (const Terms& terms : support.terms) {
    Interval range = known[terms.left];
    if (terms.right != ir::no_node) range = range::times(range, known[terms.right]);
    largest.push_back(range.bounded() ? range::outward(range).size()
                                      : std::numeric_limits<double>::infinity());
  }
  return largest;
}

}  // namespace starfold::policy

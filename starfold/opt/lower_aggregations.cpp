#include <algorithm>

#include "starfold/base/error.h"
#include "starfold/ir/builder.h"
#include "starfold/opt/passes.h"

namespace starfold::opt {
namespace {

using ir::NodeId;

// One count per record set: whatever value asks, the first input of its record set answers.
NodeId records_of(ir::Builder& build, const std::string& record_set) {
  for (const ir::Input& input : build.program().inputs) {
    if (input.type.federated() && input.type.record_set() == record_set)
      return build.call("records", {input.node});
  }
  throw Bug("a record set without an input");
}

// The number of elements that an aggregation folds: records times the sizes of its ordinary axes.
NodeId folded_count(ir::Builder& build, const Type& of, const std::vector<std::int64_t>& axes) {
  NodeId count = records_of(build, of.record_set());
  for (const std::int64_t axis : axes) {
    const Dim& dim = of.dims[static_cast<std::size_t>(axis)];
    if (!dim.star && !dim.is_one()) count = build.mul(count, build.size(dim.size));
  }
  return count;
}

NodeId lower(ir::Program& to, ir::Node node) {
  if (node.kind != ir::Kind::apply || node.op->family != Family::aggregation)
    return to.graph.add(std::move(node));
  const NodeId e = node.args[0];
  const Type of = to.graph[e].type();
  const std::optional<std::size_t> star = of.record_axis();
  const auto& axes = node.attrs.axes;
  const bool folds_star =
      star && std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(*star)) != axes.end();
  if (!folds_star) return to.graph.add(std::move(node));

  ir::Builder build(to, node.span);
  const std::string& name = node.op->name;
  if (name == "records") return records_of(build, of.record_set());
  if (name == "mean") return build.div(build.call("sum", {e}, axes), folded_count(build, of, axes));
  if (name == "std") return build.call("sqrt", {build.call("var", {e}, axes)});
  if (name == "norm")
    return build.call("sqrt", {build.call("sum", {build.call("square", {e})}, axes)});
  if (name == "count") {
    const NodeId count = folded_count(build, of, axes);
    std::vector<Size> sizes;
    for (const Dim& dim : node.type().dims) sizes.push_back(dim.size);
    return sizes.empty() ? count : build.call("full", {count}, {}, std::move(sizes));
  }
  return to.graph.add(std::move(node));
}

}  // namespace

ir::Program lower_aggregations(const ir::Program& program) { return ir::rebuild(program, lower); }

}  // namespace starfold::opt

// Sums of products contract the summed axes, so that the products themselves are never made:
//   sum[*](r[:, new] * x)             ->  x' @ r
//   sum[*](outer(a, b))               ->  a' @ b
//   sum[*](w[:, new, new] * outer(x, x)), (x' * w) @ x  ->  x' @ (x * w[:, new])
//   sum[*](c * x) with c shared       ->  c * sum[*](x)
#include <algorithm>

#include "starfold/ir/product.h"
#include "starfold/opt/passes.h"

namespace starfold::opt {
namespace {

using ir::Kind;
using ir::Labels;
using ir::no_node;
using ir::NodeId;

// sum over some axes of a product
NodeId contract_sum(ir::Builder& build, const ir::Node& node) {
  ir::Algebra algebra(build);
  const Labels labels = algebra.labels(build.type(node.args[0]));
  Labels over;
  Labels layout;
  for (std::size_t axis = 0; axis < labels.size(); ++axis) {
    const auto& axes = node.attrs.axes;
    const bool folded = std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
    (folded ? over : layout).push_back(labels[axis]);
  }
  ir::Product product;
  algebra.multiply_parts(product, node.args[0], labels);
  const bool plain = product.factors.size() == 1 && product.factors[0].node == node.args[0];
  if (plain) return no_node;
  return algebra.node(algebra.sum(std::move(product), over, layout), layout);
}

// a @ b where both are contracted along their records
NodeId contract_matmul(ir::Builder& build, const ir::Node& node) {
  const Type& a = build.type(node.args[0]);
  const Type& b = build.type(node.args[1]);
  if (!a.dims.back().star || a.rank() > 2 || b.rank() > 2) return no_node;
  ir::Algebra algebra(build);
  const Labels of_a = algebra.labels(a);
  const Labels of_b = algebra.labels(b);
  Labels layout(of_a.begin(), of_a.end() - 1);
  layout.insert(layout.end(), of_b.begin() + 1, of_b.end());
  ir::Product product;
  algebra.multiply_parts(product, node.args[0], of_a);
  algebra.multiply_parts(product, node.args[1], of_b);
  return algebra.node(algebra.sum(std::move(product), {of_b[0]}, layout), layout);
}

}  // namespace

ir::Program contract_sums(const ir::Program& program) {
  return ir::rebuild(program, [](ir::Program& to, ir::Node node) {
    if (node.kind == Kind::apply && (node.op->name == "sum" || node.op->name == "@")) {
      ir::Builder build(to, node.span);
      const NodeId contracted = node.op->name == "sum" ? contract_sum(build, node) : contract_matmul(build, node);
      if (contracted != no_node) return contracted;
    }
    return to.graph.add(std::move(node));
  });
}

}  // namespace starfold::opt

// sum[*] over a product of per-record values contracts their record axes, so the product itself is
// never made. With cells a and b of the operands (what one record holds):
//   sum[*](a * b)              both numbers        ->  a @ b
//   sum[*](r[:, new] * x)      number and vector   ->  x' @ r
//   sum[*](outer(a, b))        vectors             ->  a' @ b
#include <algorithm>

#include "starfold/ir/builder.h"
#include "starfold/opt/passes.h"

namespace starfold::opt {
namespace {

using ir::Kind;
using ir::NodeId;

bool is_op(const ir::Node& node, std::string_view name, std::size_t arity) {
  return node.kind == Kind::apply && node.op->name == name && node.args.size() == arity;
}

bool is_record_vector(const Type& type) { return type.rank() == 1 && type.federated(); }
bool is_record_matrix(const Type& type) { return type.rank() == 2 && type.dims[0].star; }

// r of r[:, new], a number per record written as a column; no_node otherwise.
NodeId column_of(const ir::Program& program, NodeId id) {
  const ir::Node& node = program.graph[id];
  if (!is_op(node, "[:]", 1) || !is_record_vector(program.graph[node.args[0]].type())) return ir::no_node;
  const auto& slices = node.attrs.slices;
  const bool column = slices.size() == 2 && slices[0].kind == Slice::Kind::all && slices[1].kind == Slice::Kind::new_axis;
  return column ? node.args[0] : ir::no_node;
}

NodeId transposed(ir::Builder& build, NodeId id) { return build.call("permute", {id}, {1, 0}); }

// The matrix product that equals sum[*] of a product, or no_node.
NodeId contraction(ir::Builder& build, const ir::Node& product) {
  const ir::Program& program = build.program();
  if (is_op(product, "outer", 2)) {
    const NodeId a = product.args[0];
    const NodeId b = product.args[1];
    if (is_record_matrix(program.graph[a].type()) && is_record_matrix(program.graph[b].type())) {
      return build.call("@", {transposed(build, a), b});
    }
    return ir::no_node;
  }
  if (!is_op(product, "*", 2)) return ir::no_node;
  const NodeId a = product.args[0];
  const NodeId b = product.args[1];
  if (is_record_vector(program.graph[a].type()) && is_record_vector(program.graph[b].type())) return build.call("@", {a, b});
  for (const auto& [r, x] : {std::pair(a, b), std::pair(b, a)}) {
    const NodeId column = column_of(program, r);
    if (column != ir::no_node && is_record_matrix(program.graph[x].type())) {
      return build.call("@", {transposed(build, x), column});
    }
  }
  return ir::no_node;
}

}  // namespace

ir::Program contract_sums(const ir::Program& program) {
  return ir::rebuild(program, [](ir::Program& to, ir::Node node) {
    const bool sums_records = is_op(node, "sum", 1) && node.attrs.axes == std::vector<std::int64_t>{0} &&
                              !to.graph[node.args[0]].type().dims.empty() && to.graph[node.args[0]].type().dims[0].star;
    if (sums_records) {
      ir::Builder build(to, node.span);
      const ir::Node product = to.graph[node.args[0]];
      const NodeId contracted = contraction(build, product);
      if (contracted != ir::no_node) return contracted;
    }
    return to.graph.add(std::move(node));
  });
}

}  // namespace starfold::opt

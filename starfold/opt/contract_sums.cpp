// Sums of products contract the summed axes, so that the products themselves are never made:
//   sum[*](r[:, new] * x)             ->  x' @ r
//   sum[*](outer(a, b))               ->  a' @ b
//   sum[*](w[:, new, new] * outer(x, x)), (x' * w) @ x  ->  x' @ (x * w[:, new])
//   sum[*](outer(x, x) / c)           ->  x' @ (x / c)
//   sum[*](outer(x, t * v))           ->  x' @ (t * v)
// Every factor takes part in every folded axis: c * sum(x) for sum(c * x) would be another value where
// something is infinite. A factor without a folded axis, such as c or v, therefore scales one that has it.
#include <algorithm>
#include <cmath>

#include "starfold/ir/forms.h"
#include "starfold/ir/product.h"
#include "starfold/opt/passes.h"

namespace starfold::opt {
namespace {

using ir::Kind;
using ir::Labels;
using ir::no_node;
using ir::NodeId;

// Whether a factor has all labels of a list; axes of size 1 do not count.
bool has_all(const ir::Factor& factor, const Labels& labels) {
  return std::all_of(labels.begin(), labels.end(),
                     [&](ir::Label label) { return label == ir::no_label || factor.has(label); });
}

std::ptrdiff_t width(const ir::Factor& factor) {
  return std::count_if(factor.labels.begin(), factor.labels.end(),
                       [](ir::Label label) { return label != ir::no_label; });
}

// The factor that is to take another one in: the narrowest with all folded axes and all of its, the last of equals, so
// that right operands are scaled. What it becomes is no wider than what it was.
std::vector<ir::Factor>::iterator find_host(std::vector<ir::Factor>& factors,
                                            const ir::Factor& guest, const Labels& over) {
  auto host = factors.end();
  for (auto at = factors.begin(); at != factors.end(); ++at) {
    if (!has_all(*at, over) || !has_all(*at, guest.labels)) continue;
    if (host == factors.end() || width(*at) <= width(*host)) host = at;
  }
  return host;
}

// Makes every factor take part in every folded axis; false where that would make something wider, or where nothing is
// left to be contracted.
bool fold_all(ir::Algebra& algebra, ir::Product& product, const Labels& over,
              const Labels& layout) {
  if (!std::isfinite(product.number)) return false;
  std::vector<ir::Factor> folded;
  std::vector<ir::Factor> others;
  for (const ir::Factor& factor : product.factors)
    (has_all(factor, over) ? folded : others).push_back(factor);
  if (others.empty()) return true;
  for (const ir::Factor& guest : others) {
    const auto host = find_host(folded, guest, over);
    if (host == folded.end()) return false;
    *host = algebra.join({guest, *host}, 1, layout);
  }
  product.factors = std::move(folded);
  return product.factors.size() > 1;
}

// sum over some axes of a product
NodeId contract_sum(ir::Builder& build, const ir::Node& node) {
  ir::Algebra algebra(build);
  const Labels labels = algebra.labels(build.type(node.args[0]));
  Labels over;
  Labels layout;
  for (std::size_t axis = 0; axis < labels.size(); ++axis) {
    const auto& axes = node.attrs.axes;
    const bool folded =
        std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
    (folded ? over : layout).push_back(labels[axis]);
  }
  ir::Product product;
  const ir::Node& product_node = build.node(node.args[0]);
  if (labels.size() == 1 && ir::is_product(product_node)) {
    for (const NodeId part : std::vector<NodeId>(product_node.args)) {
      const Type& type = build.type(part);
      // A part of size 1 stretches and has no share in the folded axis.
      const Labels own =
          type.is_scalar() ? Labels{} : (type.dims[0].is_one() ? Labels{ir::no_label} : labels);
      algebra.multiply_parts(product, part, own);
    }
  } else {
    algebra.multiply_parts(product, node.args[0], labels);
  }
  const bool plain = product.factors.size() == 1 && product.factors[0].node == node.args[0];
  if (plain || !fold_all(algebra, product, over, layout)) return no_node;
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
  if (!fold_all(algebra, product, {of_b[0]}, layout)) return no_node;
  return algebra.node(algebra.sum(std::move(product), {of_b[0]}, layout), layout);
}

}  // namespace

ir::Program contract_sums(const ir::Program& program) {
  return ir::rebuild(program, [](ir::Program& to, ir::Node node) {
    const bool sum = ir::is_sum(node);
    if (sum || ir::is_matmul(node)) {
      ir::Builder build(to, node.span);
      const NodeId contracted = sum ? contract_sum(build, node) : contract_matmul(build, node);
      if (contracted != no_node) return contracted;
    }
    return to.graph.add(std::move(node));
  });
}

}  // namespace starfold::opt

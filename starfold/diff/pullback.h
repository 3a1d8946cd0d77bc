// What the derivative rule of a primitive works with: one application, the adjoint of its result,
// and a place for the adjoints of its operands.
//
// Adjoints are products in index notation. Their labels are those of the axes of the differentiated
// value ("lead") and of the axes of the value they belong to. A rule is linear in the adjoint of its
// result, says how the axes of an operand relate to those of the result, and leaves the rest to
// `give`: it sums over the result's axes that the operand does not have. If that is the star, a
// shared value is used in a federated one, and the sum is sum[*], or x' @ r.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starfold/ir/product.h"

namespace starfold::diff {

using ir::Labels;
using ir::NodeId;
using ir::Product;

class Sweep;

class Pullback {
 public:
  Pullback(Sweep& sweep, NodeId result, Product adjoint);

  const ir::Node& node() const { return node_; }
  NodeId y() const { return result_; }
  NodeId x(std::size_t i = 0) const { return node_.args[i]; }
  std::size_t operands() const { return node_.args.size(); }
  const Type& type(NodeId id) const { return build().type(id); }
  // Whether the derivative needs the adjoint of this operand.
  bool wants(std::size_t i) const;

  // The adjoint of the result, and the labels of the result's axes.
  const Product& adjoint() const { return adjoint_; }
  const Labels& labels() const { return labels_; }
  // The labels of a value whose axes broadcast to the result's, and new ones.
  Labels aligned(NodeId id) const;
  Labels fresh(const Type& type) const;

  // Adds to the adjoint of operand i, whose axes have these labels. All other labels of the result
  // are summed over, except those that the rule has dealt with itself.
  void give(std::size_t i, const Labels& labels, Product product, const Labels& done = {});
  // Element-wise: adjoint * number * times / over, for values that broadcast to the result.
  void pass(std::size_t i, double number = 1, const std::vector<NodeId>& times = {}, const std::vector<NodeId>& over = {});
  // Element-wise: the adjoint where a condition (0 or 1) holds, zero elsewhere even if it is not finite.
  void pass_where(std::size_t i, NodeId condition);

  // p with further factors.
  Product with(Product p, NodeId node, const Labels& labels, bool inverse = false) const;
  Product sum(Product p, const Labels& over) const;
  // All factors that have the label as one node, which is changed and put back.
  using Change = std::function<ir::Factor(const ir::Factor&)>;
  Product change_along(Product p, ir::Label label, const Change& change) const;

  // New nodes.
  NodeId call(std::string_view op, std::vector<NodeId> args, std::vector<std::int64_t> axes = {},
              std::vector<Size> sizes = {}, std::vector<Slice> slices = {}) const;
  NodeId number(double value) const { return build().number(value); }
  // A fold of an operand with the folded axes kept as size 1.
  NodeId keep(NodeId folded) const;
  ir::Builder& build() const;
  ir::Algebra& algebra() const;

  // This operation has no derivative here.
  void fail(std::string reason, std::string help);

 private:
  Sweep& sweep_;
  NodeId result_;
  ir::Node node_;  // a copy: the graph grows under the rule
  Product adjoint_;
  Labels labels_;
};

}  // namespace starfold::diff

// Products of tensors in index notation: each axis carries a label, as in r_i x_ij w_j, and a sum
// over labels becomes matrix products and as little else as possible. Derivatives and sums over
// records are written this way first, so that what is folded right away is never made per record.
#pragma once

#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "starfold/ir/builder.h"

namespace starfold::ir {

using Label = std::uint32_t;
using Labels = std::vector<Label>;
inline constexpr Label no_label = 0;  // of an axis of size 1
bool contains(const Labels& labels, Label label);

struct Factor {
  NodeId node = no_node;
  Labels labels;         // one per axis of the node
  bool inverse = false;  // it divides
  bool has(Label label) const;
  friend bool operator==(const Factor&, const Factor&) = default;
};

// number * factors * deltas, where a delta is 1 where its two labels agree and 0 elsewhere. Along a
// label that it does not mention a product is constant.
struct Product {
  double number = 1;
  std::vector<Factor> factors;
  std::vector<std::pair<Label, Label>> deltas;
  bool has(Label label) const;  // in a factor
};

// A size of a derivative or contraction leaves the range of numbers.
class TooLarge : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Algebra {
 public:
  explicit Algebra(Builder& build) : build_(build), dims_(1) {}

  // A new label for an axis: none for size 1, and always the same for the star of one record set.
  Label label(const Dim& dim);
  Labels labels(const Type& type);
  const Dim& dim(Label label) const { return dims_[label]; }
  bool is_star(Label label) const { return dims_[label].star; }

  // Takes a factor in. Transposes, new axes, signs, constants and identity matrices are read as
  // what they are in index notation.
  void multiply(Product& product, NodeId node, Labels labels, bool inverse = false) const;
  void multiply(Product& product, const Product& by) const;
  // The same, and products that broadcast are taken apart: of r[:, new] * x both r and x.
  void multiply_parts(Product& product, NodeId node, Labels labels, bool inverse = false) const;
  // Times, or divided by, the number of positions along a label.
  void multiply_by_size(Product& product, Label label, bool inverse = false) const;
  void rename(Product& product, const std::map<Label, Label>& names) const;

  // The sum over some labels; factors without any of them stay outside. `order` is how the other
  // labels will finally be laid out: it decides between equally good forms.
  Product sum(Product product, Labels over, const Labels& order);
  // The sum of two products with the same deltas; what they share stays outside.
  Product add(Product a, Product b, const Labels& order);

  // All factors as one.
  Factor join(std::vector<Factor> factors, double number, const Labels& order);
  // A node with exactly these axes; labels that the product does not mention are filled in.
  NodeId node(Product product, const Labels& layout);
  // The factor's node with axes in this order, 1 in place of what it lacks; without `exact`, absent
  // axes at the front are left to broadcasting.
  NodeId view(const Factor& factor, const Labels& layout, bool exact) const;

 private:
  bool unwrap(Product& product, NodeId& node, Labels& labels, bool inverse) const;
  void drop_deltas(Product& product, Labels& over) const;
  void sum_one(Product& product, Label label, Labels& over, const Labels& order);
  std::vector<Factor> gather_groups(std::vector<Factor> factors, Label over, const Labels& order);
  Factor contract(Factor left, Factor right, Labels over, const Labels& order);
  Factor matrix_product(Factor left, Factor right, Label over, const Labels& order);
  Factor batched_product(const Factor& left, const Factor& right, Label over, const Labels& order);
  Factor sum_axes(const Factor& factor, const Labels& over) const;
  Factor combine(const Factor& a, const Factor& b, const Labels& order) const;
  Labels layout_of(const Factor& a, const Factor& b, const Labels& order) const;
  Factor merge(const Factor& factor, const Labels& group, Label merged, const Labels& order) const;
  Factor split(const Factor& factor, const std::map<Label, Labels>& merged) const;
  Label merged_label(const Labels& group);
  NodeId scaled(NodeId node, double number) const;
  NodeId record_ones(const std::string& record_set) const;
  NodeId fill(NodeId node, const Labels& present, const Labels& layout) const;
  Type type_of(const Labels& layout) const;

  Builder& build_;
  std::vector<Dim> dims_;  // by label
  std::map<std::string, Label> stars_;
};

}  // namespace starfold::ir

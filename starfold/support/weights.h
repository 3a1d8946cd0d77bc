// Sums over records by their terms: who adds what, and how much that is.
#pragma once

#include <optional>

#include "starfold/ir/builder.h"

namespace starfold::support {

// The terms that a sum over records adds up: one value per record, or the product of a column and a row per record,
// which is not made (left @ right).
struct Terms {
  ir::NodeId left = ir::no_node;
  ir::NodeId right = ir::no_node;  // no_node: `left` is all
  friend auto operator<=>(const Terms&, const Terms&) = default;
};

// Those of a node `sum` or `@` that folds records; what it folds within records is folded first.
Terms terms_of(ir::Builder& build, ir::NodeId sum);

// The terms as one value per record.
ir::NodeId whole(ir::Builder& build, const Terms& terms);

// The sum over records of the terms' absolute values, and of their squares.
ir::NodeId sum_of_sizes(ir::Builder& build, const Terms& terms);
ir::NodeId sum_of_squares(ir::Builder& build, const Terms& terms);

// The same where squares may leave the range of numbers: the terms are made, and the root of the sum is given.
ir::NodeId root_of_squares(ir::Builder& build, const Terms& terms);

}  // namespace starfold::support

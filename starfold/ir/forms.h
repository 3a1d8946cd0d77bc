// What a node does with its operands, as the traits in the row of its operation say: for code that is about every
// operation which does so, whatever it is called.
#pragma once

#include "starfold/ir/ir.h"

namespace starfold::ir {

// Names entries of its operands at other places, and computes nothing.
bool is_view(const Node& node);
// Moves axes, and nothing else.
bool is_permutation(const Node& node);
// Adds up entries along axes.
bool is_sum(const Node& node);
// Contracts the last axis of one operand with one of the other.
bool is_matmul(const Node& node);
// Entry by entry and linear in each of two operands: their product.
bool is_product(const Node& node);
// Entry by entry and linear in the first of two operands alone: its product with what the second makes.
bool is_quotient(const Node& node);
// Every entry of one operand times every entry of the other.
bool is_outer(const Node& node);
// Computed by this kernel.
bool has_kernel(const Node& node, Kernel kernel);
// Every entry of the result is one of an operand, or a product of two.
bool only_moves_or_multiplies(const Node& node);

}  // namespace starfold::ir

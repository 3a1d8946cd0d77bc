#include "starfold/ir/forms.h"

namespace starfold::ir {

bool has_kernel(const Node& node, Kernel kernel) {
  return node.kind == Kind::apply && node.op->kernel == kernel;
}

bool is_view(const Node& node) { return has_kernel(node, Kernel::view); }

bool is_permutation(const Node& node) {
  return node.kind == Kind::apply && node.op->family == Family::permutation;
}

bool is_sum(const Node& node) {
  return node.kind == Kind::apply && node.op->family == Family::aggregation &&
         node.op->monoid == &monoids::sum && node.op->lowering == nullptr;
}

bool is_matmul(const Node& node) {
  return node.kind == Kind::apply && node.op->family == Family::matmul;
}

bool is_product(const Node& node) {
  return has_kernel(node, Kernel::binary) && node.op->linear == Linear::singly;
}

bool is_quotient(const Node& node) {
  return has_kernel(node, Kernel::binary) && node.op->linear == Linear::first;
}

bool is_outer(const Node& node) { return has_kernel(node, Kernel::outer); }

bool only_moves_or_multiplies(const Node& node) {
  return is_view(node) || is_product(node) || is_outer(node);
}

}  // namespace starfold::ir

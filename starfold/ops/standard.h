// The contract's operations: the rows of all families.
#pragma once

#include <vector>

#include "starfold/signature/op.h"

namespace starfold {

// Every operation of the language.
const Signature& standard_signature();

// The rows of each family; one file each.
std::vector<Op> unary_ops();
std::vector<Op> binary_ops();  // B and G
std::vector<Op> aggregation_ops();
std::vector<Op> structure_ops();  // P, MatMul, indexing and the like
std::vector<Op> client_local_ops();
std::vector<Op> linear_algebra_ops();
std::vector<Op> construction_ops();  // zeros, eye, normal, ...
std::vector<Op> distribution_ops();
std::vector<Op> differentiation_ops();

// The lowering of `records`: one count per record set, whatever value asks for it.
std::uint32_t records_from_input(ir::Builder& build, const ir::Node& fold);

}  // namespace starfold

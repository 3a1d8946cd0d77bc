// One application on ordinary tensors, with all sizes known.
#pragma once

#include "starfold/ir/ir.h"
#include "starfold/tensor/tensor.h"
#include "starfold/types/size.h"

namespace starfold {

// The sizes of a shared type, or of the cell that each record of a federated one holds.
Shape cell_shape(const Type& type, const SizeValues& sizes);

// The results of a node of kind apply. Federated operands are given with their records (all, a
// client's, or a block of them) along their record axis. A RunError names the node's place.
std::vector<Tensor> apply(const ir::Program& program, const ir::Node& node,
                          std::vector<const Tensor*> args, const SizeValues& sizes);

// The same for maps of one or two operands, entry by entry, where no operand stretches but a number: the result goes where
// one of an earlier time lies, without asking for memory. False where it is something else; then nothing has happened.
bool apply_in_place(const ir::Node& node, const Tensor* const* args, Tensor& result);

// The value of a node of kind constant or size.
Tensor leaf_value(const ir::Node& node, const SizeValues& sizes);

}  // namespace starfold

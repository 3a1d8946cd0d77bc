// Rewrites of the IR: one per file, each a program in and an equal program out.
#pragma once

#include "starfold/ir/ir.h"
#include "starfold/opt/planning.h"

namespace starfold::opt {

// Variables that differentiation kept apart become the values they stand for.
ir::Program erase_variables(const ir::Program& program);

// Folds of the record axis that other folds can express become those, as their rows say: mean is sum /
// count, std the root of var, and `records` of any value of a record set is that of one input.
ir::Program lower_aggregations(const ir::Program& program);

// The same for runs in which only sums can be released: var becomes count, sum and sum of squares, norm the root of a sum of
// squares. What has no sums for it (min, max, prod) stays.
ir::Program lower_to_sums(const ir::Program& program);

// Sums over records of products become matrix products: sum[*](r[:, new] * x) is x' @ r. Nothing
// per record is kept that is folded right away.
ir::Program contract_sums(const ir::Program& program);

// Identities that hold for every IEEE double: x * 1, x - 0, --x, x'' and the like.
ir::Program simplify(const ir::Program& program);

// Loops that carry private states count their iterations for the clients; the count is an operand of each such state.
ir::Program add_clocks(const ir::Program& program);

// Results of blocks that nothing reads, and operands that their bodies do not read, go.
ir::Program trim_blocks(const ir::Program& program);

// Maps of records move into the blocks that read them.
ir::Program inline_maps(const ir::Program& program);

// All of them that the planning asks for, in order; verified after each.
ir::Program pipeline(const ir::Program& program, const Planning& planning = {});

}  // namespace starfold::opt

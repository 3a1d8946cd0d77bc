// What the numbers of each merge rest on: rules for the rows of folds (SupportRule).
#pragma once

#include <span>
#include <vector>

#include "starfold/ir/ir.h"

namespace starfold::support_rules {

using Rests = std::vector<std::vector<Rest>>;
using State = std::span<const ir::NodeId>;

// The terms themselves.
Rests sum(ir::Builder& build, const ir::Node& fold, State state);
Rests matmul(ir::Builder& build, const ir::Node& fold, State state);
// Every record counts as one.
Rests records(ir::Builder& build, const ir::Node& fold, State state);
// Every element counts as one.
Rests count(ir::Builder& build, const ir::Node& fold, State state);
// Count, terms, and squared deviations from the own mean.
Rests moments(ir::Builder& build, const ir::Node& fold, State state);
// The same for one value or two: products of deviations.
Rests comoments(ir::Builder& build, const ir::Node& fold, State state);
// The exponentials, relative to the own result.
Rests logsumexp(ir::Builder& build, const ir::Node& fold, State state);
// The squares.
Rests norm(ir::Builder& build, const ir::Node& fold, State state);
// The records with the own smallest or largest element.
Rests extreme(ir::Builder& build, const ir::Node& fold, State state);
// The zeros; without any, the logarithms, and the negative ones.
Rests product(ir::Builder& build, const ir::Node& fold, State state);
// The true ones, which decide `any`, and the false ones, which decide `all`.
Rests any(ir::Builder& build, const ir::Node& fold, State state);
Rests all(ir::Builder& build, const ir::Node& fold, State state);

}  // namespace starfold::support_rules

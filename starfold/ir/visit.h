// The walk over what values are made of.
#pragma once

#include <functional>
#include <vector>

#include "starfold/ir/ir.h"

namespace starfold::ir {

// Visits what values are made of, each node once and the values themselves first: `goes_on` is asked at each whether its operands
// are visited too.
void visit(const Graph& graph, std::vector<NodeId> from,
           const std::function<bool(NodeId)>& goes_on);
// The same through loops: a state is made of its first value, of what an iteration makes of it, and of how often there is one.
void visit(const Program& program, std::vector<NodeId> from,
           const std::function<bool(NodeId)>& goes_on);

}  // namespace starfold::ir

// The commutative monoids (M, merge, zero) of def:shared-state-factorization, one per kind of fold.
// Blocks, threads, clients and machines all merge through these.
#pragma once

#include <vector>

#include "starfold/ops/op.h"
#include "starfold/runtime/tensor.h"

namespace starfold {

// An element of one component of M: one tensor, or several for the algebraic folds
// (moments: count, mean, sum of squared deviations; logsumexp: maximum, scaled sum).
using MergeState = std::vector<Tensor>;

// The shapes of a state's tensors, for a fold whose result has this shape.
std::vector<Shape> state_shapes(Monoid monoid, const Shape& result);

// The neutral element: what a client without records sends.
MergeState zero(Monoid monoid, const Shape& result);

// into = into (+) from.
void merge(Monoid monoid, MergeState& into, const MergeState& from);

// The value of the fold, from a merged state.
Tensor finish(Monoid monoid, const MergeState& state);

// An empty string, or why this cannot be a state: a count that is no whole number, say.
std::string invalid_state(Monoid monoid, const MergeState& state, const Shape& result);

}  // namespace starfold

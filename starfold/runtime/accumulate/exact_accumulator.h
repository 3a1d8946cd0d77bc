// The accumulators of the exact rows.
#pragma once

#include <optional>

#include "starfold/runtime/accumulate/accumulator.h"

namespace starfold::engine {

// How the engine accumulates for an exact row; nullopt for other rows and for those folded by their definition.
std::optional<AccumulatorKind> exact_accumulator_kind(const Monoid& monoid);

}  // namespace starfold::engine

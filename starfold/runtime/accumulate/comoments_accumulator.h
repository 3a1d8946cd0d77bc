// The accumulator of covariances.
#pragma once

#include "starfold/runtime/accumulate/accumulator.h"

namespace starfold::engine {

std::unique_ptr<Accumulator> make_comoments(const Monoid& monoid, const Shape& result);

}  // namespace starfold::engine

#pragma once

#include <memory>
#include <string>

#include "starfold/plan/plan.h"

namespace starfold {

// The block programs of all rounds as text. They depend on the sizes: those that only data would tell are
// assumed, small and different, and the first line says what they are. RunError when none fit.
std::string print_blocks(const std::shared_ptr<const Plan>& plan);

}  // namespace starfold

// Plans of programs that passes have made, not people.
#pragma once

#include "starfold/plan/plan.h"

namespace starfold {

// make_plan for a program in which every fold is one that merges: no rewrite is needed.
Plan plan_lowered(ir::Program program, bool exact = false);

}  // namespace starfold

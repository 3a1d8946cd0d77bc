// Derivatives become programs: every grad, jacobian and hessian is replaced by the expressions it
// stands for, ordinary typed IR that is planned and exposed like what a user wrote.
#pragma once

#include "starfold/diag/diagnostic.h"
#include "starfold/ir/ir.h"

namespace starfold {

// The program without derivatives. Operations that cannot be differentiated are reported.
ir::Program differentiate(const ir::Program& program, Diagnostics& diagnostics);

}  // namespace starfold

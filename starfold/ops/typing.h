// Typing rules that many primitives share.
#pragma once

#include "starfold/ops/op.h"

namespace starfold::typing {

// The type of the only operand, unchanged (def:typing-unary).
Types unchanged(TypeQuery& query);
// The one broadcasting rule over all operands (def:typing-binary-elementwise and its extension).
Types broadcasting(TypeQuery& query);
// All operands shared, element-wise by broadcasting (distribution functions).
Types shared_broadcasting(TypeQuery& query);

}  // namespace starfold::typing

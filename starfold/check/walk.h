// Every expression of a piece of a program, whatever it stands in.
#pragma once

#include <functional>

#include "starfold/syntax/ast.h"

namespace starfold {

using Visit = std::function<void(const ast::Expr&)>;

// The expression and those inside it.
void walk(const ast::Expr& expr, const Visit& visit);
// All expressions of the statements, with those in loops; functions are left out.
void walk(const ast::Block& block, const Visit& visit);
// All expressions of a function's body.
void walk(const ast::Fn& fn, const Visit& visit);

}  // namespace starfold

// The one canonical layout of a program.
#pragma once

#include <string>

#include "starfold/base/source.h"
#include "starfold/syntax/ast.h"

namespace starfold {

// The text of a file that parsed without errors, in canonical layout; comments survive, and
// formatting the result again changes nothing.
std::string format(const SourceMap& sources, const ast::File& file);

// One expression on one line, as the formatter would write it.
std::string format(const ast::Expr& expr);

}  // namespace starfold

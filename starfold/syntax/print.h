#pragma once

#include <string>

#include "starfold/syntax/ast.h"

namespace starfold {

// The syntax tree as text: a line per statement, expressions in prefix form: (+ a (* b 2)).
std::string print(const ast::File& file);

}  // namespace starfold

// Texts of programs as parts of other texts: read, checked, refused. For realize and compose.
#pragma once

#include <map>
#include <set>
#include <string>

#include "starfold/base/source.h"
#include "starfold/ir/ir.h"
#include "starfold/syntax/ast.h"

namespace starfold::program_text {

// Throws std::invalid_argument.
[[noreturn]] void refuse(const std::string& why);

// The typed program; refuses one with errors. `what` names it in the message.
ir::Program checked(const std::string& text, const std::string& what, const Signature& signature);

// A syntax tree with the text it was read from; refuses what is no program.
struct Parsed {
  SourceMap sources;
  ast::File file;

  Parsed(const std::string& text, const std::string& what);
  std::string text(Span span) const { return std::string(sources.text(span)); }
  std::string whole_text() const;
};

// The name a top-level statement defines, where it defines exactly one.
std::string name_of(const ast::Stmt& stmt);

// The first of these names that an expression uses; empty when it uses none.
std::string first_used(const ast::Expr& expr, const std::set<std::string>& names);

// A name that the text does not contain.
std::string unused(std::string name, const std::string& text);

}  // namespace starfold::program_text

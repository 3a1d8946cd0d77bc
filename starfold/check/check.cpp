#include "starfold/check/check.h"

#include "starfold/check/checker.h"

namespace starfold {

ir::Program Checker::run(const ast::File& file) {
  // The program's own functions live in a module without a name; its file stays with the caller.
  Module program_module;
  frames_.emplace_back().module = &program_module;
  frame().scopes.emplace_back();
  for (const ast::Stmt& stmt : file.items) {
    if (const auto* size = std::get_if<ast::SizeDecl>(&stmt.node)) size_declaration(*size);
  }
  load_functions(program_module, file.items);
  find_recursion(program_module);
  check_definitions(program_module);
  for (const ast::Stmt& stmt : file.items) {
    if (std::holds_alternative<ast::SizeDecl>(stmt.node)) continue;
    statement(stmt);
  }
  close_scope();
  frames_.pop_back();
  diagnostics_.sort();
  return std::move(program_);
}

ir::Program check(SourceMap& sources, const ast::File& file, const CheckOptions& options, Diagnostics& diagnostics) {
  return Checker(sources, options, diagnostics).run(file);
}

}  // namespace starfold

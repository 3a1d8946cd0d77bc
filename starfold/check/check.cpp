#include "starfold/check/check.h"

#include <algorithm>

#include "starfold/check/checker.h"
#include "starfold/check/walk.h"

namespace starfold {
namespace {

// What the program defines at its top level, sizes included: functions do not see these.
std::map<std::string, Span, std::less<>> names_of(const ast::Block& items) {
  std::map<std::string, Span, std::less<>> names;
  const auto add = [&](const ast::Name& name) { names.emplace(name.text, name.span); };
  for (const ast::Stmt& stmt : items) {
    if (const auto* input = std::get_if<ast::Input>(&stmt.node)) {
      add(input->name);
      for (const ast::Dim& dim : input->type.dims) {
        if (!dim.size) continue;
        walk(*dim.size, [&](const ast::Expr& expr) {
          if (expr.kind == ast::ExprKind::name) names.emplace(expr.text, expr.span);
        });
      }
    }
    if (const auto* state = std::get_if<ast::State>(&stmt.node)) add(state->name);
    if (const auto* let = std::get_if<ast::Let>(&stmt.node)) {
      for (const ast::Name& name : let->names) add(name);
    }
  }
  return names;
}

}  // namespace

ir::Program Checker::run(const ast::File& file) {
  program_.signature = std::make_shared<const Signature>(*options_.signature);
  // The program's own functions live in a module without a name.
  Module program_module;
  program_module.file = &file;
  program_module.library =
      std::all_of(file.items.begin(), file.items.end(), [](const ast::Stmt& stmt) {
        return std::holds_alternative<ast::Fn>(stmt.node) ||
               std::holds_alternative<ast::Import>(stmt.node);
      });
  Names variables;
  walk(file.items, [&](const ast::Expr& expr) { add_variable(expr, variables); });
  frames_.emplace_back().module = &program_module;
  frame().variables = &variables;
  frame().scopes.emplace_back();
  for (const ast::Stmt& stmt : file.items) {
    if (const auto* size = std::get_if<ast::SizeDecl>(&stmt.node)) size_declaration(*size);
  }
  outer_names_ = names_of(file.items);
  load_functions(program_module);
  find_recursion(program_module);
  check_definitions(program_module);
  for (const ast::Stmt& stmt : file.items) {
    if (!std::holds_alternative<ast::SizeDecl>(stmt.node)) statement(stmt);
  }
  close_scope({file.id, 0, static_cast<std::uint32_t>(sources_[file.id].text().size())});
  frames_.pop_back();
  diagnostics_.sort();
  finish_names(file);
  std::stable_sort(
      program_.name_types.begin(), program_.name_types.end(),
      [](const ir::NameType& a, const ir::NameType& b) { return a.span.begin < b.span.begin; });
  return std::move(program_);
}

ir::Program check(SourceMap& sources, const ast::File& file, const CheckOptions& options,
                  Diagnostics& diagnostics) {
  return Checker(sources, options, diagnostics).run(file);
}

}  // namespace starfold

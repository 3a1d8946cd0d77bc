#include "starfold/theory/program_text.h"

#include <fmt/format.h>

#include <stdexcept>

#include "starfold/compile/compile.h"
#include "starfold/syntax/parser.h"

namespace starfold::program_text {

void refuse(const std::string& why) { throw std::invalid_argument(why); }

ir::Program checked(const std::string& text, const std::string& what, const Signature& signature) {
  CheckOptions options;
  options.signature = &signature;
  Compilation compilation = compile(what, text, options);
  for (const Diagnostic& d : compilation.diagnostics.items()) {
    if (info(d.code).severity == Severity::error) refuse(fmt::format("{}: {}", what, d.message));
  }
  return std::move(compilation.program);
}

Parsed::Parsed(const std::string& text, const std::string& what) {
  Diagnostics diagnostics;
  file = parse(sources, sources.add(what, text), diagnostics);
  if (diagnostics.has_errors())
    refuse(fmt::format("{}: {}", what, diagnostics.items().front().message));
}

std::string Parsed::whole_text() const { return std::string(sources[file.id].text()); }

std::string name_of(const ast::Stmt& stmt) {
  if (const auto* input = std::get_if<ast::Input>(&stmt.node)) return input->name.text;
  if (const auto* size = std::get_if<ast::SizeDecl>(&stmt.node)) return size->name.text;
  if (const auto* fn = std::get_if<ast::Fn>(&stmt.node)) return fn->name.text;
  if (const auto* state = std::get_if<ast::State>(&stmt.node)) return state->name.text;
  return {};
}

std::string first_used(const ast::Expr& expr, const std::set<std::string>& names) {
  if (expr.kind == ast::ExprKind::name && names.count(expr.text) != 0) return expr.text;
  const auto in = [&](const ast::ExprPtr& part) {
    return part ? first_used(*part, names) : std::string();
  };
  for (const ast::ExprPtr& arg : expr.args) {
    if (std::string found = in(arg); !found.empty()) return found;
  }
  for (const ast::Subscript& s : expr.subscripts) {
    for (const ast::ExprPtr* part : {&s.first, &s.last}) {
      if (std::string found = in(*part); !found.empty()) return found;
    }
  }
  return {};
}

std::string unused(std::string name, const std::string& text) {
  while (text.find(name) != std::string::npos) name += "_";
  return name;
}

}  // namespace starfold::program_text

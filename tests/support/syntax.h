// Parsing in tests, and trees as text to compare them.
#pragma once

#include <fmt/format.h>

#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "starfold/diag/diagnostic.h"
#include "starfold/syntax/ast.h"
#include "starfold/syntax/parser.h"
#include "tests/support/sanitized.h"

namespace starfold::testing {

// What hostile text may cost; sanitizers make everything slow.
inline constexpr double seconds_for_hostile_text = sanitized ? 20 : 1;

// Processor time, so that other work on the machine does not count.
class Stopwatch {
 public:
  double seconds() const {
    return static_cast<double>(std::clock() - start_) / static_cast<double>(CLOCKS_PER_SEC);
  }

 private:
  std::clock_t start_ = std::clock();
};

// One parsed text with everything it refers to.
struct ParsedText {
  SourceMap sources;
  Diagnostics diagnostics;
  ast::File file;

  explicit ParsedText(std::string text, std::string name = "test.fold") {
    const auto id = sources.add(std::move(name), std::move(text));
    file = parse(sources, id, diagnostics);
  }

  // Each mistake as "E0104 2:3-2:4 message".
  std::vector<std::string> mistakes() const {
    std::vector<std::string> out;
    for (const Diagnostic& d : diagnostics.items()) {
      const Source& source = sources[d.primary.span.file];
      const Position from = source.position(d.primary.span.begin);
      const Position to = source.position(d.primary.span.end);
      out.push_back(fmt::format("{} {}:{}-{}:{} {}", info(d.code).id, from.line, from.column,
                                to.line, to.column, d.message));
    }
    return out;
  }

  // The codes alone, separated by spaces.
  std::string codes() const {
    std::string out;
    for (const Diagnostic& d : diagnostics.items()) {
      if (!out.empty()) out += " ";
      out += info(d.code).id;
    }
    return out;
  }
};

// An expression as (operator operand ...), without regard to parentheses and places.
std::string tree(const ast::Expr& expr);
std::string tree(const ast::Block& block);

inline std::string tree(const ast::Subscript& s) {
  switch (s.kind) {
    case ast::Subscript::Kind::all:
      return ":";
    case ast::Subscript::Kind::index:
      return tree(*s.first);
    case ast::Subscript::Kind::new_axis:
      return "new";
    case ast::Subscript::Kind::star:
      return "*" + s.record_set;
    case ast::Subscript::Kind::range:
      break;
  }
  return (s.first ? tree(*s.first) : "") + ".." + (s.last ? tree(*s.last) : "");
}

inline std::string tree(const ast::Expr& expr) {
  std::string parts;
  if (expr.has_subscripts) parts += " [";
  for (std::size_t i = 0; i < expr.subscripts.size(); ++i) {
    parts += (i > 0 ? ", " : "") + tree(expr.subscripts[i]);
  }
  if (expr.has_subscripts) parts += "]";
  for (const auto& arg : expr.args) parts += " " + tree(*arg);
  switch (expr.kind) {
    case ast::ExprKind::number:
    case ast::ExprKind::name:
      return expr.text;
    case ast::ExprKind::unary:
    case ast::ExprKind::binary:
      return "(" + expr.text + parts + ")";
    case ast::ExprKind::call:
      return "(call " + (expr.module ? expr.module->text + "." : "") + expr.text + parts + ")";
    case ast::ExprKind::index:
      return "(index" + parts + ")";
    case ast::ExprKind::transpose:
      return "(transpose" + parts + ")";
    case ast::ExprKind::list:
      return "(list" + parts + ")";
    case ast::ExprKind::tuple:
      return "(tuple" + parts + ")";
    case ast::ExprKind::each_client:
      return "(each client {" + tree(expr.block->body) + "} " + tree(*expr.block->value) + ")";
    case ast::ExprKind::invalid:
      break;
  }
  return "<invalid>";
}

inline std::string tree(const ast::ExprPtr& expr) { return expr ? tree(*expr) : "-"; }

inline std::string tree(const ast::TypeExpr& type) {
  std::string out = "[";
  for (const ast::Dim& dim : type.dims) {
    out += (out.size() > 1 ? ", " : "") + (dim.star ? "*" + dim.record_set : tree(*dim.size));
  }
  return out + "]";
}

inline std::string tree(const std::optional<ast::TypeExpr>& type) {
  return type ? tree(*type) : "-";
}

struct StatementTree {
  std::string operator()(const ast::Import& n) const { return "import " + n.module.text; }
  std::string operator()(const ast::SizeDecl& n) const {
    return "size " + n.name.text + " " + tree(n.value);
  }
  std::string operator()(const ast::Input& n) const {
    return "input " + n.name.text + " " + tree(n.type) + " " + tree(n.fallback);
  }
  std::string operator()(const ast::Fn& n) const {
    std::string params;
    for (const ast::Param& p : n.params) params += " " + p.name.text + tree(p.type);
    return "fn " + n.name.text + params + " " + tree(n.result) + " {" + tree(n.body) + "} " +
           tree(n.value) + (n.braces ? " braces" : "");
  }
  std::string operator()(const ast::Let& n) const {
    std::string names;
    for (const ast::Name& name : n.names) names += " " + name.text;
    return (n.tuple ? "let tuple" : "let") + names + " " + tree(n.type) + " " + tree(n.value);
  }
  std::string operator()(const ast::State& n) const {
    return (n.at_client ? "private state " : "state ") + n.name.text + " " + tree(n.type) + " " +
           tree(n.value);
  }
  std::string operator()(const ast::Update& n) const {
    return "update " + n.name.text + " " + tree(n.value);
  }
  std::string operator()(const ast::Repeat& n) const {
    return "repeat " + tree(n.count) + (n.seed ? " batches " + tree(n.seed) : "") + " {" +
           tree(n.body) + "} " + tree(n.until);
  }
  std::string operator()(const ast::Trace& n) const {
    return "trace " + n.name.text + " " + tree(n.value);
  }
  std::string operator()(const ast::Demand& n) const {
    return (n.must ? "require " : "expect ") + tree(n.value) + " \"" + n.sentence + "\"";
  }
  std::string operator()(const ast::Output& n) const {
    return (n.kept ? "keep " : "output ") + n.name.text + " " + tree(n.value);
  }
};

inline std::string tree(const ast::Block& block) {
  std::string out;
  for (const ast::Stmt& stmt : block) {
    if (!out.empty()) out += "; ";
    out += std::visit(StatementTree(), stmt.node);
  }
  return out;
}

// The tree of an expression given as text.
inline std::string expression_tree(std::string_view text) {
  const ParsedText parsed("let a = " + std::string(text) + "\n");
  if (!parsed.mistakes().empty()) return parsed.mistakes()[0];
  return tree(std::get<ast::Let>(parsed.file.items.at(0).node).value);
}

}  // namespace starfold::testing

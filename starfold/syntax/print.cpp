#include "starfold/syntax/print.h"

#include <fmt/format.h>

namespace starfold {
namespace {

using ast::Expr;
using ast::ExprKind;

std::string expr(const Expr& e);
std::string each_client(const Expr& e);

std::string optional_expr(const ast::ExprPtr& e) { return e ? expr(*e) : ""; }

std::string star(const std::string& record_set) { return "*" + record_set; }

std::string subscript(const ast::Subscript& s) {
  switch (s.kind) {
    case ast::Subscript::Kind::all:
      return ":";
    case ast::Subscript::Kind::index:
      return expr(*s.first);
    case ast::Subscript::Kind::range:
      return fmt::format("{}:{}", optional_expr(s.first), optional_expr(s.last));
    case ast::Subscript::Kind::new_axis:
      return "new";
    case ast::Subscript::Kind::star:
      return star(s.record_set);
  }
  return "";
}

// (head arg ... [subscripts])
std::string form(std::string head, const Expr& e) {
  std::string text = "(" + std::move(head);
  if (e.has_subscripts) {
    text += " [";
    for (const ast::Subscript& s : e.subscripts)
      text += (text.back() == '[' ? "" : ", ") + subscript(s);
    text += "]";
  }
  for (const ast::ExprPtr& arg : e.args) text += " " + expr(*arg);
  return text + ")";
}

std::string expr(const Expr& e) {
  switch (e.kind) {
    case ExprKind::number:
    case ExprKind::name:
      return e.text;
    case ExprKind::unary:
    case ExprKind::binary:
      return form(e.text, e);
    case ExprKind::call:
      return form(fmt::format("call {}{}", e.module ? e.module->text + "." : "", e.text), e);
    case ExprKind::index:
      return form("index", e);
    case ExprKind::transpose:
      return form("transpose", e);
    case ExprKind::list:
      return form("list", e);
    case ExprKind::tuple:
      return form("tuple", e);
    case ExprKind::each_client:
      return each_client(e);
    case ExprKind::invalid:
      return "(invalid)";
  }
  return "";
}

std::string type(const ast::TypeExpr& t) {
  if (t.function) return "fn";
  std::string text = "[";
  for (const ast::Dim& dim : t.dims) {
    text += (text.size() > 1 ? ", " : "") + (dim.star ? star(dim.record_set) : expr(*dim.size));
  }
  return text + "]";
}

std::string optional_type(const std::optional<ast::TypeExpr>& t) {
  return t ? " : " + type(*t) : "";
}

class Printer {
 public:
  std::string run(const ast::Block& statements) {
    block(statements);
    return std::move(text_);
  }

 private:
  void block(const ast::Block& statements) {
    for (const ast::Stmt& stmt : statements)
      std::visit([this](const auto& node) { print(node); }, stmt.node);
  }
  void inner(const ast::Block& statements) {
    ++depth_;
    block(statements);
    --depth_;
  }
  void line(const std::string& words) {
    text_ += std::string(2 * static_cast<std::size_t>(depth_), ' ') + words + "\n";
  }

  void print(const ast::Import& node) { line("import " + node.module.text); }
  void print(const ast::SizeDecl& node) {
    line(fmt::format("size {} = {}", node.name.text, expr(*node.value)));
  }
  void print(const ast::Input& node) {
    const std::string fallback = node.fallback ? " = " + expr(*node.fallback) : "";
    line(fmt::format("input {} : {}{}", node.name.text, type(node.type), fallback));
  }
  void print(const ast::Fn& node) {
    std::string params;
    for (const ast::Param& param : node.params)
      params += fmt::format(" ({} : {})", param.name.text, type(param.type));
    line(fmt::format("fn {}{}{}", node.name.text, params, optional_type(node.result)));
    inner(node.body);
    ++depth_;
    line("result " + expr(*node.value));
    --depth_;
  }
  void print(const ast::Let& node) {
    std::string names;
    for (const ast::Name& name : node.names) names += " " + name.text;
    line(fmt::format("let{}{} = {}", names, optional_type(node.type), expr(*node.value)));
  }
  void print(const ast::State& node) {
    line(fmt::format("{}state {}{} = {}", node.at_client ? "private " : "", node.name.text,
                     optional_type(node.type), expr(*node.value)));
  }
  void print(const ast::Update& node) {
    line(fmt::format("update {} = {}", node.name.text, expr(*node.value)));
  }
  void print(const ast::Repeat& node) {
    line(node.seed ? fmt::format("repeat batches {} {}", expr(*node.count), expr(*node.seed))
                   : "repeat " + expr(*node.count));
    inner(node.body);
    if (node.until) line("until " + expr(*node.until));
  }
  void print(const ast::Trace& node) {
    line(fmt::format("trace {} = {}", node.name.text, expr(*node.value)));
  }
  void print(const ast::Demand& node) {
    line(fmt::format("{} {}, \"{}\"", node.must ? "require" : "expect", expr(*node.value),
                     node.sentence));
  }
  void print(const ast::Output& node) {
    line(fmt::format("{} {}{}", node.kept ? "keep" : "output", node.name.text,
                     node.value ? " = " + expr(*node.value) : std::string()));
  }

  std::string text_;
  int depth_ = 0;
};

// (each_client (let ...) ... result): each statement's lines one after the other.
std::string each_client(const ast::Expr& e) {
  std::string text = "(each_client";
  std::string inside = Printer().run(e.block->body);
  for (std::size_t at = 0; at < inside.size();) {
    const std::size_t end = inside.find('\n', at);
    const std::size_t first = inside.find_first_not_of(' ', at);
    text += " {" + inside.substr(first, end - first) + "}";
    at = end + 1;
  }
  return text + " " + expr(*e.block->value) + ")";
}

}  // namespace

std::string print(const ast::File& file) { return Printer().run(file.items); }

}  // namespace starfold

#include "starfold/syntax/format_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "starfold/syntax/format.h"
#include "starfold/syntax/parser_impl.h"

namespace starfold {

namespace syntax {

namespace {

// The levels of the parser, continued: unary minus, `^`, and what needs no parentheses.
constexpr int level_minus = level_product + 1;
constexpr int level_power = level_minus + 1;
constexpr int level_postfix = level_power + 1;

int operator_level(std::string_view op) {
  if (op == "or") return level_or;
  if (op == "and") return level_and;
  if (op == "+" || op == "-") return level_sum;
  if (op == "*" || op == "/" || op == "@") return level_product;
  return op == "^" ? level_power : level_comparison;
}

int level_of(const ast::Expr& expr) {
  if (expr.kind == ast::ExprKind::unary) return expr.text == "not" ? level_not : level_minus;
  if (expr.kind == ast::ExprKind::binary) return operator_level(expr.text);
  return level_postfix;
}

void bare(Layout& layout, const ast::Expr& expr);

// A part of an expression, in parentheses if the user wrote them or the tree needs them.
void operand(Layout& layout, const ast::Expr& expr, int loosest) {
  if (!expr.parenthesized && level_of(expr) >= loosest) return bare(layout, expr);
  layout.text("(");
  layout.open();
  layout.indent();
  layout.soft();
  bare(layout, expr);
  layout.dedent();
  layout.soft();
  layout.close();
  layout.text(")");
}

// a + b - c: one group, since its operators are equals.
void chain(Layout& layout, const ast::Expr& expr) {
  const int level = operator_level(expr.text);
  std::vector<const ast::Expr*> links = {&expr};
  const auto continues = [&](const ast::Expr& e) {
    return level != level_comparison && e.kind == ast::ExprKind::binary && !e.parenthesized &&
           operator_level(e.text) == level;
  };
  while (continues(*links.back()->args[0])) links.push_back(links.back()->args[0].get());
  std::reverse(links.begin(), links.end());
  layout.open();
  operand(layout, *links[0]->args[0], level == level_comparison ? level + 1 : level);
  layout.indent();
  for (const ast::Expr* link : links) {
    layout.text(fmt::format(" {}", link->text));
    layout.line();
    operand(layout, *link->args[1], level + 1);
  }
  layout.dedent();
  layout.close();
}

void subscript(Layout& layout, const ast::Subscript& s) {
  using Kind = ast::Subscript::Kind;
  if (s.kind == Kind::new_axis) layout.text("new");
  if (s.kind == Kind::star) layout.text("*" + s.record_set);
  if (s.first) lay_out(layout, *s.first);
  if (s.kind == Kind::all || s.kind == Kind::range) layout.text(":");
  if (s.last) lay_out(layout, *s.last);
}

void subscripts(Layout& layout, const std::vector<ast::Subscript>& list) {
  lay_out_list(layout, "[", list, "]", [&](const auto& s) { subscript(layout, s); });
}

void list(Layout& layout, const ast::Expr& expr, std::string_view opener, std::string_view closer) {
  // Numbers and names fill lines; anything larger gets a line of its own.
  const bool plain = std::all_of(expr.args.begin(), expr.args.end(), [](const auto& e) {
    const ast::Expr& inner = e->kind == ast::ExprKind::unary ? *e->args[0] : *e;
    return inner.kind == ast::ExprKind::number || inner.kind == ast::ExprKind::name;
  });
  const bool fill = plain && expr.kind == ast::ExprKind::list;
  lay_out_list(
      layout, opener, expr.args, closer, [&](const auto& e) { lay_out(layout, *e); }, fill);
}

// An expression without the parentheses around it.
void bare(Layout& layout, const ast::Expr& expr) {
  switch (expr.kind) {
    case ast::ExprKind::number:
      return layout.text(expr.text.empty() ? fmt::format("{}", expr.number) : expr.text);
    case ast::ExprKind::name:
      return layout.text(expr.text);
    case ast::ExprKind::unary:
      layout.text(expr.text == "not" ? "not " : "-");
      return operand(layout, *expr.args[0], expr.text == "not" ? level_not : level_minus);
    case ast::ExprKind::binary:
      if (expr.text != "^") return chain(layout, expr);
      operand(layout, *expr.args[0], level_postfix);
      layout.text("^");
      return operand(layout, *expr.args[1], level_minus);
    case ast::ExprKind::call:
      if (expr.module) layout.text(expr.module->text + ".");
      layout.text(expr.text);
      if (expr.has_subscripts) subscripts(layout, expr.subscripts);
      return list(layout, expr, "(", ")");
    case ast::ExprKind::index:
      operand(layout, *expr.args[0], level_postfix);
      return subscripts(layout, expr.subscripts);
    case ast::ExprKind::transpose:
      operand(layout, *expr.args[0], level_postfix);
      return layout.text("'");
    case ast::ExprKind::list:
      return list(layout, expr, "[", "]");
    case ast::ExprKind::tuple:
      return list(layout, expr, "(", ")");
    case ast::ExprKind::each_client:
      return layout.blocks() ? layout.blocks()(layout, expr) : layout.text("each client { ... }");
    case ast::ExprKind::invalid:
      return layout.text("<invalid>");
  }
}

}  // namespace

void lay_out(Layout& layout, const ast::Expr& expr) { operand(layout, expr, level_or); }

void lay_out(Layout& layout, const ast::TypeExpr& type) {
  if (type.function) return layout.text("fn");
  lay_out_list(layout, "[", type.dims, "]", [&](const ast::Dim& dim) {
    if (dim.star) return layout.text("*" + dim.record_set);
    operand(layout, *dim.size, level_sum);
  });
}

std::string print_bare(const ast::Expr& expr) {
  Layout layout;
  bare(layout, expr);
  return layout.print_flat();
}

}  // namespace syntax

std::string format(const ast::Expr& expr) { return syntax::print_bare(expr); }

}  // namespace starfold

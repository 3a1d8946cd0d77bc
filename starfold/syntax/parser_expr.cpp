// Expressions: or < and < not < comparison < + - < * / @ < unary - < ^ < postfix.
#include <fmt/format.h>

#include "starfold/syntax/parser_impl.h"

namespace starfold::syntax {

namespace {

// How tightly a binary operator binds; -1 for everything else. `^` is read by power().
int level(TokenKind kind) {
  switch (kind) {
    case TokenKind::kw_or:
      return level_or;
    case TokenKind::kw_and:
      return level_and;
    case TokenKind::plus:
    case TokenKind::minus:
      return level_sum;
    case TokenKind::star:
    case TokenKind::slash:
    case TokenKind::at:
      return level_product;
    default:
      return is_comparison(kind) ? level_comparison : -1;
  }
}

}  // namespace

// Every node goes through here: trees higher than the limit would overflow the stack of whoever
// walks them, however flat their text is.
Parsed Parser::finish(Parsed parsed) {
  tallest_ = std::max(tallest_, parsed.height);
  if (parsed.height <= max_expression_depth) return parsed;
  fail_depth();
  return {};
}

Parsed Parser::leaf(ast::ExprKind kind) {
  const Token token = take();
  auto expr = std::make_unique<ast::Expr>();
  expr->kind = kind;
  expr->span = expr->text_span = span(token);
  expr->text = text(token);
  expr->number = token.value;
  const Span where = expr->span;
  return {std::move(expr), where, 1};
}

Parsed Parser::invalid_leaf() {
  auto expr = std::make_unique<ast::Expr>();
  const Span where = span(peek());
  expr->span = expr->text_span = where;
  return {std::move(expr), where, 1};
}

Parsed Parser::binary(Parsed left, const Token& op, Parsed right) {
  auto expr = std::make_unique<ast::Expr>();
  expr->kind = ast::ExprKind::binary;
  expr->span = cover(left.outer, right.outer);
  expr->text = spelling(op.kind);
  expr->text_span = span(op);
  expr->args.push_back(std::move(left.expr));
  expr->args.push_back(std::move(right.expr));
  const Span where = expr->span;
  return finish({std::move(expr), where, 1 + std::max(left.height, right.height)});
}

Parsed Parser::prefix(const Token& op, Parsed inner) {
  auto expr = std::make_unique<ast::Expr>();
  expr->kind = ast::ExprKind::unary;
  expr->span = cover(span(op), inner.outer);
  expr->text = spelling(op.kind);
  expr->text_span = span(op);
  expr->args.push_back(std::move(inner.expr));
  const Span where = expr->span;
  return finish({std::move(expr), where, 1 + inner.height});
}

// An expression whose operators bind at least as tightly as `loosest`.
Parsed Parser::expression(int loosest) {
  if (depth_ >= max_expression_depth) {
    fail_depth();
    return {};
  }
  ++depth_;
  Parsed left = prefixed(loosest);
  while (left) {
    const Token op = peek();
    const int binds = level(op.kind);
    if (binds < loosest) break;
    take();
    Parsed right = expression(binds + 1);
    left = right ? binary(std::move(left), op, std::move(right)) : Parsed{};
    if (left && binds == level_comparison) left = comparison_rest(std::move(left));
  }
  --depth_;
  return left;
}

Parsed Parser::prefixed(int loosest) {
  if (!at(TokenKind::kw_not) || loosest > level_not) return unary();
  const Token op = take();
  Parsed inner = expression(level_not);
  return inner ? prefix(op, std::move(inner)) : Parsed{};
}

// After a comparison: reports `a < b < c` and reads over the rest of it.
Parsed Parser::comparison_rest(Parsed left) {
  bool said = false;
  while (is_comparison(peek().kind)) {
    if (!said) report_chain(left, peek());
    said = true;
    take();
    if (!expression(level_sum)) return {};
  }
  if (!said) return left;
  Parsed out = invalid_leaf();
  out.outer = out.expr->span = cover(left.outer, span_since(left.outer.begin));
  return out;
}

Parsed Parser::unary() {
  if (!at(TokenKind::minus)) return power();
  if (depth_ >= max_expression_depth) {
    fail_depth();
    return {};
  }
  const Token op = take();
  ++depth_;
  Parsed inner = unary();
  --depth_;
  return inner ? prefix(op, std::move(inner)) : Parsed{};
}

// `^` binds to the right, and its exponent may be negative: 2^-x^2 is 2^(-(x^2)).
Parsed Parser::power() {
  Parsed base = postfix();
  if (!base || !at(TokenKind::caret)) return base;
  if (depth_ >= max_expression_depth) {
    fail_depth();
    return {};
  }
  const Token op = take();
  ++depth_;
  Parsed exponent = unary();
  --depth_;
  return exponent ? binary(std::move(base), op, std::move(exponent)) : Parsed{};
}

Parsed Parser::postfix() {
  Parsed base = operand();
  while (base) {
    if (at(TokenKind::quote)) {
      const Token op = take();
      auto expr = std::make_unique<ast::Expr>();
      expr->kind = ast::ExprKind::transpose;
      expr->span = cover(base.outer, span(op));
      expr->text = "'";
      expr->text_span = span(op);
      expr->args.push_back(std::move(base.expr));
      const Span where = expr->span;
      base = finish({std::move(expr), where, 1 + base.height});
    } else if (at(TokenKind::left_bracket)) {
      base = index_or_call(std::move(base));
    } else if (at(TokenKind::left_paren)) {
      fail("an operator", "only a name can be called; to multiply, write `*`");
      return {};
    } else {
      break;
    }
  }
  return base;
}

Parsed Parser::operand() {
  switch (peek().kind) {
    case TokenKind::number:
      return leaf(ast::ExprKind::number);
    case TokenKind::name:
      return at_each() ? each_client() : name_or_call();
    case TokenKind::left_paren:
      return parenthesized();
    case TokenKind::left_bracket:
      return list();
    case TokenKind::invalid: {
      Parsed out = invalid_leaf();
      take();
      return out;
    }
    default:
      fail_operand();
      return {};
  }
}

// x, f(x), stats.cov(x), stats.quantile[2](x).
Parsed Parser::name_or_call() {
  const std::uint32_t begin = peek().begin;
  Parsed callee = leaf(ast::ExprKind::name);
  if (accept(TokenKind::dot)) {
    const Span module = callee.expr->span;
    callee.expr->module = ast::Name{std::move(callee.expr->text), module};
    if (!at(TokenKind::name)) {
      fail("the name of a function after `.`");
      return {};
    }
    const Token function = take();
    callee.expr->text = text(function);
    callee.expr->text_span = span(function);
    callee.outer = callee.expr->span = span_since(begin);
    if (at(TokenKind::left_bracket)) return index_or_call(std::move(callee));
    if (!at(TokenKind::left_paren)) {
      const bool transpose = text(function) == "T";
      fail(fmt::format("`(` after {}", quoted(sources_.text(callee.outer))),
           transpose ? fmt::format("the transpose is written {}'", callee.expr->module->text)
                     : "`.` calls a function of a module, as in stats.cov(x)");
      return {};
    }
  }
  return at(TokenKind::left_paren) ? call(std::move(callee), begin) : std::move(callee);
}

// The arguments of a call; `callee` already has its name and axes.
Parsed Parser::call(Parsed callee, std::uint32_t begin) {
  const Token opener = take();
  ast::Expr& expr = *callee.expr;
  expr.kind = ast::ExprKind::call;
  int height = callee.height;
  const bool read = elements(opener, TokenKind::right_paren, [&] {
    Parsed argument = expression();
    if (!argument) return false;
    height = std::max(height, argument.height + 1);
    expr.args.push_back(std::move(argument.expr));
    return true;
  });
  if (!read) return {};
  expr.span = span_since(begin);
  const Span where = expr.span;
  return finish({std::move(callee.expr), where, height});
}

// e[...], or name[axes](...) when a parenthesis follows.
Parsed Parser::index_or_call(Parsed base) {
  const bool callable = base.expr->kind == ast::ExprKind::name && !base.expr->parenthesized;
  auto expr = std::make_unique<ast::Expr>();
  int height = 0;
  const Token opener = peek();
  if (!subscripts(*expr, height)) return {};
  if (callable && at(TokenKind::left_paren)) {
    base.expr->subscripts = std::move(expr->subscripts);
    base.expr->has_subscripts = true;
    base.height = std::max(base.height, height + 1);
    const std::uint32_t begin = base.outer.begin;
    return call(std::move(base), begin);
  }
  if (callable && base.expr->module) {
    fail(fmt::format("`(` after {}", quoted(sources_.text(span_since(base.outer.begin)))));
    return {};
  }
  if (expr->subscripts.empty()) {
    --at_;
    fail("an index", "write which elements, for example x[1] or x[:, 2]");
    return {};
  }
  expr->kind = ast::ExprKind::index;
  expr->has_subscripts = true;
  expr->span = span_since(base.outer.begin);
  expr->text_span = span_since(opener.begin);
  height = 1 + std::max(base.height, height);
  expr->args.push_back(std::move(base.expr));
  const Span where = expr->span;
  return finish({std::move(expr), where, height});
}

bool Parser::subscripts(ast::Expr& expr, int& height) {
  const Token opener = take();
  return elements(opener, TokenKind::right_bracket, [&] { return subscript(expr, height); });
}

// `:`, `2`, `2:4`, `2:`, `:4`, `new`, `*`, `*visits`.
bool Parser::subscript(ast::Expr& expr, int& height) {
  ast::Subscript out;
  const std::uint32_t begin = peek().begin;
  const auto part = [&](ast::ExprPtr& into) {
    Parsed parsed = expression();
    height = std::max(height, parsed.height);
    into = std::move(parsed.expr);
    return into != nullptr;
  };
  if (auto set = record_set()) {
    out.kind = ast::Subscript::Kind::star;
    out.record_set = std::move(*set);
  } else if (accept(TokenKind::kw_new)) {
    out.kind = ast::Subscript::Kind::new_axis;
  } else {
    out.kind = ast::Subscript::Kind::index;
    if (!at(TokenKind::colon) && !part(out.first)) return false;
    if (accept(TokenKind::colon)) {
      const bool open_end = at(TokenKind::comma) || at(TokenKind::right_bracket);
      if (!open_end && !part(out.last)) return false;
      out.kind = out.first || out.last ? ast::Subscript::Kind::range : ast::Subscript::Kind::all;
    }
  }
  out.span = span_since(begin);
  expr.subscripts.push_back(std::move(out));
  return true;
}

// A star and the name of its record set, which may be empty.
std::optional<std::string> Parser::record_set() {
  if (!accept(TokenKind::star)) return std::nullopt;
  return at(TokenKind::name) ? std::string(text(take())) : std::string();
}

// (e) or (a, b).
Parsed Parser::parenthesized() {
  const Token opener = take();
  auto tuple = std::make_unique<ast::Expr>();
  Parsed first;
  int height = 0;
  if (at(TokenKind::right_paren)) {
    fail("an expression");
    return {};
  }
  const bool read = elements(opener, TokenKind::right_paren, [&] {
    Parsed element = expression();
    if (!element) return false;
    height = std::max(height, element.height);
    if (!first && tuple->args.empty()) {
      first = std::move(element);
    } else {
      if (first) tuple->args.push_back(std::move(first.expr));
      tuple->args.push_back(std::move(element.expr));
    }
    return true;
  });
  if (!read) return {};
  const Span where = span_since(opener.begin);
  if (first) {
    // A tuple already shows its parentheses.
    first.expr->parenthesized = first.expr->kind != ast::ExprKind::tuple;
    first.outer = where;
    return first;
  }
  tuple->kind = ast::ExprKind::tuple;
  tuple->span = where;
  tuple->text_span = span(opener);
  return finish({std::move(tuple), where, height + 1});
}

Parsed Parser::list() {
  const Token opener = take();
  auto expr = std::make_unique<ast::Expr>();
  expr->kind = ast::ExprKind::list;
  int height = 0;
  if (at(TokenKind::right_bracket)) {
    fail("an expression", "a vector has at least one element");
    return {};
  }
  const bool read = elements(opener, TokenKind::right_bracket, [&] {
    Parsed element = expression();
    if (!element) return false;
    height = std::max(height, element.height);
    expr->args.push_back(std::move(element.expr));
    return true;
  });
  if (!read) return {};
  expr->span = span_since(opener.begin);
  expr->text_span = span(opener);
  const Span where = expr->span;
  return finish({std::move(expr), where, height + 1});
}

// each client { ... }: statements inside an expression. What is open around it waits.
Parsed Parser::each_client() {
  const std::uint32_t begin = peek().begin;
  take();
  const Span words = span_since(begin);
  take();
  if (!at_block()) {
    fail("`{` after `each client`");
    return {};
  }
  auto body = std::make_shared<ast::Fn>();
  body->braces = true;
  body->open = span(peek());
  const std::vector<Token> open_brackets = brackets_;
  const int depth = depth_;
  const int base = std::exchange(depth_base_, depth_ + 1);
  const int tallest = std::exchange(tallest_, 1);
  ++client_depth_;
  body->close = block(Place::client, body->body, body.get());
  --client_depth_;
  const int height = 1 + tallest_;
  tallest_ = tallest;
  depth_base_ = base;
  depth_ = depth;
  brackets_ = open_brackets;
  auto expr = std::make_unique<ast::Expr>();
  expr->kind = ast::ExprKind::each_client;
  expr->span = span_since(begin);
  expr->text = "each client";
  expr->text_span = {words.file, begin, words.end + 7};
  expr->block = std::move(body);
  const Span where = expr->span;
  return finish({std::move(expr), where, height});
}

// Takes the closing bracket of the innermost open one.
bool Parser::close(TokenKind closer) {
  if (!accept(closer)) {
    fail(fmt::format("`,` or `{}`", spelling(closer)));
    return false;
  }
  brackets_.pop_back();
  return true;
}

}  // namespace starfold::syntax

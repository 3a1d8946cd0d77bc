// The parser's insides, shared by its source files only.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "starfold/syntax/ast.h"
#include "starfold/syntax/lexer.h"
#include "starfold/syntax/parser.h"

namespace starfold::syntax {

// How deeply repeat and fn may stand inside each other.
inline constexpr int max_block_depth = 64;

// From the loosest operator to the tightest.
enum Level : int { level_or, level_and, level_not, level_comparison, level_sum, level_product };

// An expression, or none after a mistake that was reported.
struct Parsed {
  ast::ExprPtr expr;
  Span outer;      // with enclosing parentheses
  int height = 0;  // of the tree

  explicit operator bool() const { return expr != nullptr; }
};

// Recursive descent. A function that cannot go on reports why through `fail` and returns nothing;
// its callers return at once, and the statement is skipped. So one mistake is said once.
class Parser {
 public:
  Parser(const SourceMap& sources, std::uint32_t file, Lexed lexed, Diagnostics& diagnostics);

  ast::File run();

 private:
  enum class Place { file, function, repeat, client };
  using Node = decltype(ast::Stmt::node);

  // Tokens (parser.cpp).
  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool at(TokenKind kind) const { return peek().kind == kind; }
  bool at_end() const {
    return at(TokenKind::newline) || at(TokenKind::end_of_file) || at(TokenKind::right_brace);
  }
  Token take();
  bool accept(TokenKind kind);
  bool expect(TokenKind kind, std::string_view after);
  void skip_newlines();
  void skip_braces();
  void skip_statement();
  void give_up(std::size_t first);
  void lose_names(std::size_t first);
  Span span(const Token& token) const { return {file_, token.begin, token.end}; }
  Span span_since(std::uint32_t begin) const { return {file_, begin, previous_end()}; }
  std::uint32_t previous_end() const { return at_ == 0 ? 0 : tokens_[at_ - 1].end; }
  std::string_view text(const Token& token) const;

  // Mistakes (parser_error.cpp). Those called fail end the statement at hand.
  void report(Diagnostic diagnostic);
  void fail(std::string_view expected, std::string help = {});
  void fail_unclosed(const Token& opener);
  void fail_statement();
  void fail_end();
  void fail_operand();
  void fail_depth();
  void report_chain(const Parsed& left, const Token& next);
  void report_brace_below();
  void report_misplaced(Place place);
  void report_stray(Span expression);
  void unfinished_block(const Token& open);
  void blocks_too_deep();
  bool starts_foreign_statement() const;
  std::string found() const;
  std::string general_help() const;
  std::string arrow_help() const;
  std::string assignment_help() const;

  // Statements (parser.cpp).
  bool at_word(std::string_view word) const { return at(TokenKind::name) && text(peek()) == word; }
  bool at_private() const { return at_word("private") && peek(1).kind == TokenKind::kw_state; }
  bool at_keep() const { return at_word("keep") && peek(1).kind == TokenKind::name; }
  bool at_each() const { return at_word("each") && text(peek(1)) == "client"; }
  void statement(Place place, ast::Block& out);
  std::optional<Node> node();
  std::optional<Node> import_node();
  std::optional<Node> size_node();
  std::optional<Node> input_node();
  std::optional<Node> fn_node();
  std::optional<Node> let_node();
  std::optional<Node> state_node();
  std::optional<Node> update_node();
  std::optional<Node> repeat_node();
  std::optional<Node> trace_node();
  std::optional<Node> demand_node();
  std::optional<Node> output_node();
  bool parameters(ast::Fn& fn);
  void repeat_count(ast::Repeat& node);
  bool batches(ast::Repeat& node);
  bool at_block();
  // The body of a repeat (`fn` is null), of a function or of each client; gives the place of its closing brace.
  Span block(Place place, ast::Block& body, ast::Fn* fn);
  void block_statements(Place place, const Token& open, ast::Block& body, ast::Fn* fn);
  void result_expression(const Token& open, ast::Fn& fn);
  bool forgot_brace(const Token& open) const;
  std::optional<ast::Name> name(std::string_view expected);
  ast::Name take_name();
  // After a mistake these give something marked invalid, so that the name they belong to stays.
  ast::ExprPtr value();
  ast::ExprPtr assigned(std::string_view what);
  ast::TypeExpr type();
  std::optional<ast::TypeExpr> optional_type();
  bool dimension(ast::TypeExpr& type);

  // Expressions (parser_expr.cpp).
  Parsed expression(int loosest = level_or);
  Parsed prefixed(int loosest);
  Parsed comparison_rest(Parsed left);
  Parsed unary();
  Parsed power();
  Parsed postfix();
  Parsed operand();
  Parsed name_or_call();
  Parsed call(Parsed callee, std::uint32_t begin);
  Parsed index_or_call(Parsed base);
  Parsed parenthesized();
  Parsed list();
  Parsed each_client();
  Parsed leaf(ast::ExprKind kind);
  Parsed invalid_leaf();
  Parsed binary(Parsed left, const Token& op, Parsed right);
  Parsed prefix(const Token& op, Parsed inner);
  Parsed finish(Parsed parsed);
  bool subscripts(ast::Expr& expr, int& height);
  bool subscript(ast::Expr& expr, int& height);
  std::optional<std::string> record_set();

  // Elements between an opening bracket, already taken, and its closing one.
  template <typename Element>
  bool elements(const Token& opener, TokenKind closer, Element element);
  bool close(TokenKind closer);

  const SourceMap& sources_;
  std::uint32_t file_;
  Diagnostics& diagnostics_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  bool failed_ = false;  // the statement at hand has a mistake that was reported
  bool reported_ = false;
  std::size_t unclosed_at_ = 0;  // where a missing brace was reported
  bool continued_ = false;       // the last line was reported as starting with an operator
  int depth_ = 0;
  int depth_base_ = 0;  // of the statement at hand: it may stand inside an expression
  int tallest_ = 0;     // the height of the highest expression read so far
  int block_depth_ = 0;
  int client_depth_ = 0;         // each client around the statement at hand
  std::vector<Token> brackets_;  // open ( and [ of the statement at hand
  ast::File out_;
};

template <typename Element>
bool Parser::elements(const Token& opener, TokenKind closer, Element element) {
  brackets_.push_back(opener);
  if (at(closer)) return close(closer);
  do {
    if (!element()) return false;
  } while (accept(TokenKind::comma));
  return close(closer);
}

// A piece of the text for messages: in backticks, short, on one line.
std::string quoted(std::string_view text);

}  // namespace starfold::syntax

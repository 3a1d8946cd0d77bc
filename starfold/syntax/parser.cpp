#include "starfold/syntax/parser.h"

#include <fmt/format.h>

#include "starfold/syntax/characters.h"
#include "starfold/syntax/parser_impl.h"

namespace starfold {

namespace syntax {

Parser::Parser(const SourceMap& sources, std::uint32_t file, Lexed lexed, Diagnostics& diagnostics)
    : sources_(sources), file_(file), diagnostics_(diagnostics), tokens_(std::move(lexed.tokens)) {
  out_.id = file;
  out_.comments = std::move(lexed.comments);
}

ast::File Parser::run() {
  skip_newlines();
  while (!at(TokenKind::end_of_file)) {
    statement(Place::file, out_.items);
    skip_newlines();
  }
  return std::move(out_);
}

namespace {

bool only_in_file(TokenKind kind) {
  return kind == TokenKind::kw_import || kind == TokenKind::kw_size ||
         kind == TokenKind::kw_input || kind == TokenKind::kw_output || kind == TokenKind::kw_fn;
}

}  // namespace

// Tokens.

std::string_view Parser::text(const Token& token) const { return sources_.text(span(token)); }

Token Parser::take() {
  const Token token = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::accept(TokenKind kind) {
  if (!at(kind)) return false;
  take();
  return true;
}

bool Parser::expect(TokenKind kind, std::string_view after) {
  if (accept(kind)) return true;
  fail(fmt::format("`{}` after {}", spelling(kind), after));
  return false;
}

void Parser::skip_newlines() {
  while (accept(TokenKind::newline)) {
  }
}

void Parser::skip_braces() {
  int depth = 0;
  do {
    if (at(TokenKind::left_brace)) ++depth;
    if (at(TokenKind::right_brace)) --depth;
    take();
  } while (depth > 0 && !at(TokenKind::end_of_file));
}

// To the end of a statement that could not be read, with the braces that belong to it.
void Parser::skip_statement() {
  while (!at_end()) {
    if (at(TokenKind::left_brace) && peek().closed) {
      skip_braces();
    } else {
      take();
    }
  }
}

// Skips the rest of a statement that began with token `first`.
void Parser::give_up(std::size_t first) {
  skip_statement();
  lose_names(first);
}

void Parser::lose_names(std::size_t first) {
  for (std::size_t i = first; i < at_; ++i) {
    if (tokens_[i].kind == TokenKind::name) out_.lost.emplace(text(tokens_[i]));
  }
}

// Statements.

void Parser::statement(Place place, ast::Block& out) {
  failed_ = false;
  depth_ = depth_base_;
  brackets_.clear();
  const std::size_t first = at_;
  const std::uint32_t begin = peek().begin;
  const bool misplaced = place != Place::file && (only_in_file(peek().kind) || at_keep());
  if (misplaced) report_misplaced(place);
  std::optional<Node> read = node();
  if (!failed_ && !at_end()) fail_end();
  if (read && !misplaced) out.push_back({span_since(begin), std::move(*read)});
  if (failed_) {
    give_up(first);
  } else if (misplaced) {
    lose_names(first);
  }
  if (place == Place::file && at(TokenKind::right_brace)) {
    if (!failed_) fail_statement();
    take();
  }
}

std::optional<Parser::Node> Parser::node() {
  switch (peek().kind) {
    case TokenKind::kw_import:
      return import_node();
    case TokenKind::kw_size:
      return size_node();
    case TokenKind::kw_input:
      return input_node();
    case TokenKind::kw_fn:
      return fn_node();
    case TokenKind::kw_let:
      return let_node();
    case TokenKind::kw_state:
      return state_node();
    case TokenKind::kw_repeat:
      return repeat_node();
    case TokenKind::kw_trace:
      return trace_node();
    case TokenKind::kw_require:
    case TokenKind::kw_expect:
      return demand_node();
    case TokenKind::kw_output:
      return output_node();
    default:
      break;
  }
  if (at_private()) return state_node();
  if (at_keep()) return output_node();
  if (at(TokenKind::name) && peek(1).kind == TokenKind::left_arrow) return update_node();
  fail_statement();
  return std::nullopt;
}

std::optional<Parser::Node> Parser::import_node() {
  take();
  auto module = name("the name of a module after `import`");
  if (!module) return std::nullopt;
  if (!at_end()) {
    fail("the end of the line",
         at(TokenKind::comma) ? "write one `import` line for each module" : "");
  }
  return ast::Import{std::move(*module)};
}

std::optional<Parser::Node> Parser::size_node() {
  take();
  auto declared = name("a name after `size`");
  if (!declared) return std::nullopt;
  ast::SizeDecl node{std::move(*declared), nullptr};
  if (!accept(TokenKind::equal)) fail("`=` and a number after the name of the size");
  if (!failed_ && at(TokenKind::number) && peek().integer) {
    node.value = leaf(ast::ExprKind::number).expr;
  } else {
    fail("a positive whole number");
  }
  if (!node.value) node.value = invalid_leaf().expr;
  return node;
}

std::optional<Parser::Node> Parser::input_node() {
  take();
  auto declared = name("a name after `input`");
  if (!declared) return std::nullopt;
  ast::Input node{std::move(*declared), {}, nullptr};
  if (!accept(TokenKind::colon)) {
    fail("`:` and a type after the name of the input",
         fmt::format("write the type, for example: input {} : [*]", node.name.text));
  }
  node.type = type();
  if (!failed_ && accept(TokenKind::equal)) node.fallback = value();
  return node;
}

std::optional<Parser::Node> Parser::fn_node() {
  take();
  auto declared = name("a name after `fn`");
  if (!declared) return std::nullopt;
  ast::Fn node;
  node.name = std::move(*declared);
  if (!parameters(node)) return std::nullopt;
  if (accept(TokenKind::right_arrow)) {
    node.result = type();
    if (failed_) return std::nullopt;
  }
  if (accept(TokenKind::equal)) {
    const std::uint32_t begin = peek().begin;
    node.value = value();
    node.value_span = span_since(begin);
  } else if (at_block()) {
    node.braces = true;
    node.open = span(peek());
    node.close = block(Place::function, node.body, &node);
  } else {
    fail(node.result ? "`=` or `{` after the type of the result"
                     : "`->`, `=` or `{` after the parameters");
    return std::nullopt;
  }
  return node;
}

bool Parser::parameters(ast::Fn& fn) {
  const Token opener = peek();
  if (!expect(TokenKind::left_paren, "the name of the function")) return false;
  return elements(opener, TokenKind::right_paren, [&] {
    auto parameter = name("the name of a parameter");
    if (!parameter) return false;
    if (!accept(TokenKind::colon)) {
      fail("`:` and a type after the name of the parameter",
           fmt::format("write the type, for example: {} : [p]", parameter->text));
      return false;
    }
    if (at(TokenKind::kw_fn)) {
      ast::TypeExpr called;
      called.span = span(take());
      called.function = true;
      fn.params.push_back({std::move(*parameter), std::move(called)});
      return true;
    }
    fn.params.push_back({std::move(*parameter), type()});
    return !failed_;
  });
}

std::optional<Parser::Node> Parser::let_node() {
  take();
  ast::Let node;
  if (at(TokenKind::left_paren)) {
    node.tuple = true;
    const Token opener = take();
    const bool read = elements(opener, TokenKind::right_paren, [&] {
      auto next = name("a name");
      if (next) node.names.push_back(std::move(*next));
      return next.has_value();
    });
    if (node.names.empty() && read) fail("a name between the parentheses");
    if (node.names.empty()) return std::nullopt;
  } else {
    auto declared = name("a name after `let`");
    if (!declared) return std::nullopt;
    node.names.push_back(std::move(*declared));
    node.type = optional_type();
  }
  node.value = assigned("value after the name");
  return node;
}

std::optional<Parser::Node> Parser::state_node() {
  const bool at_client = at_private();
  if (at_client) take();
  take();
  auto declared = name("a name after `state`");
  if (!declared) return std::nullopt;
  ast::State node{std::move(*declared), optional_type(), nullptr, at_client};
  node.value = assigned("first value after the state");
  return node;
}

std::optional<Parser::Node> Parser::update_node() {
  ast::Update node{take_name(), nullptr};
  take();
  node.value = value();
  return node;
}

std::optional<Parser::Node> Parser::trace_node() {
  take();
  auto declared = name("a name after `trace`");
  if (!declared) return std::nullopt;
  ast::Trace node{std::move(*declared), nullptr};
  node.value = assigned("value after the name of the trace");
  return node;
}

std::optional<Parser::Node> Parser::demand_node() {
  ast::Demand node;
  node.must = take().kind == TokenKind::kw_require;
  node.value = value();
  if (failed_) return node;
  if (!accept(TokenKind::comma)) {
    fail("`,` and a sentence in quotes after the condition");
  } else if (!at(TokenKind::text)) {
    fail("a sentence in quotes", "say what it means when the condition does not hold");
  } else {
    const std::string_view quoted = text(take());
    node.sentence = quoted.substr(1, quoted.size() - 2);
  }
  return node;
}

std::optional<Parser::Node> Parser::output_node() {
  const bool kept = at_keep();
  const std::string word(text(take()));
  auto declared = name(fmt::format("a name after `{}`", word));
  if (!declared) return std::nullopt;
  ast::Output node{std::move(*declared), nullptr, kept};
  if (accept(TokenKind::equal)) {
    node.value = value();
  } else if (!at_end()) {
    fail("`=` or the end of the line",
         at(TokenKind::comma) ? fmt::format("write one `{}` line for each result", word)
                              : fmt::format("give the result a name: {} name = ...", word));
  }
  return node;
}

std::optional<Parser::Node> Parser::repeat_node() {
  take();
  ast::Repeat node;
  repeat_count(node);
  if (!at_block()) {
    if (!failed_) fail("`{` after the number of repetitions");
    return std::nullopt;
  }
  node.open = span(peek());
  node.close = block(Place::repeat, node.body, nullptr);
  const std::size_t after = at_;
  skip_newlines();
  if (accept(TokenKind::kw_until)) {
    node.until = value();
  } else {
    at_ = after;
  }
  return node;
}

// batches(k, seed), of which the word is the token at hand.
bool Parser::batches(ast::Repeat& node) {
  take();
  std::vector<ast::ExprPtr> args;
  const Token opener = take();
  const bool read = elements(opener, TokenKind::right_paren, [&] {
    Parsed argument = expression();
    if (argument) args.push_back(std::move(argument.expr));
    return failed_ == false;
  });
  if (read && args.size() != 2)
    fail("two values in `batches(k, seed)`",
         "write how many records a batch has and the seed of their order: repeat batches(32, 1) { "
         "... }");
  const bool good = !failed_ && args.size() == 2;
  node.count = good ? std::move(args[0]) : invalid_leaf().expr;
  node.seed = good ? std::move(args[1]) : invalid_leaf().expr;
  return good;
}

void Parser::repeat_count(ast::Repeat& node) {
  constexpr double most = 9007199254740992.0;  // from here on doubles skip integers
  if (at(TokenKind::number) && peek().integer && peek().value > most) {
    report({Code::InvalidNumber,
            fmt::format("{} repetitions are too many", quoted(text(peek()))),
            {span(peek()), "at most 9007199254740992"},
            {},
            {},
            "the number is a limit; what ends a loop earlier is `until`"});
  }
  if (at_word("batches") && peek(1).kind == TokenKind::left_paren) {
    if (batches(node)) return;
    while (!at_end() && !at(TokenKind::left_brace)) take();
    return;
  }
  if (at(TokenKind::name) || (at(TokenKind::number) && peek().integer)) {
    node.count = leaf(at(TokenKind::name) ? ast::ExprKind::name : ast::ExprKind::number).expr;
    return;
  }
  node.count = invalid_leaf().expr;
  fail("a whole number or a name after `repeat`",
       at(TokenKind::left_brace) || at(TokenKind::kw_until)
           ? "write the largest number of repetitions, and `until` after the closing brace"
           : "");
  // The body can still be read.
  while (!at_end() && !at(TokenKind::left_brace)) take();
}

// Blocks.

// Whether a block begins here. One that begins on the next line is a mistake, but is read.
bool Parser::at_block() {
  if (at(TokenKind::newline) && peek(1).kind == TokenKind::left_brace) {
    take();
    if (!failed_) report_brace_below();
  }
  return at(TokenKind::left_brace);
}

Span Parser::block(Place place, ast::Block& body, ast::Fn* fn) {
  const bool header_failed = failed_;
  const Token open = peek();
  if (block_depth_ < max_block_depth) {
    take();
    ++block_depth_;
    block_statements(place, open, body, fn);
    --block_depth_;
    // Without a brace the block ends where the next statement's line begins.
    if (!accept(TokenKind::right_brace) && tokens_[at_ - 1].kind == TokenKind::newline) --at_;
  } else {
    blocks_too_deep();
    skip_braces();
    if (at(TokenKind::end_of_file)) unclosed_at_ = at_;
  }
  if (fn && !fn->value) fn->value = invalid_leaf().expr;
  failed_ = header_failed;
  return span(tokens_[at_ - 1]);
}

void Parser::block_statements(Place place, const Token& open, ast::Block& body, ast::Fn* fn) {
  failed_ = false;
  for (;;) {
    skip_newlines();
    if (at(TokenKind::end_of_file) || forgot_brace(open)) return unfinished_block(open);
    if (at(TokenKind::right_brace)) break;
    const bool update = at(TokenKind::name) && peek(1).kind == TokenKind::left_arrow;
    if (!fn || update || starts_statement(peek().kind) || at(TokenKind::kw_until) || at_private() ||
        at_keep()) {
      statement(place, body);
    } else {
      result_expression(open, *fn);
    }
  }
  if (fn && !fn->value && !failed_) {
    fail("an expression before `}`", place == Place::client
                                         ? "the last line of `each client` is its result"
                                         : "the last line of a function is its result");
  }
}

// An expression on a line of its own inside a function: the result, if it is the last.
void Parser::result_expression(const Token& open, ast::Fn& fn) {
  failed_ = false;
  depth_ = depth_base_;
  brackets_.clear();
  const std::size_t first = at_;
  if (!at_each() && starts_foreign_statement()) {
    fail_statement();
    return give_up(first);
  }
  Parsed parsed = expression();
  if (!parsed) {
    fn.value = invalid_leaf().expr;
    return give_up(first);
  }
  fn.value_span = parsed.outer;
  fn.value = std::move(parsed.expr);
  if (!at_end()) {
    fail_end();
    return give_up(first);
  }
  skip_newlines();
  const bool last = at(TokenKind::right_brace) || at(TokenKind::end_of_file) || forgot_brace(open);
  if (!last) report_stray(fn.value_span);
}

// Whether a statement that only a file contains stands at the margin while a brace is missing.
bool Parser::forgot_brace(const Token& open) const {
  const std::uint32_t begin = peek().begin;
  return !open.closed && only_in_file(peek().kind) && begin > 0 &&
         sources_[file_].text()[begin - 1] == '\n';
}

// Parts of statements.

ast::Name Parser::take_name() {
  const Token token = take();
  return {std::string(text(token)), span(token)};
}

std::optional<ast::Name> Parser::name(std::string_view expected) {
  if (at(TokenKind::name)) return take_name();
  std::string help;
  if (is_keyword(peek().kind)) {
    help = fmt::format("{} is a keyword; choose another name", quoted(text(peek())));
  } else if (at(TokenKind::number) && is_letter(text(peek())[0])) {
    help = fmt::format("{} is a number; choose another name", quoted(text(peek())));
  }
  fail(expected, help);
  return std::nullopt;
}

ast::ExprPtr Parser::value() {
  Parsed parsed = failed_ ? Parsed{} : expression();
  if (!parsed) return invalid_leaf().expr;
  return std::move(parsed.expr);
}

ast::ExprPtr Parser::assigned(std::string_view what) {
  if (!failed_ && !accept(TokenKind::equal)) {
    const bool other = at(TokenKind::equal_equal) || at(TokenKind::left_arrow);
    fail(fmt::format("`=` and a {}", what),
         other ? fmt::format("a definition is written with `=`; `{}` {}", spelling(peek().kind),
                             at(TokenKind::equal_equal) ? "compares" : "updates a state")
               : "");
  }
  return value();
}

std::optional<ast::TypeExpr> Parser::optional_type() {
  if (!accept(TokenKind::colon)) return std::nullopt;
  return type();
}

ast::TypeExpr Parser::type() {
  ast::TypeExpr out;
  const Token opener = peek();
  if (!failed_ && !accept(TokenKind::left_bracket)) {
    fail("a type", at(TokenKind::equal)
                       ? "a definition is written with `=`, as in let x = 1"
                       : "a type lists its axes: [] is a number, [p] a vector, [*, p] one row per "
                         "record");
  }
  if (!failed_ && elements(opener, TokenKind::right_bracket, [&] { return dimension(out); })) {
    out.span = span_since(opener.begin);
    return out;
  }
  // One axis of an invalid size: a type nothing is known about.
  out.dims.clear();
  out.span = span(opener);
  ast::Dim dim;
  dim.size = invalid_leaf().expr;
  dim.span = dim.size->span;
  out.dims.push_back(std::move(dim));
  return out;
}

bool Parser::dimension(ast::TypeExpr& type) {
  ast::Dim dim;
  const std::uint32_t begin = peek().begin;
  if (auto set = record_set()) {
    dim.star = true;
    dim.record_set = std::move(*set);
  } else {
    if (at(TokenKind::right_bracket) || at(TokenKind::comma)) {
      fail("a size or `*`");
      return false;
    }
    Parsed size = expression(level_sum);
    if (!size) return false;
    dim.size = std::move(size.expr);
  }
  dim.span = span_since(begin);
  type.dims.push_back(std::move(dim));
  return true;
}

}  // namespace syntax

ast::File parse(const SourceMap& sources, std::uint32_t file, Diagnostics& diagnostics) {
  const std::size_t errors_before = diagnostics.error_count();
  Lexed lexed = lex(sources, file, diagnostics);
  ast::File parsed = syntax::Parser(sources, file, std::move(lexed), diagnostics).run();
  parsed.damaged = diagnostics.error_count() != errors_before;
  diagnostics.sort();  // the lexer's come first otherwise
  return parsed;
}

}  // namespace starfold

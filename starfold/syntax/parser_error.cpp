// What the parser says when the text is not a program.
#include <fmt/format.h>

#include <array>

#include "starfold/syntax/parser_impl.h"

namespace starfold::syntax {

namespace {

struct Foreign {
  std::string_view word;
  std::string_view help;
};

// Words that begin statements in other languages.
constexpr std::array foreign = {
    Foreign{"def", "define a function with fn: fn name(x : [p]) = x + 1"},
    Foreign{"func", "define a function with fn: fn name(x : [p]) = x + 1"},
    Foreign{"function", "define a function with fn: fn name(x : [p]) = x + 1"},
    Foreign{"for", "a loop is written: repeat 10 { ... } until condition"},
    Foreign{"while", "a loop is written: repeat 10 { ... } until condition"},
    Foreign{"if", "choose between values with where(condition, a, b)"},
    Foreign{"else", "choose between values with where(condition, a, b)"},
    Foreign{"return", "the last line of a function is its result, without a keyword"},
    Foreign{"var", "define a value with let, and one that changes in a loop with state"},
    Foreign{"const", "define a value with let"},
    Foreign{"print", "show a result with output"},
    Foreign{"from", "write import and the name of the module"},
    Foreign{"use", "write import and the name of the module"},
    Foreign{"each", "a value per client is written: let v = each client { ... }"},
    Foreign{"private",
            "a state that stays at the clients is written: private state c : [*client] = 0"},
    Foreign{"keep", "a result that stays at the clients is written: keep name = ..."},
};

std::string_view foreign_help(std::string_view word) {
  for (const Foreign& row : foreign) {
    if (row.word == word) return row.help;
  }
  return {};
}

bool is_value(TokenKind kind) { return kind == TokenKind::name || kind == TokenKind::number; }

bool ends_value(TokenKind kind) {
  return is_value(kind) || kind == TokenKind::right_paren || kind == TokenKind::right_bracket ||
         kind == TokenKind::quote || kind == TokenKind::invalid;
}

bool continues_line(TokenKind kind) {
  return (kind >= TokenKind::plus && kind <= TokenKind::greater_equal) ||
         kind == TokenKind::kw_and || kind == TokenKind::kw_or || kind == TokenKind::equal ||
         kind == TokenKind::right_arrow || kind == TokenKind::comma;
}

std::string_view advice_for_misplaced(TokenKind kind) {
  switch (kind) {
    case TokenKind::kw_output:
      return "write the output after the closing brace";
    case TokenKind::kw_input:
      return "declare inputs at the beginning of the program";
    case TokenKind::kw_size:
      return "declare sizes at the beginning of the program";
    case TokenKind::kw_import:
      return "write imports at the beginning of the program";
    default:
      return "define the function outside, and call it here";
  }
}

}  // namespace

std::string quoted(std::string_view text) {
  constexpr std::size_t most = 40;
  text = text.substr(0, text.find('\n'));
  if (text.size() <= most) return fmt::format("`{}`", text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return fmt::format("`{}…`", text.substr(0, end));
}

void Parser::report(Diagnostic diagnostic) {
  if (!reported_ || !diagnostics_.full()) diagnostics_.report(std::move(diagnostic));
  reported_ = true;
  // Nothing further would be shown.
  if (diagnostics_.full()) at_ = tokens_.size() - 1;
}

// The general mistake: something else was expected at the token at hand.
void Parser::fail(std::string_view expected, std::string help) {
  if (failed_) return;
  failed_ = true;
  const Token& token = peek();
  if (token.kind == TokenKind::invalid || token.reported) return;  // the lexer has said why
  if (at_end() && !brackets_.empty()) return fail_unclosed(brackets_.back());
  if (help.empty()) help = general_help();
  report({Code::UnexpectedToken,
          fmt::format("expected {}, found {}", expected, found()),
          {span(token), fmt::format("expected {}", expected)},
          {},
          {},
          std::move(help)});
}

void Parser::fail_unclosed(const Token& opener) {
  failed_ = true;
  const bool paren = opener.kind == TokenKind::left_paren;
  const std::string_view closer = paren ? ")" : "]";
  const auto line = sources_[file_].position(previous_end()).line;
  report({Code::Unclosed,
          fmt::format("this `{}` is never closed", spelling(opener.kind)),
          {span(opener), fmt::format("the matching `{}` is missing", closer)},
          {},
          {},
          at(TokenKind::right_brace)
              ? fmt::format("add `{}` before `}}`", closer)
              : fmt::format("add `{}` at the end of line {}", closer, line)});
}

std::string Parser::found() const {
  switch (peek().kind) {
    case TokenKind::newline:
      return "the end of the line";
    case TokenKind::end_of_file:
      return "the end of the file";
    default:
      break;
  }
  const std::string word = quoted(text(peek()));
  return is_keyword(peek().kind) ? "the keyword " + word : word;
}

// Advice that depends only on what was found, and on the tokens before it.
std::string Parser::general_help() const {
  const TokenKind kind = peek().kind;
  const Token before = at_ == 0 ? Token{} : tokens_[at_ - 1];
  const bool doubled = before.kind == kind && before.end == peek().begin;
  const bool in_call = !brackets_.empty() && brackets_.back().kind == TokenKind::left_paren;
  switch (kind) {
    case TokenKind::left_arrow:
      return arrow_help();
    case TokenKind::equal:
      return in_call && before.kind == TokenKind::name
                 ? "arguments are given in their order, without names"
             : ends_value(before.kind) ? "to test whether two values are equal, write `==`"
                                       : "";
    case TokenKind::star:
      return doubled && at_ > 1 && ends_value(tokens_[at_ - 2].kind) ? "a power is written with `^`"
                                                                     : "";
    case TokenKind::slash:
      return doubled ? "a comment starts with `#`" : "";
    case TokenKind::colon:
      return in_call || brackets_.empty()
                 ? "numbers in a row are linspace(1, 10, 10); `:` selects a range inside brackets"
                 : "a range has two ends, as in x[:, 2:4]";
    default:
      return "";
  }
}

// `a <-b` reads as an update; a comparison with a negative value was meant.
std::string Parser::arrow_help() const {
  const Token before = at_ == 0 ? Token{} : tokens_[at_ - 1];
  const Token after = peek(1);
  if (is_value(before.kind) && is_value(after.kind)) {
    return fmt::format("`<-` updates a state; to compare with a negative value, write {} < -{}",
                       text(before), text(after));
  }
  return "`<-` updates a state; to compare with a negative value, write `< -` with a space";
}

// Something that is no statement at the beginning of a line.
void Parser::fail_statement() {
  const TokenKind kind = peek().kind;
  const bool again = continued_;
  continued_ = false;
  if (kind == TokenKind::kw_until) {
    failed_ = true;
    return report({Code::Misplaced,
                   "`until` without a repeat before it",
                   {span(peek()), "follows the closing brace of a repeat"},
                   {},
                   {},
                   "write: repeat 10 { ... } until condition"});
  }
  if (at_ > 0 && continues_line(kind)) {
    continued_ = true;
    // The lines that follow continue the same statement.
    if (again) failed_ = true;
    return fail("a statement",
                fmt::format("to continue the line before, put `{}` at its end", spelling(kind)));
  }
  if (kind == TokenKind::right_brace) return fail("a statement", "this brace closes nothing");
  if (kind != TokenKind::name) return fail("a statement");
  std::string help(foreign_help(text(peek())));
  if (help.empty()) help = assignment_help();
  if (help.empty()) help = "give the value a name with let, or show it with output";
  fail("a statement", help);
}

// `x = 1`, `x := 1`, `x += 1`, `1 -> x`: what other languages assign with.
std::string Parser::assignment_help() const {
  const TokenKind sign = peek(1).kind;
  const std::string_view name = text(peek());
  if (sign == TokenKind::equal || (sign == TokenKind::colon && peek(2).kind == TokenKind::equal)) {
    return fmt::format(
        "to define a value, write let {0} = ...; to update a state, write {0} <- ...", name);
  }
  const bool in_place = sign == TokenKind::plus || sign == TokenKind::minus ||
                        sign == TokenKind::star || sign == TokenKind::slash;
  if (in_place && peek(2).kind == TokenKind::equal) {
    return fmt::format("to update a state, write {0} <- {0} {1} ...", name, spelling(sign));
  }
  for (std::size_t i = 0; peek(i).kind != TokenKind::newline; ++i) {
    if (peek(i).kind == TokenKind::end_of_file) break;
    if (peek(i).kind == TokenKind::right_arrow && peek(i + 1).kind == TokenKind::name)
      return fmt::format("to define a value, write let {} = ...", text(peek(i + 1)));
  }
  return {};
}

// Words like `return` before a value: no expression looks like this.
bool Parser::starts_foreign_statement() const {
  if (at(TokenKind::name)) {
    const TokenKind next = peek(1).kind;
    return next == TokenKind::equal || (is_value(next) && !foreign_help(text(peek())).empty());
  }
  return continues_line(peek().kind) && !at(TokenKind::minus);
}

// Something after a complete statement.
void Parser::fail_end() {
  const Token& token = peek();
  const Token before = tokens_[at_ - 1];
  const bool after_value = ends_value(before.kind);
  const std::string_view expected =
      after_value ? "an operator or the end of the line" : "the end of the line";
  if (starts_statement(token.kind)) {
    return fail("the end of the line", "write each statement on its own line");
  }
  if (const auto help = foreign_help(text(before)); !help.empty()) {
    return fail(expected, std::string(help));
  }
  if (token.kind == TokenKind::comma) {
    return fail(expected, "a vector is written in brackets, as in [1, 2]");
  }
  if (after_value && (is_value(token.kind) || token.kind == TokenKind::left_paren)) {
    return fail(expected, "two values need an operator between them, for example `*`");
  }
  if (token.kind == TokenKind::right_paren || token.kind == TokenKind::right_bracket) {
    return fail(expected, "there is no bracket open that it could close");
  }
  fail(expected);
}

// Something that cannot begin a value.
void Parser::fail_operand() {
  switch (peek().kind) {
    case TokenKind::kw_not:
      return fail("an expression", "put parentheses around it: (not x)");
    case TokenKind::kw_new:
      return fail("an expression", "`new` adds an axis inside brackets, as in x[:, new]");
    case TokenKind::kw_trace:
      return fail("an expression", "the trace of a matrix is trace_of(x)");
    case TokenKind::plus:
      return fail("an expression", "a positive number is written without a sign");
    case TokenKind::colon:
      return fail("an expression", "`:` selects a range only inside brackets, as in x[:, 2:4]");
    case TokenKind::quote:
      return fail("an expression", "`'` after a value transposes it; there are no text values");
    default:
      return fail("an expression");
  }
}

void Parser::fail_depth() {
  if (failed_) return;
  failed_ = true;
  report({Code::TooDeep,
          fmt::format("the expression is nested too deeply: more than {} levels",
                      max_expression_depth),
          {span(peek()), "too deep from here on"},
          {},
          {},
          "name parts of the expression with let"});
}

void Parser::blocks_too_deep() {
  report({Code::TooDeep,
          fmt::format("blocks are nested too deeply: more than {} levels", max_block_depth),
          {span(peek()), "too deep from here on"},
          {},
          {},
          "move inner loops into functions"});
}

// `left` is the first comparison, `next` the operator of the second.
void Parser::report_chain(const Parsed& left, const Token& next) {
  const auto& middle = *left.expr->args[1];
  const std::string_view a = sources_.text(left.outer);
  const std::string_view b = sources_.text(middle.span);
  std::string help = "join the comparisons with `and`";
  const bool brief = a.size() + b.size() <= 60 && a.find_first_of("#\n") == a.npos;
  if (brief && !middle.parenthesized) {
    help = fmt::format("join them with `and`: {} and {} {} ...", a, b, text(next));
  }
  report({Code::ComparisonChain,
          "comparisons do not chain",
          {span(next), "a second comparison"},
          {{left.expr->text_span, "the first one gives 0 or 1 for each element"}},
          {},
          std::move(help)});
}

void Parser::report_brace_below() {
  report({Code::UnexpectedToken,
          "expected `{` on the line before",
          {span(peek()), "a newline before this ends the statement"},
          {},
          {},
          "put `{` at the end of the line before"});
}

void Parser::report_misplaced(Place place) {
  if (client_depth_ > 0) {
    return report({Code::InsideClient,
                   fmt::format("{} cannot stand inside `each client`", quoted(text(peek()))),
                   {span(peek()), "only at the top level of a program"},
                   {},
                   "a block is a part of what each client computes on its own",
                   at(TokenKind::kw_output) || at_keep()
                       ? "make it a result of the block, and write this after it"
                       : std::string(advice_for_misplaced(peek().kind))});
  }
  const std::string_view where = place == Place::repeat ? "repeat" : "a function";
  report({Code::Misplaced,
          fmt::format("{} cannot stand inside {}", quoted(text(peek())), where),
          {span(peek()), "only at the top level of a program"},
          {},
          {},
          at_keep() ? "write it after the closing brace"
                    : std::string(advice_for_misplaced(peek().kind))});
}

// An expression inside a function that is not its last line.
void Parser::report_stray(Span expression) {
  const std::string_view what = client_depth_ > 0 ? "`each client`" : "the function";
  if (continues_line(peek().kind) && !at(TokenKind::minus)) return;  // reported at the operator
  failed_ = true;
  report({Code::UnexpectedToken,
          fmt::format("expected `}}` after the result of {}, found {}", what, found()),
          {span(peek()), "expected `}` here"},
          {{expression, fmt::format("the result of {}", what)}},
          {},
          at(TokenKind::minus) ? "to continue the line before, put `-` at its end"
                               : "give the value a name with let, or move it to the last line"});
}

// The end of the file, or of what can be inside, before the closing brace.
void Parser::unfinished_block(const Token& open) {
  failed_ = true;
  if (unclosed_at_ == at_) return;
  unclosed_at_ = at_;
  report({Code::Unclosed,
          "this `{` is never closed",
          {span(open), "the matching `}` is missing"},
          {},
          {},
          fmt::format("add `}}` before {}", found())});
}

}  // namespace starfold::syntax

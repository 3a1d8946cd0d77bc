// From words to a tree, by the precedence of R.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "starfold/base/utf8.h"
#include "starfold/formula/formula.h"
#include "starfold/formula/lexer.h"

namespace starfold::formula {
namespace {

// Operators between two operands, from those that bind least. Unary signs stand between `:` and `^`, `!` above `&`.
constexpr std::string_view levels[][6] = {
    {"|", "||"},           {"&", "&&"}, {"==", "!=", "<", "<=", ">", ">="}, {"+", "-"}, {"*", "/"},
    {"%in%", "%%", "%/%"}, {":"}};
constexpr std::size_t not_level = 2;  // `!` takes comparisons and all that binds more

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), tokens_(tokens_of(text)) {
    if (tokens_.size() > most_words)
      throw FormulaError("", 0, 0, fmt::format("it has more than {} words", most_words));
  }

  Formula formula() {
    Formula result;
    result.text = text_;
    if (!is("~")) result.response = expression();
    if (!is("~"))
      fail(is("=") ? "a formula has `~` between its sides, not `=`"
                   : "a formula has a response, `~`, and what explains it: y ~ age + sex");
    take();
    if (is_end()) fail("nothing stands behind `~`");
    result.right = expression();
    if (is("~")) fail("a formula has one `~`");
    if (!is_end()) fail("this does not belong here");
    split_group(result);
    return result;
  }

 private:
  // `| ward` at the end says which group a record belongs to. Inside I() it is the sign for or.
  static void split_group(Formula& formula) {
    if (!formula.right.is_call("|")) return;
    Expr both = std::move(formula.right);
    formula.right = std::move(both.args[0]);
    formula.group = std::move(both.args[1]);
    if (formula.right.is_call("|"))
      throw FormulaError(formula, formula.right, "a formula has one `|` with a group behind it");
  }

  const Token& peek() const { return tokens_[at_]; }
  Token take() { return tokens_[at_++]; }
  bool is(std::string_view sign) const {
    return peek().kind == Token::Kind::sign && peek().text == sign;
  }
  bool is_end() const { return peek().kind == Token::Kind::end; }
  [[noreturn]] void fail(const std::string& what) const {
    throw FormulaError(text_, peek().begin, peek().end, what);
  }

  Expr expression() { return binary(0); }

  Expr binary(std::size_t level) {
    if (level == not_level && is("!")) return unary("!", not_level);
    if (level == std::size(levels)) return prefix();
    Expr left = binary(level + 1);
    while (peek().kind == Token::Kind::sign && is_operator(level, peek().text)) {
      const Token sign = take();
      if (sign.text == "&&" || sign.text == "||")
        throw FormulaError(text_, sign.begin, sign.end,
                           fmt::format("write {} for records", sign.text.substr(1)));
      Expr right = binary(level + 1);
      left = call(sign.text, left.begin, right.end, {std::move(left), std::move(right)});
    }
    return left;
  }

  static bool is_operator(std::size_t level, std::string_view sign) {
    return std::find(std::begin(levels[level]), std::end(levels[level]), sign) !=
           std::end(levels[level]);
  }

  Expr prefix() {
    if (is("-") || is("+")) return unary(peek().text, std::size(levels));
    return power();
  }

  Expr unary(const std::string& sign, std::size_t level) {
    const Depth depth(*this);
    const Token token = take();
    Expr operand = binary(level);
    return call(sign, token.begin, operand.end, {std::move(operand)});
  }

  Expr power() {
    const Depth depth(*this);
    Expr base = primary();
    if (!is("^")) return base;
    take();
    Expr exponent = is("-") || is("+") ? prefix() : power();  // to the right first
    return call("^", base.begin, exponent.end, {std::move(base), std::move(exponent)});
  }

  Expr primary() {
    const Token token = take();
    Expr expr;
    expr.begin = token.begin;
    expr.end = token.end;
    expr.text = token.text;
    switch (token.kind) {
      case Token::Kind::number:
        expr.value = token.value;
        return expr;
      case Token::Kind::text:
        expr.kind = Expr::Kind::text;
        return expr;
      case Token::Kind::name:
        expr.kind = Expr::Kind::name;
        if (!is("(")) return expr;
        if (!is_plain_name(expr.text)) fail("only a function can stand before (");
        return arguments(std::move(expr));
      default:
        break;
    }
    --at_;
    if (!is("("))
      fail(is_end() ? "something is missing at the end" : "a name, a number or ( must stand here");
    take();
    Expr inner = expression();
    if (!is(")")) fail(is_end() ? "a parenthesis is not closed" : "a ) must stand here");
    return call("(", token.begin, take().end, {std::move(inner)});
  }

  Expr arguments(Expr function) {
    take();
    Expr result = call(function.text, function.begin, 0, {});
    while (!is(")")) {
      if (!result.args.empty()) {
        if (!is(",")) fail(is_end() ? "a parenthesis is not closed" : "a , or ) must stand here");
        take();
      }
      result.args.push_back(argument());
    }
    result.end = take().end;
    return result;
  }

  Expr argument() {
    const bool named = peek().kind == Token::Kind::name &&
                       tokens_[at_ + 1].kind == Token::Kind::sign && tokens_[at_ + 1].text == "=";
    if (!named) return expression();
    const Token name = take();
    take();
    Expr value = expression();
    Expr result = call(name.text, name.begin, value.end, {std::move(value)});
    result.kind = Expr::Kind::named;
    return result;
  }

  static Expr call(std::string function, std::size_t begin, std::size_t end,
                   std::vector<Expr> args) {
    Expr result;
    result.kind = Expr::Kind::call;
    result.text = std::move(function);
    result.args = std::move(args);
    result.begin = begin;
    result.end = end;
    return result;
  }

  // Every way down passes here.
  struct Depth {
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > deepest_formula) parser_.fail("the formula nests too deep");
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    Parser& parser_;
  };

  std::string_view text_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
};

// The formula on a line of its own, and marks below it.
std::string marked(std::string_view text, std::size_t begin, std::size_t end) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  constexpr std::size_t widest = 200;
  if (line.size() > widest) return "";
  const auto width = [&](std::size_t from, std::size_t to) {
    return static_cast<std::size_t>(
        std::count_if(line.begin() + static_cast<std::ptrdiff_t>(std::min(from, line.size())),
                      line.begin() + static_cast<std::ptrdiff_t>(std::min(to, line.size())),
                      [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
  };
  return fmt::format("\n  {}\n  {}{}", line, std::string(width(0, begin), ' '),
                     std::string(std::max<std::size_t>(1, width(begin, end)), '^'));
}

}  // namespace

FormulaError::FormulaError(std::string_view text, std::size_t begin, std::size_t end,
                           const std::string& what)
    : UsageError(fmt::format("formula: {}{}", what, marked(text, begin, end))) {}

FormulaError::FormulaError(const Formula& formula, const Expr& at, const std::string& what)
    : FormulaError(formula.text, at.begin, at.end, what) {}

Formula parse_formula(std::string_view text) {
  if (text.size() > longest_formula)
    throw FormulaError("", 0, 0, fmt::format("it is longer than {} characters", longest_formula));
  if (printable_lines(text) != text)
    throw FormulaError("", 0, 0, "it holds signs that are no text");
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw FormulaError("", 0, 0, "it is empty; write for example y ~ age + sex");
  return Parser(text).formula();
}

}  // namespace starfold::formula

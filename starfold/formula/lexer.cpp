#include "starfold/formula/lexer.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "starfold/base/utf8.h"
#include "starfold/formula/formula.h"

namespace starfold::formula {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}
bool in_name(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '_'; }

// The longest first: `<=` before `<`.
constexpr std::string_view signs[] = {"%in%", "%%", "%/%", "**", "<=", ">=", "==", "!=", "&&",
                                      "||",   "~",  "+",   "-",  "*",  "/",  "^",  ":",  "(",
                                      ")",    ",",  "=",   "<",  ">",  "&",  "|",  "!"};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> all() {
    std::vector<Token> tokens;
    while (true) {
      while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos)
        ++at_;
      tokens.push_back(next());
      if (tokens.back().kind == Token::Kind::end) return tokens;
    }
  }

 private:
  [[noreturn]] void fail(std::size_t begin, std::size_t end, const std::string& what) const {
    throw FormulaError(text_, begin, end, what);
  }

  Token next() {
    Token token;
    token.begin = token.end = at_;
    if (at_ == text_.size()) return token;
    const char c = text_[at_];
    const bool point = c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]);
    if (is_digit(c) || point) {
      number(token);
    } else if (is_letter(c) || c == '.') {
      std::size_t end = at_;
      while (end < text_.size() && in_name(text_[end])) ++end;
      token.kind = Token::Kind::name;
      token.text = text_.substr(at_, end - at_);
      at_ = end;
    } else if (c == '"' || c == '\'' || c == '`') {
      quoted(token, c);
    } else {
      sign(token);
    }
    token.end = at_;
    return token;
  }

  void number(Token& token) {
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), token.value);
    std::size_t stop = static_cast<std::size_t>(end - text_.data());
    if (stop < text_.size() && text_[stop] == 'L') ++stop;  // a whole number of R
    const bool cut = stop < text_.size() && in_name(text_[stop]);
    if (error != std::errc() || !std::isfinite(token.value) || cut)
      fail(at_, stop + (cut ? 1 : 0), "this is no number");
    token.kind = Token::Kind::number;
    at_ = stop;
  }

  void quoted(Token& token, char mark) {
    token.kind = mark == '`' ? Token::Kind::name : Token::Kind::text;
    std::size_t at = at_ + 1;
    while (at < text_.size() && text_[at] != mark) {
      if (text_[at] == '\\') {
        const char escaped = at + 1 < text_.size() ? text_[at + 1] : ' ';
        if (escaped != '\\' && escaped != '"' && escaped != '\'' && escaped != '`')
          fail(at, at + 2, "after a backslash only a quotation mark or a backslash may stand");
        ++at;
      }
      token.text += text_[at++];
    }
    if (at >= text_.size()) fail(at_, text_.size(), "a quotation mark is not closed");
    if (mark == '`' && token.text.empty()) fail(at_, at + 1, "a name is empty");
    at_ = at + 1;
  }

  void sign(Token& token) {
    token.kind = Token::Kind::sign;
    const std::string_view rest = text_.substr(at_);
    const auto* found = std::find_if(std::begin(signs), std::end(signs),
                                     [&](std::string_view sign) { return rest.starts_with(sign); });
    if (found == std::end(signs)) fail(at_, at_ + 1, "this sign has no meaning in a formula");
    token.text = *found == "**" ? "^" : *found;
    at_ += found->size();
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view formula) { return Lexer(formula).all(); }

bool is_plain_name(std::string_view text) {
  static constexpr std::string_view reserved[] = {
      "if",   "else",  "repeat", "while",       "function", "for",
      "next", "break", "TRUE",   "FALSE",       "in",       "NULL",
      "Inf",  "NaN",   "NA",     "NA_integer_", "NA_real_", "NA_character_"};
  if (text.empty() || !(is_letter(text[0]) || text[0] == '.')) return false;
  if (text[0] == '.' && (text.size() == 1 || is_digit(text[1]))) return false;
  return std::all_of(text.begin(), text.end(), in_name) &&
         std::find(std::begin(reserved), std::end(reserved), text) == std::end(reserved);
}

}  // namespace starfold::formula

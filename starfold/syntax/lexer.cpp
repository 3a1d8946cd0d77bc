#include "starfold/syntax/lexer.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "starfold/base/utf8.h"
#include "starfold/syntax/characters.h"
#include "starfold/syntax/parser.h"

namespace starfold {

namespace {

// Enough of a long word to recognize it in a message.
std::string shorten(std::string_view text) {
  constexpr std::size_t most = 32;
  if (text.size() <= most) return std::string(text);
  return std::string(text.substr(0, most)) + "…";
}

class Lexer {
 public:
  Lexer(const Source& source, std::uint32_t file, Diagnostics& diagnostics)
      : source_(source), text_(source.text()), file_(file), diagnostics_(diagnostics) {}

  Lexed run();

 private:
  // An open bracket, and how many ( and [ are open with it since the last {.
  struct Open {
    std::uint32_t token;
    std::uint32_t parens;
    std::uint32_t squares;
  };

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  Span span(std::size_t begin, std::size_t end) const {
    return {file_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
  }

  bool acceptable();
  void next();
  void comment();
  bool sentence();
  bool disguised(std::size_t begin, std::size_t end, std::string_view where);
  void word();
  void sign();
  void number();
  bool number_body();
  void malformed_number(std::size_t begin);
  void number_value(std::size_t begin, bool integer);
  void stranger();
  bool at_stranger() const;

  void push(TokenKind kind, std::size_t begin, std::size_t end, double value = 0,
            bool integer = false);
  void end_line(TokenKind next);
  bool newline_before(TokenKind next) const;
  void push_newline();
  void separate_update();
  void track_brackets(TokenKind kind);
  void close_to_brace();
  bool inside_brackets() const {
    return !open_.empty() && out_.tokens[open_.back().token].kind != TokenKind::left_brace;
  }

  void report(Code code, Span where, std::string message, std::string label, std::string help);

  const Source& source_;
  std::string_view text_;
  std::uint32_t file_;
  Diagnostics& diagnostics_;
  std::size_t at_ = 0;
  bool line_has_token_ = false;
  bool pending_newline_ = false;
  bool reported_ = false;
  bool takes_sentence_ = false;   // the statement at hand began with require or expect
  std::size_t continued_at_ = 0;  // the token that starts a line without ending a statement
  std::vector<Open> open_;
  Lexed out_;
};

void Lexer::report(Code code, Span where, std::string message, std::string label,
                   std::string help) {
  // Past the limit nobody reads on, and building messages would only cost time.
  if (reported_ && diagnostics_.full()) {
    at_ = text_.size();
    return;
  }
  reported_ = true;
  diagnostics_.report(
      {code, std::move(message), {where, std::move(label)}, {}, {}, std::move(help)});
}

bool Lexer::acceptable() {
  if (text_.size() > max_source_bytes) {
    report(Code::TooLarge, span(0, 0),
           fmt::format("the program text is too large: more than {} bytes", max_source_bytes),
           "the file starts here",
           "give data to the program as inputs, and move functions into modules");
    return false;
  }
  const std::size_t bad = find_invalid_text(text_);
  if (bad == std::string_view::npos) return true;
  const auto line = source_.position(static_cast<std::uint32_t>(bad)).line;
  const auto byte = static_cast<unsigned char>(text_[bad]);
  const std::string what = byte == 0 ? "a NUL byte" : fmt::format("the byte 0x{:02X}", byte);
  report(Code::InvalidText, span(bad, bad + 1),
         fmt::format("the file is not UTF-8 text: {} on line {}", what, line),
         byte == 0 ? "a program contains no NUL bytes" : "this is not a character in UTF-8",
         "save the program as plain text in UTF-8");
  return false;
}

Lexed Lexer::run() {
  if (acceptable()) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;  // a byte order mark says nothing here
    while (at_ < text_.size()) {
      next();
      if (out_.tokens.size() < max_tokens) continue;
      const Token last = out_.tokens.back();
      out_.tokens.clear();
      open_.clear();
      report(Code::TooLarge, span(last.begin, last.end),
             fmt::format("the program is too large: more than {} words and signs", max_tokens),
             "reading stopped here",
             "give data to the program as inputs, and move functions into modules");
      break;
    }
  }
  pending_newline_ = true;
  const std::size_t end = out_.tokens.empty() ? 0 : out_.tokens.back().end;
  push(TokenKind::end_of_file, end, end);
  return std::move(out_);
}

void Lexer::next() {
  const char c = peek();
  if (c == '\n') {
    pending_newline_ = true;
    line_has_token_ = false;
    ++at_;
  } else if (c == ' ' || c == '\t' || (c == '\r' && peek(1) == '\n')) {
    ++at_;
  } else if (c == '#') {
    comment();
  } else if (is_letter(c)) {
    word();
  } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
    number();
  } else if (c == '"' && sentence()) {
    // Read as one token.
  } else if (at_stranger()) {
    stranger();
  } else if (static_cast<unsigned char>(c) >= 0x80) {
    word();
  } else {
    sign();
  }
}

void Lexer::comment() {
  const std::size_t begin = at_;
  std::size_t end = text_.find('\n', at_);
  if (end == std::string_view::npos) end = text_.size();
  at_ = end;
  if (end > begin && text_[end - 1] == '\r') --end;
  out_.comments.push_back({span(begin, end), !line_has_token_});
  disguised(begin, end, "a comment");
}

// Reports the first character between two places that could make the program look different from what it is.
bool Lexer::disguised(std::size_t begin, std::size_t end, std::string_view where) {
  for (std::size_t i = begin; i < end;) {
    const CodePoint c = *decode_utf8(text_, i);
    if (disguises_text(c.value)) {
      const Stranger s = describe_stranger(c.value);
      report(Code::InvalidCharacter, span(i, i + c.length),
             fmt::format("{} cannot be used in {}", s.name, where),
             "it could make the program look different from what it is", "remove it");
      return true;
    }
    i += c.length;
  }
  return false;
}

// Text in quotes on one line, where a statement that takes a sentence was begun; false elsewhere.
bool Lexer::sentence() {
  if (!takes_sentence_) return false;
  const std::size_t begin = at_;
  const std::size_t close = text_.find_first_of("\"\n", at_ + 1);
  if (close == std::string_view::npos || text_[close] != '"') return false;
  at_ = close + 1;
  const bool bad = disguised(begin, close, "a sentence");
  push(bad ? TokenKind::invalid : TokenKind::text, begin, close + 1);
  return true;
}

// A name or keyword. Letters of other scripts are reported, but still read as part of the word.
void Lexer::word() {
  const std::size_t begin = at_;
  std::size_t bad = 0;
  std::size_t bad_end = 0;
  while (at_ < text_.size()) {
    if (is_letter(peek()) || is_digit(peek())) {
      ++at_;
      continue;
    }
    if (static_cast<unsigned char>(peek()) < 0x80) break;
    const CodePoint c = *decode_utf8(text_, at_);
    if (!reads_as_word(c.value)) break;
    if (bad_end == 0) bad = bad_end = at_;
    if (bad_end == at_) bad_end += c.length;
    at_ += c.length;
  }
  const std::string_view word = text_.substr(begin, at_ - begin);
  if (word.size() > max_name_bytes) {
    const std::size_t end = at_;
    report(Code::NameTooLong, span(begin, end),
           fmt::format("the name `{}` is too long: {} bytes", shorten(word), word.size()),
           fmt::format("a name has at most {}", max_name_bytes), "choose a shorter name");
    push(TokenKind::invalid, begin, end);
  } else if (bad_end != 0) {
    const std::size_t end = at_;
    const Stranger s = describe_stranger(decode_utf8(text_, bad)->value);
    report(Code::InvalidCharacter, span(bad, bad_end),
           fmt::format("{} cannot be used in a name", s.name), "not a letter of the language",
           s.help);
    push(TokenKind::name, begin, end);
  } else if (word == "inf" || word == "nan" || word == "pi") {
    using limits = std::numeric_limits<double>;
    const double value = word == "inf"   ? limits::infinity()
                         : word == "nan" ? limits::quiet_NaN()
                                         : std::numbers::pi;
    push(TokenKind::number, begin, at_, value);
  } else {
    push(keyword(word), begin, at_);
  }
}

void Lexer::sign() {
  // Two-character signs first: `a<-b` holds `<-`, as in R.
  for (std::size_t length = 2; length > 0; --length) {
    const TokenKind kind = keyword(text_.substr(at_, length));
    if (kind == TokenKind::name) continue;
    const std::size_t begin = at_;
    at_ += spelling(kind).size();
    push(kind, begin, at_);
    return;
  }
  ++at_;  // not reached: at_stranger() holds for everything else
}

void Lexer::number() {
  const std::size_t begin = at_;
  const bool integer = number_body();
  const char c = peek();
  if (is_letter(c) || is_digit(c) || c == '.') {
    malformed_number(begin);
  } else {
    number_value(begin, integer);
  }
}

// Digits, fraction and exponent; stops before what cannot belong to a number.
bool Lexer::number_body() {
  bool integer = true;
  while (is_digit(peek())) ++at_;
  if (peek() == '.') {
    integer = false;
    ++at_;
    while (is_digit(peek())) ++at_;
  }
  if (peek() == 'e' || peek() == 'E') {
    const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    if (!is_digit(peek(1 + sign))) return integer;
    integer = false;
    at_ += 1 + sign;
    while (is_digit(peek())) ++at_;
  }
  return integer;
}

void Lexer::malformed_number(std::size_t begin) {
  const std::string_view good = text_.substr(begin, at_ - begin);
  const std::size_t tail_begin = at_;
  while (is_letter(peek()) || is_digit(peek()) || peek() == '.') ++at_;
  const std::string_view tail = text_.substr(tail_begin, at_ - tail_begin);
  std::string help = "write numbers like 3, 0.5 or 2.5e-3";
  if (tail == "e" || tail == "E") {
    if (peek() == '+' || peek() == '-') ++at_;
    help = "write the power of ten after the e, as in 1e-3";
  } else if (tail[0] == '_') {
    help = "write the digits without `_`";
  } else if (tail[0] == '.') {
    help = "a number has one decimal point";
  } else if (!(good == "0" && (tail[0] == 'x' || tail[0] == 'X'))) {
    help = fmt::format("a name starts with a letter; to multiply, write {} * {}", shorten(good),
                       shorten(tail));
  }
  const std::size_t end = at_;
  report(Code::InvalidNumber, span(begin, end),
         fmt::format("`{}` is not a number", shorten(text_.substr(begin, end - begin))),
         "cannot be read as a number", help);
  push(TokenKind::invalid, begin, end);
}

// Whether digits with a decimal point and exponent denote something of at least 1.
bool at_least_one(std::string_view spelled) {
  const std::size_t e = spelled.find_first_of("eE");
  const std::string_view digits = spelled.substr(0, e);
  long long exponent = 0;
  if (e != std::string_view::npos) {
    const std::size_t skip = spelled[e + 1] == '+' ? 2 : 1;
    const auto rest = spelled.substr(e + skip);
    const auto result = std::from_chars(rest.data(), rest.data() + rest.size(), exponent);
    if (result.ec != std::errc()) return rest[0] != '-';
  }
  const std::size_t first = digits.find_first_not_of("0.");
  if (first == std::string_view::npos) return false;
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const auto distance = static_cast<long long>(point) - static_cast<long long>(first);
  return exponent > -distance;  // their sum could overflow: an exponent has any number of digits
}

void Lexer::number_value(std::size_t begin, bool integer) {
  const std::string_view spelled = text_.substr(begin, at_ - begin);
  double value = 0;
  const auto result = std::from_chars(spelled.data(), spelled.data() + spelled.size(), value);
  if (result.ec == std::errc::result_out_of_range) {
    // The standard does not say which way; too small is rounded to zero, as everywhere.
    value = at_least_one(spelled) ? std::numeric_limits<double>::infinity() : 0.0;
  }
  if (std::isfinite(value)) {
    push(TokenKind::number, begin, at_, value, integer);
    return;
  }
  const std::size_t end = at_;
  report(Code::InvalidNumber, span(begin, end),
         fmt::format("the number {} is too large", shorten(spelled)),
         "numbers are at most about 1.8e308", "write `inf` for infinity");
  push(TokenKind::invalid, begin, end);
}

bool Lexer::at_stranger() const {
  const char c = peek();
  if (static_cast<unsigned char>(c) >= 0x80) return !reads_as_word(decode_utf8(text_, at_)->value);
  if (c == ' ' || c == '\t' || c == '\n' || c == '#' || is_letter(c) || is_digit(c)) return false;
  if (c == '\r') return peek(1) != '\n';
  if (c == '!') return peek(1) != '=';
  return keyword(text_.substr(at_, 1)) == TokenKind::name;
}

// Characters outside the language that stand together are one mistake.
void Lexer::stranger() {
  const std::size_t begin = at_;
  if (const PercentOperator op = percent_operator(text_.substr(at_)); op.length > 0) {
    at_ += op.length;
    const std::size_t end = at_;
    report(Code::InvalidCharacter, span(begin, end),
           fmt::format("`{}` cannot be used in a program", text_.substr(begin, op.length)),
           "not part of the language", op.help);
    push(op.meant, begin, end);
    out_.tokens.back().reported = true;
    return;
  }
  const CodePoint first = *decode_utf8(text_, at_);
  const Stranger s = describe_stranger(first.value);
  bool uniform = true;
  while (at_ < text_.size() && at_stranger()) {
    const CodePoint c = *decode_utf8(text_, at_);
    uniform = uniform && c.value == first.value;
    at_ += c.length;
    if (first.value == '"' && at_ == begin + 1) {
      const std::size_t close = text_.find_first_of("\"\n", at_);
      if (close != std::string_view::npos && text_[close] == '"') at_ = close + 1;
      break;
    }
  }
  const std::size_t end = at_;
  report(Code::InvalidCharacter, span(begin, end),
         fmt::format("{} cannot be used in a program", s.name), "not part of the language", s.help);
  if (!uniform || s.meant == TokenKind::invalid) {
    push(TokenKind::invalid, begin, end);
  } else if (s.meant == TokenKind::newline) {
    if (!inside_brackets() && !out_.tokens.empty()) push_newline();
  } else if (s.meant != TokenKind::end_of_file) {
    push(s.meant, begin, end, first.value == 0x221E ? HUGE_VAL : std::numbers::pi);
    out_.tokens.back().reported = true;
  }
}

void Lexer::push(TokenKind kind, std::size_t begin, std::size_t end, double value, bool integer) {
  if (pending_newline_) end_line(kind);
  if (kind == TokenKind::left_arrow) separate_update();
  Token token;
  token.kind = kind;
  token.begin = static_cast<std::uint32_t>(begin);
  token.end = static_cast<std::uint32_t>(end);
  token.value = value;
  token.integer = integer;
  out_.tokens.push_back(token);
  line_has_token_ = true;
  if (starts_statement(kind))
    takes_sentence_ = kind == TokenKind::kw_require || kind == TokenKind::kw_expect;
  track_brackets(kind);
}

// Decides, once the first token of a line is known, whether the line before ended a statement.
void Lexer::end_line(TokenKind next) {
  pending_newline_ = false;
  if (out_.tokens.empty()) return;
  if (newline_before(next)) {
    // A statement can only begin here if brackets still open were forgotten.
    close_to_brace();
    push_newline();
  } else {
    continued_at_ = out_.tokens.size();
  }
}

bool Lexer::newline_before(TokenKind next) const {
  if (starts_statement(next) || next == TokenKind::right_brace || next == TokenKind::end_of_file) {
    return true;
  }
  return !inside_brackets() && !needs_more(out_.tokens.back().kind);
}

void Lexer::push_newline() {
  takes_sentence_ = false;
  if (out_.tokens.back().kind == TokenKind::newline) return;
  Token token;
  token.kind = TokenKind::newline;
  token.begin = token.end = out_.tokens.back().end;
  out_.tokens.push_back(token);
}

// `name <-` at the start of a line begins a statement even where the line before is unfinished,
// unless it stands where brackets plainly want one more element.
void Lexer::separate_update() {
  auto& tokens = out_.tokens;
  const std::size_t count = tokens.size();
  if (count < 2 || continued_at_ != count - 1 || tokens.back().kind != TokenKind::name) return;
  const TokenKind before = tokens[count - 2].kind;
  const bool wants_element =
      needs_more(before) || before == TokenKind::left_paren || before == TokenKind::left_bracket;
  if (inside_brackets() && wants_element) return;
  close_to_brace();
  Token newline;
  newline.kind = TokenKind::newline;
  newline.begin = newline.end = tokens[count - 2].end;
  tokens.insert(tokens.end() - 1, newline);
}

void Lexer::track_brackets(TokenKind kind) {
  const auto index = static_cast<std::uint32_t>(out_.tokens.size() - 1);
  const Open top = open_.empty() ? Open{} : open_.back();
  const auto pop_to = [&](TokenKind opener) {
    while (out_.tokens[open_.back().token].kind != opener) open_.pop_back();
    open_.pop_back();
  };
  switch (kind) {
    case TokenKind::left_paren:
      open_.push_back({index, top.parens + 1, top.squares});
      break;
    case TokenKind::left_bracket:
      open_.push_back({index, top.parens, top.squares + 1});
      break;
    case TokenKind::left_brace:
      open_.push_back({index, 0, 0});
      break;
    case TokenKind::right_paren:
      if (top.parens > 0)
        pop_to(TokenKind::left_paren);
      else if (top.squares > 0)
        open_.pop_back();
      break;
    case TokenKind::right_bracket:
      if (top.squares > 0)
        pop_to(TokenKind::left_bracket);
      else if (top.parens > 0)
        open_.pop_back();
      break;
    case TokenKind::right_brace:
      close_to_brace();
      if (open_.empty()) break;
      out_.tokens[open_.back().token].closed = true;
      open_.pop_back();
      break;
    default:
      break;
  }
}

void Lexer::close_to_brace() {
  while (inside_brackets()) open_.pop_back();
}

}  // namespace

Lexed lex(const SourceMap& sources, std::uint32_t file, Diagnostics& diagnostics) {
  return Lexer(sources[file], file, diagnostics).run();
}

}  // namespace starfold

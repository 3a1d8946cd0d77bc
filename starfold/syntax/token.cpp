#include "starfold/syntax/token.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace starfold {

namespace {

struct Spelling {
  TokenKind kind;
  std::string_view text;
};

// In the order of TokenKind, from kw_import on.
constexpr std::array spellings = {
    Spelling{TokenKind::kw_import, "import"},
    Spelling{TokenKind::kw_size, "size"},
    Spelling{TokenKind::kw_input, "input"},
    Spelling{TokenKind::kw_fn, "fn"},
    Spelling{TokenKind::kw_let, "let"},
    Spelling{TokenKind::kw_state, "state"},
    Spelling{TokenKind::kw_repeat, "repeat"},
    Spelling{TokenKind::kw_until, "until"},
    Spelling{TokenKind::kw_trace, "trace"},
    Spelling{TokenKind::kw_output, "output"},
    Spelling{TokenKind::kw_require, "require"},
    Spelling{TokenKind::kw_expect, "expect"},
    Spelling{TokenKind::kw_and, "and"},
    Spelling{TokenKind::kw_or, "or"},
    Spelling{TokenKind::kw_not, "not"},
    Spelling{TokenKind::kw_new, "new"},
    Spelling{TokenKind::plus, "+"},
    Spelling{TokenKind::minus, "-"},
    Spelling{TokenKind::star, "*"},
    Spelling{TokenKind::slash, "/"},
    Spelling{TokenKind::at, "@"},
    Spelling{TokenKind::caret, "^"},
    Spelling{TokenKind::equal_equal, "=="},
    Spelling{TokenKind::not_equal, "!="},
    Spelling{TokenKind::less, "<"},
    Spelling{TokenKind::less_equal, "<="},
    Spelling{TokenKind::greater, ">"},
    Spelling{TokenKind::greater_equal, ">="},
    Spelling{TokenKind::left_arrow, "<-"},
    Spelling{TokenKind::right_arrow, "->"},
    Spelling{TokenKind::equal, "="},
    Spelling{TokenKind::quote, "'"},
    Spelling{TokenKind::left_paren, "("},
    Spelling{TokenKind::right_paren, ")"},
    Spelling{TokenKind::left_bracket, "["},
    Spelling{TokenKind::right_bracket, "]"},
    Spelling{TokenKind::left_brace, "{"},
    Spelling{TokenKind::right_brace, "}"},
    Spelling{TokenKind::comma, ","},
    Spelling{TokenKind::colon, ":"},
    Spelling{TokenKind::dot, "."},
};

constexpr std::size_t first_spelled = static_cast<std::size_t>(TokenKind::kw_import);

constexpr std::size_t first_sign = static_cast<std::size_t>(TokenKind::plus);

constexpr bool in_order() {
  for (std::size_t i = 0; i < spellings.size(); ++i) {
    if (static_cast<std::size_t>(spellings[i].kind) != i + first_spelled) return false;
  }
  return spellings.back().kind == TokenKind::dot;
}
static_assert(in_order());

}  // namespace

std::string_view spelling(TokenKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  return index < first_spelled ? std::string_view() : spellings[index - first_spelled].text;
}

TokenKind keyword(std::string_view word) {
  constexpr std::size_t longest = 7;
  if (word.empty() || word.size() > longest) return TokenKind::name;
  const auto signs = spellings.begin() + static_cast<std::ptrdiff_t>(first_sign - first_spelled);
  const bool letters = word[0] >= 'a' && word[0] <= 'z';
  const auto begin = letters ? spellings.begin() : signs;
  const auto end = letters ? signs : spellings.end();
  const auto row = std::find_if(begin, end, [&](const Spelling& s) { return s.text == word; });
  return row == end ? TokenKind::name : row->kind;
}

bool starts_statement(TokenKind kind) {
  return kind >= TokenKind::kw_import && kind <= TokenKind::kw_expect &&
         kind != TokenKind::kw_until;
}

bool is_keyword(TokenKind kind) {
  return kind >= TokenKind::kw_import && kind <= TokenKind::kw_new;
}

bool is_comparison(TokenKind kind) {
  return kind >= TokenKind::equal_equal && kind <= TokenKind::greater_equal;
}

bool needs_more(TokenKind kind) {
  return (kind >= TokenKind::plus && kind <= TokenKind::equal) || kind == TokenKind::kw_and ||
         kind == TokenKind::kw_or || kind == TokenKind::kw_not || kind == TokenKind::comma ||
         kind == TokenKind::colon;
}

}  // namespace starfold

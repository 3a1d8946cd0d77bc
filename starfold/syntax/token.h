// The words and signs a program is made of.
#pragma once

#include <cstdint>
#include <string_view>

#include "starfold/base/source.h"

namespace starfold {

enum class TokenKind : std::uint8_t {
  end_of_file,
  newline,  // ends a statement; a newline that does not end one leaves no token
  name,
  number,   // also inf, nan and pi
  text,     // a sentence in quotes, in `require` and `expect`
  invalid,  // reported by the lexer, stands where a value or sign would
  // Keywords.
  kw_import,
  kw_size,
  kw_input,
  kw_fn,
  kw_let,
  kw_state,
  kw_repeat,
  kw_until,
  kw_trace,
  kw_output,
  kw_require,
  kw_expect,
  kw_and,
  kw_or,
  kw_not,
  kw_new,
  // Signs.
  plus,
  minus,
  star,
  slash,
  at,
  caret,
  equal_equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  left_arrow,   // <-
  right_arrow,  // ->
  equal,
  quote,
  left_paren,
  right_paren,
  left_bracket,
  right_bracket,
  left_brace,
  right_brace,
  comma,
  colon,
  dot,
};

struct Token {
  TokenKind kind = TokenKind::end_of_file;
  bool integer = false;   // number: digits only
  bool closed = false;    // {: its } exists
  bool reported = false;  // the lexer reported it and read it as meant
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  double value = 0;  // number
};

// How a keyword or sign is written; empty for the other kinds.
std::string_view spelling(TokenKind kind);
// The keyword a word is, or TokenKind::name.
TokenKind keyword(std::string_view word);
// let, state, input, output, repeat, trace, require, expect, fn, import, size: only a statement begins with these.
bool starts_statement(TokenKind kind);
bool is_keyword(TokenKind kind);
bool is_comparison(TokenKind kind);
// Signs and words that need something after them, so that a newline there ends nothing.
bool needs_more(TokenKind kind);

}  // namespace starfold

// Letters and digits, and the characters people type or paste that the language does not have.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "starfold/syntax/token.h"

namespace starfold {

bool is_letter(char c);  // ASCII letters and underscore: what a name begins with
bool is_digit(char c);

// A character outside the language: what to say about it, and what it was meant to be.
struct Stranger {
  std::string name;  // `−` (U+2212), or just the name of something invisible
  std::string help;
  TokenKind meant = TokenKind::invalid;  // newline: a separator; end_of_file: a blank
};
Stranger describe_stranger(char32_t c);
// An operator of R between percent signs, such as %*%, at the beginning of a text; its length is 0 when
// there is none.
struct PercentOperator {
  std::size_t length = 0;
  std::string help;
  TokenKind meant = TokenKind::invalid;
};
PercentOperator percent_operator(std::string_view text);
// Whether a character outside ASCII looks like a part of a name rather than like a sign.
bool reads_as_word(char32_t c);

}  // namespace starfold

// Characters: UTF-8, and those that people type or paste but the language does not have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "starfold/syntax/token.h"

namespace starfold {

// One code point of a text and the bytes it takes.
struct CodePoint {
  char32_t value = 0;
  std::uint32_t length = 1;
};

// The code point at an offset; absent where the bytes are not UTF-8.
std::optional<CodePoint> decode_utf8(std::string_view text, std::size_t offset);
// The offset of the first byte that is not UTF-8 text (or is NUL); npos when there is none.
std::size_t find_invalid_text(std::string_view text);

bool is_letter(char c);  // ASCII letters and underscore: what a name begins with
bool is_digit(char c);

// A character outside the language: what to say about it, and what it was meant to be.
struct Stranger {
  std::string name;  // `−` (U+2212), or just the name of something invisible
  std::string help;
  TokenKind meant = TokenKind::invalid;  // newline: a separator; end_of_file: a blank
};
Stranger describe_stranger(char32_t c);
// Whether a character outside ASCII looks like a part of a name rather than like a sign.
bool reads_as_word(char32_t c);

// Characters that may not stand in a comment, since they change how the text around them looks.
bool disguises_text(char32_t c);

}  // namespace starfold

// UTF-8: reading it, and making text safe to show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace starfold {

// One code point of a text and the bytes it takes.
struct CodePoint {
  char32_t value = 0;
  std::uint32_t length = 1;
};

inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

// The code point at an offset; absent where the bytes are not UTF-8.
std::optional<CodePoint> decode_utf8(std::string_view text, std::size_t offset);
std::string encode_utf8(char32_t c);
// The offset of the first byte that is not UTF-8 text (or is NUL); npos when there is none.
std::size_t find_invalid_text(std::string_view text);
// The text with every byte that is not UTF-8 replaced.
std::string valid_utf8(std::string_view text);
// The text on one line of a terminal: neither bytes that are not UTF-8 nor disguises in it.
std::string printable(std::string_view text);
// The same for a message of several lines.
std::string printable_lines(std::string_view text);

// Control characters and marks that change how the text around them looks.
bool disguises_text(char32_t c);

}  // namespace starfold

#include "starfold/base/utf8.h"

namespace starfold {

std::string encode_utf8(char32_t c) {
  std::string out;
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((c >> shift) & 0x3FU));
  };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0U | (c >> 6U));
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0U | (c >> 12U));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0U | (c >> 18U));
    tail(12), tail(6), tail(0);
  }
  return out;
}

std::optional<CodePoint> decode_utf8(std::string_view text, std::size_t offset) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return CodePoint{lead, 1};
  const std::uint32_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || offset + length > text.size()) return std::nullopt;
  char32_t value = lead & (0xFFU >> (length + 1));
  for (std::uint32_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return std::nullopt;
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  // Longer than needed, a surrogate, or past the last code point.
  const bool too_long = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (too_long || (value >= 0xD800 && value <= 0xDFFF) || value > 0x10FFFF) return std::nullopt;
  return CodePoint{value, length};
}

std::size_t find_invalid_text(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (text[i] == '\0') return i;
    const auto code_point = decode_utf8(text, i);
    if (!code_point) return i;
    i += code_point->length;
  }
  return std::string_view::npos;
}

bool disguises_text(char32_t c) {
  const bool direction = (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) ||
                         c == 0x200E || c == 0x200F || c == 0x061C;
  const bool control = (c < 0x20 && c != '\t') || (c >= 0x7F && c <= 0x9F);
  return direction || control || c == 0x2028 || c == 0x2029;
}

namespace {

// Copies the text, replacing what is not UTF-8 and what `unwanted` says.
template <typename Unwanted>
std::string replace_in(std::string_view text, Unwanted unwanted) {
  std::string out;
  out.reserve(text.size());
  std::size_t i = 0;
  while (i < text.size()) {
    const auto c = decode_utf8(text, i);
    const std::size_t length = c ? c->length : 1;
    out += c && !unwanted(c->value) ? text.substr(i, length) : replacement_character;
    i += length;
  }
  return out;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  return replace_in(text, [](char32_t) { return false; });
}

std::string printable(std::string_view text) {
  return replace_in(text, [](char32_t c) { return disguises_text(c) || c == '\t'; });
}

std::string printable_lines(std::string_view text) {
  return replace_in(text, [](char32_t c) { return disguises_text(c) && c != '\n'; });
}

}  // namespace starfold

// The text of a document, and places in it as editors count them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/base/source.h"

namespace starfold::editor {

// What a character of a line counts as: bytes, UTF-16 code units (what the protocol asks for by default), or code points.
enum class Encoding { utf8, utf16, utf32 };

// A line and a character in it, both from 0.
struct Place {
  std::uint32_t line = 0;
  std::uint32_t character = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

// Text with an index of its lines, which end with \n, \r\n or \r.
class Text {
 public:
  explicit Text(std::string text = {});

  const std::string& bytes() const { return text_; }
  // Where a byte lies; beyond the text, its end.
  Place place(std::uint32_t offset, Encoding encoding) const;
  // The byte at a place: beyond a line its end, beyond the text its end, within a code point its first byte.
  std::uint32_t offset(Place place, Encoding encoding) const;
  // Puts other text between two bytes.
  void replace(std::uint32_t begin, std::uint32_t end, std::string_view with);

 private:
  void find_lines();
  std::string text_;
  std::vector<std::uint32_t> starts_;
};

// How one text became another: what stands before and after one piece has stayed.
class Change {
 public:
  Change(std::string_view from, std::string_view to);

  // Where a byte, or a piece, of the first text is in the second; none when it was in what changed.
  std::optional<std::uint32_t> forward(std::uint32_t offset) const;
  std::optional<Span> forward(Span span) const;
  // And the other way round.
  std::optional<std::uint32_t> back(std::uint32_t offset) const;

 private:
  std::uint32_t same_ = 0;      // bytes at the beginning
  std::uint32_t from_end_ = 0;  // where the common rest begins in each
  std::uint32_t to_end_ = 0;
};

}  // namespace starfold::editor

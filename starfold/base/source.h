// Program text and places in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace starfold {

// A half-open range of bytes in one source file.
struct Span {
  std::uint32_t file = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  friend bool operator==(const Span&, const Span&) = default;
};

// The smallest span that covers both; they must lie in the same file.
inline Span cover(Span a, Span b) {
  return {a.file, a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}

// A one-based line and column; columns count Unicode code points.
struct Position {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

// One file of program text, with an index of its lines.
class Source {
 public:
  Source(std::string name, std::string text);

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }
  std::string_view text(Span span) const;

  // Where a byte offset lies.
  Position position(std::uint32_t offset) const;
  // The text of a one-based line, without its line end.
  std::string_view line(std::uint32_t number) const;
  std::uint32_t line_count() const { return static_cast<std::uint32_t>(line_starts_.size()); }

 private:
  std::string name_;
  std::string text_;
  std::vector<std::uint32_t> line_starts_;
};

// All files of one compilation; a Span's `file` is an index into it.
class SourceMap {
 public:
  std::uint32_t add(std::string name, std::string text);
  const Source& operator[](std::uint32_t file) const { return files_[file]; }
  std::size_t size() const { return files_.size(); }
  std::string_view text(Span span) const { return files_[span.file].text(span); }

 private:
  std::vector<Source> files_;
};

}  // namespace starfold

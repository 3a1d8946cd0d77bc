#include "starfold/editor/text.h"

#include <algorithm>

#include "starfold/base/utf8.h"

namespace starfold::editor {
namespace {

// One code point, or a byte that is none, in each way of counting.
struct Step {
  std::uint32_t bytes;
  std::uint32_t units;
};

Step step_at(std::string_view text, std::size_t offset, Encoding encoding) {
  constexpr char32_t first_pair = 0x10000;  // from here on UTF-16 takes two units
  const std::optional<CodePoint> point = decode_utf8(text, offset);
  if (!point) return {1, 1};
  switch (encoding) {
    case Encoding::utf8:
      return {point->length, point->length};
    case Encoding::utf16:
      return {point->length, point->value >= first_pair ? 2U : 1U};
    case Encoding::utf32:
      break;
  }
  return {point->length, 1};
}

}  // namespace

Text::Text(std::string text) : text_(std::move(text)) { find_lines(); }

void Text::find_lines() {
  starts_ = {0};
  for (std::size_t i = 0; i < text_.size(); ++i) {
    const bool pair = text_[i] == '\r' && i + 1 < text_.size() && text_[i + 1] == '\n';
    if ((text_[i] == '\n' || text_[i] == '\r') && !pair)
      starts_.push_back(static_cast<std::uint32_t>(i) + 1);
  }
}

Place Text::place(std::uint32_t offset, Encoding encoding) const {
  offset = std::min(offset, static_cast<std::uint32_t>(text_.size()));
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
  Place place;
  place.line = static_cast<std::uint32_t>(after - starts_.begin()) - 1;
  for (std::uint32_t at = starts_[place.line]; at < offset;) {
    const Step step = step_at(text_, at, encoding);
    if (at + step.bytes > offset) break;
    place.character += step.units;
    at += step.bytes;
  }
  return place;
}

std::uint32_t Text::offset(Place place, Encoding encoding) const {
  const auto size = static_cast<std::uint32_t>(text_.size());
  if (place.line >= starts_.size()) return size;
  std::uint32_t at = starts_[place.line];
  std::uint32_t left = place.character;
  while (at < size && text_[at] != '\n' && text_[at] != '\r') {
    const Step step = step_at(text_, at, encoding);
    if (step.units > left) break;
    left -= step.units;
    at += step.bytes;
  }
  return at;
}

void Text::replace(std::uint32_t begin, std::uint32_t end, std::string_view with) {
  if (begin > end) std::swap(begin, end);
  text_.replace(begin, end - begin, with);
  find_lines();
}

Change::Change(std::string_view from, std::string_view to) {
  const std::size_t shorter = std::min(from.size(), to.size());
  std::size_t same = 0;
  while (same < shorter && from[same] == to[same]) ++same;
  std::size_t rest = 0;
  while (rest < shorter - same && from[from.size() - 1 - rest] == to[to.size() - 1 - rest]) ++rest;
  same_ = static_cast<std::uint32_t>(same);
  from_end_ = static_cast<std::uint32_t>(from.size() - rest);
  to_end_ = static_cast<std::uint32_t>(to.size() - rest);
}

std::optional<std::uint32_t> Change::forward(std::uint32_t offset) const {
  if (offset <= same_) return offset;
  if (offset < from_end_) return std::nullopt;
  return offset - from_end_ + to_end_;
}

std::optional<Span> Change::forward(Span span) const {
  // A piece that ends where the change begins, or begins where it ends, has stayed; one around it has not.
  if (span.end <= same_) return span;
  if (span.begin < from_end_) return std::nullopt;
  return Span{span.file, span.begin - from_end_ + to_end_, span.end - from_end_ + to_end_};
}

std::optional<std::uint32_t> Change::back(std::uint32_t offset) const {
  if (offset <= same_) return offset;
  if (offset < to_end_) return std::nullopt;
  return offset - to_end_ + from_end_;
}

}  // namespace starfold::editor

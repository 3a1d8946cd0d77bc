#include "starfold/editor/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace starfold::editor {
namespace {

constexpr std::string_view header_end = "\r\n\r\n";

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// Digits only; a number with more than 18 is as long as any that is too long.
std::optional<std::size_t> length_of(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || text.size() > 18) return std::nullopt;
  std::size_t length = 0;
  for (const char c : text) length = 10 * length + static_cast<std::size_t>(c - '0');
  return length;
}

// The length that a header says; other fields are allowed and mean nothing here.
std::optional<std::size_t> announced(std::string_view header) {
  std::optional<std::size_t> length;
  while (!header.empty()) {
    const std::size_t end = std::min(header.find("\r\n"), header.size());
    const std::string_view line = header.substr(0, end);
    header.remove_prefix(std::min(end + 2, header.size()));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    if (!same_word(line.substr(0, colon), "content-length")) continue;
    if (length) return std::nullopt;  // two lengths: which one holds is anyone's guess
    length = length_of(line.substr(colon + 1));
    if (!length) return std::nullopt;
  }
  return length;
}

}  // namespace

std::string with_header(std::string_view body) {
  return fmt::format("Content-Length: {}\r\n\r\n{}", body.size(), body);
}

MessageReader::Next MessageReader::next() {
  const std::size_t skipped = std::min(skip_, waiting_.size());
  waiting_.erase(0, skipped);
  skip_ -= skipped;
  if (skip_ > 0) return {};
  if (!length_) {
    const std::size_t end = waiting_.find(header_end);
    if (std::min(end, waiting_.size()) > max_header_bytes) return {Kind::broken, {}};
    if (end == std::string::npos) return {};
    length_ = announced(std::string_view(waiting_).substr(0, end));
    if (!length_) return {Kind::broken, {}};
    waiting_.erase(0, end + header_end.size());
    if (*length_ > max_message_bytes) {
      skip_ = *length_;
      length_.reset();
      return {Kind::too_long, {}};
    }
  }
  if (waiting_.size() < *length_) return {};
  std::string body = waiting_.substr(0, *length_);
  waiting_.erase(0, *length_);
  length_.reset();
  return {Kind::message, std::move(body)};
}

}  // namespace starfold::editor

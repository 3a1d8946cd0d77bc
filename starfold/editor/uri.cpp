#include "starfold/editor/uri.h"

#include <cctype>

namespace starfold::editor {
namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool stands_for_itself(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("-._~/").find(c) != std::string_view::npos;
}

}  // namespace

std::optional<std::string> path_of(std::string_view uri) {
  constexpr std::string_view scheme = "file://";
  if (uri.substr(0, scheme.size()) != scheme) return std::nullopt;
  uri.remove_prefix(scheme.size());
  constexpr std::string_view here = "localhost";
  if (uri.substr(0, here.size()) == here) uri.remove_prefix(here.size());
  if (uri.empty() || uri.front() != '/') return std::nullopt;
  std::string path;
  for (std::size_t i = 0; i < uri.size(); ++i) {
    if (uri[i] != '%') {
      path += uri[i];
      continue;
    }
    const int high = i + 2 < uri.size() ? digit(uri[i + 1]) : -1;
    const int low = i + 2 < uri.size() ? digit(uri[i + 2]) : -1;
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    path += static_cast<char>(16 * high + low);
    i += 2;
  }
  return path;
}

std::string uri_of(std::string_view path) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string uri = "file://";
  for (const char c : path) {
    if (stands_for_itself(c)) {
      uri += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    uri += '%';
    uri += digits[byte >> 4U];
    uri += digits[byte & 15U];
  }
  return uri;
}

}  // namespace starfold::editor

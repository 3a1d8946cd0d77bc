#include "starfold/toml/depth.h"

#include <algorithm>
#include <cctype>

namespace starfold {
namespace {

// Where the text in quotation marks that begins at `at` ends, or the whole text where it does not.
std::size_t end_of_quoted(std::string_view toml, std::size_t at) {
  const char quote = toml[at];
  const std::string_view three = toml.substr(at, 3);
  const bool lines = three.size() == 3 && three[1] == quote && three[2] == quote;
  std::size_t i = at + (lines ? 3 : 1);
  for (; i < toml.size(); ++i) {
    if (toml[i] == '\\' && quote == '"') {
      ++i;
    } else if (!lines && (toml[i] == quote || toml[i] == '\n')) {
      return i + 1;
    } else if (lines && toml.substr(i, 3) == three) {
      i += 3;
      while (i < toml.size() && toml[i] == quote) ++i;  // up to two more belong to the text
      return i;
    }
  }
  return toml.size();
}

}  // namespace

std::size_t key_depth(std::string_view toml) {
  std::size_t deepest = 0;
  std::size_t points = 0;
  for (std::size_t i = 0; i < toml.size();) {
    const char c = toml[i];
    if (c == '"' || c == '\'') {
      i = end_of_quoted(toml, i);
      continue;
    }
    if (c == '#') {
      i = std::min(toml.find('\n', i), toml.size());
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    const bool in_key = std::isalnum(byte) != 0 || byte >= 0x80U || c == '_' || c == '-' ||
                        c == ' ' || c == '\t' || c == '.';
    points = in_key ? points + (c == '.' ? 1 : 0) : 0;
    deepest = std::max(deepest, points);
    ++i;
  }
  return deepest;
}

}  // namespace starfold

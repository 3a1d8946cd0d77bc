#include "starfold/base/suggest.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace starfold {
namespace {

// Edit distance with transpositions, ignoring case.
std::size_t distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      const std::size_t change = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
      table[i][j] =
          std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view written, std::span<const std::string> candidates) {
  constexpr std::size_t longest = 64;  // names beyond this are not typing slips
  if (written.size() > longest) return {};
  std::size_t best = std::max<std::size_t>(1, written.size() / 3) + 1;
  std::string found;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > longest) continue;
    const std::size_t d = distance(written, candidate);
    if (d < best && d < candidate.size()) {
      best = d;
      found = candidate;
    }
  }
  return found;
}

}  // namespace starfold

#include "starfold/base/suggest.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace starfold {
namespace {

constexpr std::size_t longest = 64;  // names beyond this are not typing slips

// Edit distance with transpositions, ignoring case; `most` or more when it is not below `most`.
std::size_t distance(std::string_view a, std::string_view b, std::size_t most) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::array<std::array<std::size_t, longest + 1>, 3> rows{};  // this row and the two before it
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    const auto& above = rows[(i - 1) % 3];
    auto& row = rows[i % 3];
    row.fill(most);
    // Cells farther from the diagonal cannot be below `most`.
    const std::size_t begin = i > most ? i - most : 0;
    const std::size_t end = std::min(b.size(), i + most);
    std::size_t least = most;
    for (std::size_t j = begin; j <= end; ++j) {
      if (j == 0) {
        row[0] = i;
      } else {
        const std::size_t change = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
        row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + change});
        const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                             lower(a[i - 2]) == lower(b[j - 1]);
        if (swapped) row[j] = std::min(row[j], rows[(i - 2) % 3][j - 2] + 1);
      }
      least = std::min(least, row[j]);
    }
    if (least >= most) return most;
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::string nearest(std::string_view written, std::span<const std::string> candidates) {
  if (written.size() > longest) return {};
  std::size_t best = std::max<std::size_t>(1, written.size() / 3) + 1;
  std::string found;
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(candidate.size(), written.size());
    const std::size_t shorter = std::min(candidate.size(), written.size());
    if (candidate.size() > longest || longer - shorter >= best) continue;
    const std::size_t d = distance(written, candidate, best);
    if (d < best && d < candidate.size()) {
      best = d;
      found = candidate;
    }
  }
  return found;
}

}  // namespace starfold

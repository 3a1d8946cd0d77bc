#include "starfold/study/look/diagnose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "starfold/base/utf8.h"

namespace starfold {
namespace {

constexpr std::size_t most_columns = 500;

// Sums over all records: of columns, the first of which is the intercept, and of their products.
struct Sums {
  std::size_t width = 0;  // with the intercept
  std::vector<double> gram;
  std::vector<double> least;
  std::vector<double> most;
  std::int64_t records = 0;

  explicit Sums(std::size_t columns)
      : width(columns + 1),
        gram(width * width, 0.0),
        least(width, std::numeric_limits<double>::infinity()),
        most(width, -std::numeric_limits<double>::infinity()) {}

  void add(const std::vector<double>& row) {
    for (std::size_t i = 0; i < width; ++i) {
      least[i] = std::min(least[i], row[i]);
      most[i] = std::max(most[i], row[i]);
      for (std::size_t k = 0; k <= i; ++k) gram[i * width + k] += row[i] * row[k];
    }
    ++records;
  }
};

void add_table(const RecordTable& table, const RecordTable::Place& place, Sums& sums) {
  constexpr std::size_t block = RecordTable::kept_records;
  std::vector<double> values(table.columns() * block);
  std::vector<double> row(sums.width, 1.0);
  const std::unique_ptr<RecordCursor> cursor = table.read(0, block, block);
  for (std::int64_t left = table.records(); left > 0;) {
    const std::size_t count = cursor->next(values.data());
    if (count == 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t c = 0; c < place.count; ++c)
        row[c + 1] = values[(place.first + c) * block + i];
      sums.add(row);
    }
    left -= static_cast<std::int64_t>(count);
  }
}

// Which columns follow from those before them: what is left of each when they are taken out of it.
std::vector<std::size_t> dependent(Sums sums) {
  constexpr double nothing = 1e-10;
  const std::size_t n = sums.width;
  std::vector<double>& a = sums.gram;
  std::vector<double> before(n);
  for (std::size_t i = 0; i < n; ++i) before[i] = a[i * n + i];
  std::vector<std::size_t> result;
  for (std::size_t j = 0; j < n; ++j) {
    const double left = a[j * n + j];
    if (!(left > nothing * before[j])) {
      if (j > 0) result.push_back(j - 1);
      continue;
    }
    for (std::size_t i = j + 1; i < n; ++i) {
      const double factor = a[i * n + j] / left;
      for (std::size_t k = j + 1; k <= i; ++k) a[i * n + k] -= factor * a[k * n + j];
    }
  }
  return result;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 10;
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() < most) shown.push_back(printable(name));
  }
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
}

std::string words(const std::string& input, const std::vector<std::string>& names,
                  const Sums& sums) {
  if (sums.records == 0) return fmt::format("there are no records of {}", input);
  if (sums.records < static_cast<std::int64_t>(names.size()))
    return fmt::format("{} has {} columns, and all clients together have {} records", input,
                       names.size(), sums.records);
  std::vector<std::string> constant;
  std::vector<std::string> following;
  for (std::size_t c = 0; c < names.size(); ++c) {
    if (sums.least[c + 1] == sums.most[c + 1]) constant.push_back(names[c]);
  }
  for (const std::size_t c : dependent(sums)) {
    if (sums.least[c + 1] != sums.most[c + 1]) following.push_back(names[c]);
  }
  std::string text;
  if (!constant.empty())
    text += fmt::format("{} of {} {} the same value in all records", listed(constant), input,
                        constant.size() == 1 ? "has" : "have each");
  if (!following.empty())
    text += fmt::format("{}{} of {} {} from the columns before {} (and an intercept)",
                        text.empty() ? "" : "; ", listed(following), input,
                        following.size() == 1 ? "follows" : "follow",
                        following.size() == 1 ? "it" : "them");
  return text.empty() ? "" : text + ": leave out what is there twice, or penalize";
}

}  // namespace

std::string singular_columns(const Evidence& evidence) {
  std::string text;
  for (const auto& [input, names] : evidence.columns) {
    if (names.size() < 1 || names.size() > most_columns) continue;
    Sums sums(names.size());
    bool matrix = false;
    for (const auto& table : evidence.tables) {
      const auto place = table->inputs().find(input);
      if (place == table->inputs().end() || place->second.count != names.size()) continue;
      matrix = true;
      add_table(*table, place->second, sums);
    }
    if (!matrix || (names.size() == 1 && input != "x")) continue;
    if (const std::string found = words(input, names, sums); !found.empty())
      text += (text.empty() ? "" : "; ") + found;
  }
  return text;
}

}  // namespace starfold

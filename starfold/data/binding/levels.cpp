#include "starfold/data/binding/levels.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/data/text/values.h"

namespace starfold {

LevelNumbers::LevelNumbers(const Categorical& categorical, bool numbers)
    : by_number_(numbers), levels_(categorical.levels) {
  double number = 0;
  for (const std::string& level : levels_) {
    texts_.emplace(level, static_cast<double>(texts_.size() + 1));
    by_number_ = by_number_ && parse_number(level, number) == NumberFault::none;
  }
  if (!by_number_) return;
  for (const std::string& level : levels_) {
    parse_number(level, number);
    numbers_.emplace(number, texts_.at(level));  // the first of equal ones
  }
}

double LevelNumbers::of(std::string_view text) const {
  const auto found = texts_.find(text);
  return found == texts_.end() ? 0 : found->second;
}

double LevelNumbers::of(double number) const {
  const auto found = numbers_.find(number);
  return found == numbers_.end() ? 0 : found->second;
}

std::string level_text(double number) { return fmt::format("{}", number); }

RunError too_many_levels(std::size_t most) {
  return RunError(
      fmt::format("it has more than {} different values, and is hardly a factor", most));
}

}  // namespace starfold

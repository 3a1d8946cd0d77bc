// The levels of a categorical column by their numbers. Private to starfold/data.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "starfold/base/error.h"
#include "starfold/data/columns.h"

namespace starfold {

// Levels are numbered from 1. Where column and levels are numbers they are compared as such, so that 1 and
// 1.0 are one level.
class LevelNumbers {
 public:
  LevelNumbers(const Categorical& categorical, bool numbers);
  bool by_number() const { return by_number_; }
  // 0 when there is no such level.
  double of(std::string_view text) const;
  double of(double number) const;

 private:
  bool by_number_;
  std::vector<std::string> levels_;
  std::unordered_map<std::string_view, double> texts_;
  std::map<double, double> numbers_;
};

// A number as a level is written: the shortest text that reads back as it.
std::string level_text(double number);

// RunError: a column with so many different values is no factor.
RunError too_many_levels(std::size_t most);

}  // namespace starfold

// How large the terms of records can be, from where the values they are made of lie: what needs no look at the records.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "starfold/support/derive.h"

namespace starfold::support {

// Where values lie: an interval for each entry of what a record has, in row-major order with a star of extent 1. Columns of
// one table are of different sizes, so each has its own. Without a shape: one interval for all entries.
struct Box {
  std::optional<Shape> shape;
  std::vector<Interval> entries = {Interval()};
};
// Of each input, by name.
using InputBoxes = std::map<std::string, Box, std::less<>>;

// That of a shared value; nothing is known where an entry is nan.
Box box_of(const Tensor& tensor);

// The largest absolute value that each list of terms can have: for every cell, or one number for all; inf where nobody knows.
std::vector<std::vector<double>> largest_terms(const SupportProgram& support,
                                               const SizeValues& sizes, const InputBoxes& inputs);

}  // namespace starfold::support

// What a formula tells records apart by before a program sees them: comparisons, and signs of numbers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "starfold/formula/terms.h"

namespace starfold::formula {

// How a value differs from what it would be in one case of the choices in it, or the value of those records for which it does not;
// 0 for the others.
struct Distinction {
  Expr told;  // a number for each record whose columns are all there, whatever becomes of the value
  std::string what;  // the value, and the choices of the case
};

// Those of every condition, and of every value that the formula computes from some: the sides, offsets, and products of the
// variables of a term. `is_factor`: a name that stands for levels. Of each value all cases of every two choices, and of every three
// where there are no more than `most` in all. None where there would be more than `in_all` distinctions.
std::optional<std::vector<Distinction>> distinctions_in(
    const Formula& formula, const std::function<bool(const std::string&)>& is_factor,
    std::size_t most, std::size_t in_all);

}  // namespace starfold::formula

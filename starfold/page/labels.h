// What the entries of a result are called: by the columns of the inputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "starfold/ir/ir.h"

namespace starfold::page {

// Names along an axis, plain text; empty: 1, 2, 3, ...
using Labels = std::vector<std::string>;

// The name of a column of ones that a program joins to its inputs.
inline constexpr const char* intercept = "(intercept)";

// What entries along a size are called: the columns of the inputs that have this size, also with a column
// of ones joined to them. Sizes that inputs with different columns share have no names.
using AxisNames = std::map<Size, Labels>;
AxisNames axis_names(const ir::Program& program,
                     const std::map<std::string, std::vector<std::string>>& columns);

// For each output and each of its axes: whether the entries along it are numbered whatever its size,
// because an operation put them in an order of its own. Eigenvalues come in the order of their size,
// however the columns are called that a matrix was made from.
std::vector<std::vector<char>> numbered_axes(const ir::Program& program);

}  // namespace starfold::page

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

// For each output and each of its axes, what the entries along it are called. Names are followed from the
// columns of the inputs through the operations: slices and lookups take theirs along, and what an operation
// puts in an order of its own, such as eigenvalues, has none. Where they cannot be followed, an axis goes by
// its size, if all inputs of that size have the same columns. `sizes` are those of the run, as far as known.
using OutputLabels = std::vector<std::vector<Labels>>;
OutputLabels output_labels(const ir::Program& program,
                           const std::map<std::string, std::vector<std::string>>& columns,
                           const SizeValues& sizes = {});

// The same for a vector that a condition of the program is about, by its place among the traces.
Labels condition_labels(const ir::Program& program, std::size_t place,
                        const std::map<std::string, std::vector<std::string>>& columns,
                        const SizeValues& sizes = {});

}  // namespace starfold::page

// Cases of several choices that are made for each record: a condition is 1 or 0, a sign 1, 0 or -1.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace starfold {

// By choice: what it is; nothing where it stays as it is.
using ChoiceCase = std::vector<std::optional<double>>;

// So many cases of a value at most, of which each takes about as long as the value: where there would be more, those of every two choices must do.
inline constexpr std::size_t most_with_triples = 64;

// All cases of every two of some choices, and of every three as long as there are no more than `most` in all. `values` are those that
// each of them can have.
std::vector<ChoiceCase> joint_cases(const std::vector<std::vector<double>>& values,
                                    std::size_t most);
// How many cases of every two there are.
std::size_t pair_cases(const std::vector<std::vector<double>>& values);

}  // namespace starfold

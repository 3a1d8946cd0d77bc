// Boxes of applications: where each entry of a result lies, entry by entry where cells are small.
#pragma once

#include <optional>
#include <vector>

#include "starfold/ir/ir.h"

namespace starfold::privacy {

// Entries are told apart in cells of at most so many.
inline constexpr std::int64_t most_entries = 4096;

// The box of an application from those of its operands. A fold of the record axis gives the box of what one record adds.
Box box_of(const ir::Program& program, const ir::Node& node, const std::vector<Box>& operands,
           const SizeValues& sizes);

// Where either of two may lie.
Box either(const Box& a, const Box& b);

// How far two values of a box can be apart, from 0 to that.
Box widths(const Box& box);

// No entry is larger than this.
void clamp(Box& box, const Bound& linf);

}  // namespace starfold::privacy

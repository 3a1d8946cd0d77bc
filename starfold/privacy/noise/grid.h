// Grids: how finely what a record adds to a sum is told, so that sums are whole numbers that cannot overflow.
#pragma once

#include <vector>

#include "starfold/privacy/terms.h"

namespace starfold::privacy {

inline constexpr double most_records_in_all = 0x1p30;
inline constexpr double most_units_in_all = 0x1p52;

// An operand of a fold on its grid: what the operation `quantize` is given.
struct Gridded {
  std::size_t operand = 0;  // of the fold
  double grid = 1;          // a power of two
  Tensor lo;                // bounds in units, as many axes as the operand
  Tensor hi;
  double l1 = 0;
  double l2 = 0;
};

// A fold on a grid.
struct GriddedFold {
  ir::NodeId fold = ir::no_node;
  std::vector<Gridded> operands;  // without those that are whole numbers already
  double grid = 1;                // of the sum
  double most = 0;                // units that one record can add to one number
  // How much further apart rounding can bring the sums of neighbours, in units and in L1 or L2; in each, for one record.
  double rounding_l1 = 0;
  double rounding_l2 = 0;
};

// The grid of a fold by `sum`, `@` or a count: the finest on which no sum exceeds its room, and neither does what has `size` in real
// units exceed `most_size` in units of the grid. NotPrivate when that would leave too little of the values.
GriddedFold choose_grid(const Plan& plan, const Bounds& bounds, ir::NodeId fold,
                        const SizeValues& sizes, double size, double most_size);

// The plan with its folds on grids: the same rounds, merges and received values. No record can make it refuse by
// a label or an index.
std::shared_ptr<const Plan> on_grids(const Plan& plan, const std::vector<GriddedFold>& folds);

}  // namespace starfold::privacy

// An operation of plans that release with noise. No program can write it: it puts what a record adds to a sum on a grid.
#pragma once

#include <span>

#include "starfold/signature/op.h"

namespace starfold {

// quantize(e, per_unit, lo, hi, l1, l2): each record's cell of `e` in whole units. Every entry is multiplied by `per_unit`, is 0 where
// it is nan, is held between the entries of `lo` and `hi`, and rounded. Where the cell's L1 or L2 norm then exceeds `l1` or `l2`,
// all of it is scaled down and rounded towards 0 until it does not. So every sum of results is exact, and a record's part in it
// is bounded whatever was computed before.
//
// `lo` and `hi` have as many axes as `e`, each as long as that of `e` or 1, and 1 for the star.
const Op& quantize_op();

namespace meaning {

// An entry in whole units, with bounds that stand on whole or half units.
inline double quantize_entry(double value, double per_unit, double lo, double hi) {
  const double scaled = value * per_unit;
  const double number = scaled == scaled ? scaled : 0;
  const double held = number < lo ? lo : (number > hi ? hi : number);
  constexpr double round = 0x1.8p52;  // added and taken away, it rounds what is below 2^51
  return (held + round) - round;
}

// How much a cell with these sums of magnitudes and of squares must shrink; 1: not at all.
double quantize_factor(double sum, double squares, double l1, double l2);

}  // namespace meaning
}  // namespace starfold

// The merges of covariances: counts, means, and sums of products of deviations, relative to scales at which no
// product of finite numbers overflows or vanishes: so the order of merging never shows.
#pragma once

#include "starfold/merge/monoid.h"

namespace starfold {

// Whether a number of a state is a count.
bool is_whole(double x);

}  // namespace starfold

namespace starfold::monoids {

extern const Monoid
    comoments;  // of the columns of one value with each other: count, means, scales, products
extern const Monoid cross_comoments;  // of two values: count, means and scales of both, products

}  // namespace starfold::monoids

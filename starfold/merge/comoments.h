// The merges of covariances: counts, means, and sums of products of deviations.
#pragma once

#include "starfold/merge/monoid.h"

namespace starfold::monoids {

extern const Monoid
    comoments;  // of the columns of one value with each other: count, means, products
extern const Monoid cross_comoments;  // of two values: count, means of both, products

}  // namespace starfold::monoids

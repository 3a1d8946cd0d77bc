// Products whose order does not show. A product of n doubles needs 53 n bits, so no state of fixed size can hold it; its
// logarithm to 120 bits after the point can be added up, and gives back the nearest double to the product unless that lies
// within about n * 2^-119 of the middle between two.
#pragma once

#include "starfold/merge/wide.h"

namespace starfold::exact {

// The binary logarithm of the magnitude in three words, then how many factors were negative, zero, infinite and nan.
inline constexpr std::size_t factors_words = 7;

void multiply(std::span<wide::Word> factors, double x);
double multiplied(std::span<const wide::Word> factors);

}  // namespace starfold::exact

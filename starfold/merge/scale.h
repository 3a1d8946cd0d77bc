// Arithmetic that neither overflows nor vanishes where the result does not.
#pragma once

#include <span>

namespace starfold {

// The scale of a sum of squares of numbers up to `top` > 0: a power of two, in steps of 2^256, so that squares of
// numbers divided by it lie well inside the range of doubles. It is 1 for all numbers of ordinary size: what a
// client sends then tells nothing of its largest one. nan and infinities have scale 1.
double square_scale(double top);

// Whether a number is such a scale, or the 0 of no numbers.
bool is_square_scale(double x);

// A sum of squares relative to `scale`, relative to another.
double rescaled(double squares, double scale, double to);

// The mean of two groups together, symmetric in them.
double merged_mean(double n_a, double mean_a, double n_b, double mean_b);

// The mean to the last bits, where the sum overflows too; equal numbers give that number.
double stable_mean(std::span<const double> sample);

}  // namespace starfold

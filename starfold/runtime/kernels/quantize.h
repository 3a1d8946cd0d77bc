// Columns in whole units: meaning::quantize_entry for a column at a time.
#pragma once

#include <cstddef>

namespace starfold::kernels {

// What is done to a column of n numbers; columns are as in kernels.h.
struct Quantize {
  // out[i] is x[i] in whole units between lo and hi; nan becomes 0.
  void (*column)(const double* x, double per_unit, double lo, double hi, double* out,
                 std::size_t n);
  // The sums of the magnitudes and of the squares of so many columns, by record.
  void (*norms)(const double* const* x, std::size_t columns, double* sums, double* squares,
                std::size_t n);
};
const Quantize& quantize();

}  // namespace starfold::kernels

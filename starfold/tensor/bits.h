// Equality to the bit: nan is itself, and 0 is not -0.
#pragma once

#include <algorithm>
#include <bit>

#include "starfold/tensor/tensor.h"

namespace starfold {

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape &&
         std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end(),
                    [](double x, double y) {
                      return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
                    });
}

}  // namespace starfold

// What slices of exact sums and products have in common: where they may lie, and when they are not worth it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace starfold::engine::slices {

// Where a slice may lie so that neither it nor a product of two leaves the range of normal numbers.
inline constexpr int highest = 450;
inline constexpr int lowest = -500;

// Fewer records are faster one by one.
inline constexpr std::size_t few_records = 8;

// 2^exponent, of a normal number.
inline double power(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52U);
}

}  // namespace starfold::engine::slices

// Doubles as integers that add up without rounding: two's complement in units of 2^-1074, the smallest double, and wide enough for the
// sum of the largest ones of thousands of clients. A word of its own counts what is not finite.
#pragma once

#include <cstdint>
#include <span>

namespace starfold::secure::fixed_point {

// One word of counters, then 33 of the number: 2098 bits for any double, 13 for the number of clients, one for the sign.
inline constexpr std::uint32_t width = 34;

// `into` has `width` words.
void encode(double value, std::span<std::uint64_t> into);
// The double nearest to what such words add up to, ties to the even one; nan and the infinities as a sum of doubles has them.
double decode(std::span<const std::uint64_t> words);

}  // namespace starfold::secure::fixed_point

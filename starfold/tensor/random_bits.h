// Random bits that depend on a seed and a number only, so that every machine draws the same.
#pragma once

#include <cstdint>
#include <vector>

namespace starfold {

// Operations with the same seed must not share draws; each has a stream of its own.
enum class Stream : std::uint32_t { uniform = 0, normal = 1, batches = 2, clients = 3 };

// A seed is any finite number. A whole number below 2^63 in magnitude is the 64-bit key itself
// (two's complement); any other gives its bit pattern, and `fractional` keeps the two apart.
struct Seed {
  std::uint64_t key = 0;
  bool fractional = false;
};
// RunError when the number is not finite; `what` names who asks.
Seed seed_of(double value, const char* what);

// The 64 random bits of entry i.
std::uint64_t random_bits(const Seed& seed, Stream stream, std::uint64_t i);

// The numbers 0 to count - 1 in a random order; the draws of `turn` are its own.
std::vector<std::uint32_t> shuffled(std::size_t count, const Seed& seed, Stream stream,
                                    std::uint64_t turn = 0);

}  // namespace starfold

// Shamir's scheme over the field of 2^61 - 1 elements: a secret in shares of which any `threshold` give it back and fewer say
// nothing about it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "starfold/secure/secret.h"

namespace starfold::secure {

// Arithmetic of the field. No branch and no address depends on the elements.
namespace field {
inline constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;

std::uint64_t add(std::uint64_t a, std::uint64_t b);
std::uint64_t subtract(std::uint64_t a, std::uint64_t b);
std::uint64_t multiply(std::uint64_t a, std::uint64_t b);
std::uint64_t inverse(std::uint64_t a);  // of 0 it is 0
// The element in 64 random bits, each element alike; none for the one value that would make some more likely.
std::optional<std::uint64_t> element(std::uint64_t random);
}  // namespace field

// A secret of 32 bytes is five elements.
using Share = std::array<std::uint64_t, 5>;

// The shares of a secret for members 0, 1, ...: values at 1, 2, ... of polynomials of degree threshold - 1.
std::vector<Share> split(const Secret& secret, std::size_t threshold, std::size_t members);

// Gives secrets back from shares of the same members; there must be as many as the threshold, or more.
class Joiner {
 public:
  // The members, all different.
  explicit Joiner(std::span<const std::uint32_t> members);
  // Their shares, in the same order. None when they are no shares of a secret.
  std::optional<Secret> join(std::span<const Share> shares) const;

 private:
  std::vector<std::uint64_t> weights_;
};

}  // namespace starfold::secure

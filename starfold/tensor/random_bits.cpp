#include "starfold/tensor/random_bits.h"

#include <bit>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "starfold/base/error.h"
#include "starfold/tensor/philox.h"

namespace starfold {
namespace {

constexpr std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
constexpr std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

// One of 0 to count - 1, for any count below 2^32: the high part of the product with random bits.
std::uint32_t one_of(std::uint64_t count, std::uint64_t random) {
  return high(high(random) * count + high(low(random) * count));
}

}  // namespace

Seed seed_of(double value, const char* what) {
  if (!std::isfinite(value)) {
    throw RunError(std::string(what) + ": the seed must be a finite number");
  }
  if (value == std::trunc(value) && std::fabs(value) < 0x1p63) {
    return {static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), false};
  }
  return {std::bit_cast<std::uint64_t>(value), true};
}

std::uint64_t random_bits(const Seed& seed, Stream stream, std::uint64_t i) {
  const PhiloxCounter counter{low(i), high(i), static_cast<std::uint32_t>(stream),
                              seed.fractional ? 1u : 0u};
  const PhiloxCounter out = philox4x32_10(counter, {low(seed.key), high(seed.key)});
  return std::uint64_t{out[1]} << 32 | out[0];
}

std::vector<std::uint32_t> shuffled(std::size_t count, const Seed& seed, Stream stream,
                                    std::uint64_t turn) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t i = count; i-- > 1;) {
    const std::uint64_t random = random_bits(seed, stream, turn << 32U | i);
    std::swap(order[i], order[one_of(i + 1, random)]);
  }
  return order;
}

}  // namespace starfold

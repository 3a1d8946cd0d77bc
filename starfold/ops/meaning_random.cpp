// Random tensors: entry i depends on the seed and on i only, so every machine draws the same bits.
#include <bit>
#include <cmath>

#include "starfold/base/error.h"
#include "starfold/ops/meaning.h"
#include "starfold/ops/special.h"
#include "starfold/tensor/gather.h"
#include "starfold/tensor/philox.h"

namespace starfold::meaning {
namespace {

// Operations with the same seed must not share draws; each has a stream of its own.
enum class Stream : std::uint32_t { uniform = 0, normal = 1 };

constexpr std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
constexpr std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

// A seed is any finite number. A whole number below 2^63 in magnitude is the 64-bit key itself
// (two's complement); any other gives its bit pattern, and `fractional` keeps the two apart.
struct Seed {
  std::uint64_t key = 0;
  bool fractional = false;
};

Seed seed_of(double value, const char* op) {
  if (!std::isfinite(value)) {
    throw RunError(std::string(op) + ": the seed must be a finite number");
  }
  if (value == std::trunc(value) && std::fabs(value) < 0x1p63) {
    return {static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), false};
  }
  return {std::bit_cast<std::uint64_t>(value), true};
}

// The 64 random bits of entry i.
std::uint64_t bits(const Seed& seed, Stream stream, std::uint64_t i) {
  const PhiloxCounter counter{low(i), high(i), static_cast<std::uint32_t>(stream),
                              seed.fractional ? 1u : 0u};
  const PhiloxCounter out = philox4x32_10(counter, {low(seed.key), high(seed.key)});
  return std::uint64_t{out[1]} << 32 | out[0];
}

// A multiple of 2^-53 in [0, 1).
double to_uniform(std::uint64_t x) { return static_cast<double>(x >> 11) * 0x1p-53; }

// By inversion, at an odd multiple of 2^-53: never 0 or 1, and symmetric about 1/2.
double to_normal(std::uint64_t x) {
  return special::normal_quantile((static_cast<double>(x >> 12) + 0.5) * 0x1p-52);
}

Results draw(const Application& a, Stream stream, double (*map)(std::uint64_t), const char* op) {
  require_reasonable(a.sizes, op);
  const Seed seed = seed_of(a.arg(0).item(), op);
  Tensor result(a.sizes);
  for (std::size_t i = 0; i < result.data.size(); ++i) result.data[i] = map(bits(seed, stream, i));
  return {std::move(result)};
}

}  // namespace

Results uniform(const Application& a) { return draw(a, Stream::uniform, to_uniform, "uniform"); }

Results normal(const Application& a) { return draw(a, Stream::normal, to_normal, "normal"); }

}  // namespace starfold::meaning

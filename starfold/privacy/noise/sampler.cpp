#include "starfold/privacy/noise/sampler.h"

#include <cmath>

#include "starfold/base/error.h"

namespace starfold::privacy {
namespace {

// Draws stop this many scales away from zero, where none ever comes: a Laplace draw gets there once in e^2000, and a Gaussian
// proposal from beyond 64 deviations is accepted once in e^1900.
constexpr std::uint64_t laplace_scales = 2000;
constexpr std::uint64_t gaussian_scales = 64;

unsigned width(Wide x) {
  const auto high = static_cast<std::uint64_t>(x >> 64U);
  const auto low = static_cast<std::uint64_t>(x);
  if (high != 0) return 128U - static_cast<unsigned>(__builtin_clzll(high));
  return low == 0 ? 0 : 64U - static_cast<unsigned>(__builtin_clzll(low));
}

// The largest integer whose square is at most a/b.
std::uint64_t root_floor(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t whole = a / b;
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(whole)));
  while (Wide{root} * root > whole) --root;
  while (Wide{root + 1} * (root + 1) <= whole) ++root;
  return root;
}

bool bernoulli_exp_one(RandomBits& random) { return bernoulli_exp(1, 1, random); }

// exp(-n/d) for n <= d. A draw of n/(dK) is one of n/d and one of 1/K, so that no product can overflow.
bool bernoulli_exp_unit(Wide n, Wide d, RandomBits& random) {
  std::uint64_t k = 1;
  while (bernoulli(n, d, random) && bernoulli(1, k, random)) ++k;
  return (k & 1U) != 0;
}

// Discrete Laplace with scale t/s, between -reach and reach.
std::int64_t laplace(std::uint64_t t, std::uint64_t s, RandomBits& random) {
  for (;;) {
    const auto u = static_cast<std::uint64_t>(below(t, random));
    if (!bernoulli_exp_unit(u, t, random)) continue;
    std::uint64_t v = 0;
    while (v <= laplace_scales && bernoulli_exp_one(random)) ++v;
    if (v > laplace_scales) continue;
    const std::uint64_t magnitude = (u + t * v) / s;
    const bool negative = random.bits(1) != 0;
    if (negative && magnitude == 0) continue;  // zero has one sign
    return negative ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
  }
}

}  // namespace

Wide below(Wide m, RandomBits& random) {
  const unsigned count = width(m - 1);
  for (;;) {
    Wide x = 0;
    if (count > 64) {
      x = Wide{random.bits(count - 64)} << 64U;
      x |= random.word();
    } else if (count > 0) {
      x = random.bits(count);
    }
    if (x < m) return x;
  }
}

bool bernoulli(Wide n, Wide d, RandomBits& random) { return n == d || below(d, random) < n; }

bool bernoulli_exp(Wide n, Wide d, RandomBits& random) {
  for (; n > d; n -= d) {
    if (!bernoulli_exp_unit(1, 1, random)) return false;
  }
  return bernoulli_exp_unit(n, d, random);
}

bool laplace_fits(Ratio scale) {
  return scale.over > 0 && scale.under > 0 && scale.over <= std::uint64_t{1} << 51U;
}

// The numerator of the exponent, (|y| t b - a)^2 with |y| <= 64 t, and its denominator 2 a b t^2 are below 2^128.
bool gaussian_fits(Ratio variance) {
  if (variance.over == 0 || variance.under == 0) return false;
  const long double a = static_cast<long double>(variance.over);
  const long double b = static_cast<long double>(variance.under);
  const long double t = std::sqrt(a / b) + 1;
  const long double most = 0x1p127L;
  return 64 * t * t * b + a < 0x1p63L && 2 * a * b * t * t < most;
}

std::int64_t laplace_reach(Ratio scale) {
  return static_cast<std::int64_t>((laplace_scales + 1) * scale.over / scale.under + 1);
}

std::int64_t gaussian_reach(Ratio variance) {
  return static_cast<std::int64_t>(gaussian_scales *
                                   (root_floor(variance.over, variance.under) + 1));
}

std::int64_t discrete_laplace(Ratio scale, RandomBits& random) {
  if (!laplace_fits(scale)) throw Bug("a scale of Laplace noise is out of range");
  return laplace(scale.over, scale.under, random);
}

std::int64_t discrete_gaussian(Ratio variance, RandomBits& random) {
  if (!gaussian_fits(variance)) throw Bug("a variance of Gaussian noise is out of range");
  const Wide a = variance.over;
  const Wide b = variance.under;
  const std::uint64_t t = root_floor(variance.over, variance.under) + 1;
  const Wide under = 2 * a * b * t * t;
  for (;;) {
    const std::int64_t y = laplace(t, 1, random);
    const Wide magnitude = static_cast<Wide>(y < 0 ? -y : y);
    if (magnitude > gaussian_scales * t) continue;
    const Wide scaled = magnitude * t * b;
    const Wide distance = scaled > a ? scaled - a : a - scaled;
    if (bernoulli_exp(distance * distance, under, random)) return y;
  }
}

}  // namespace starfold::privacy

// Noise on the integers, drawn exactly (Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020). Nothing
// here is computed with floating-point numbers, so there are no low-order bits to give a secret away. How long a draw takes does
// depend on the draw: who can time single draws learns about them.
#pragma once

#include <cstdint>

#include "starfold/privacy/noise/random.h"

namespace starfold::privacy {

__extension__ using Wide = unsigned __int128;

// A positive rational number.
struct Ratio {
  std::uint64_t over = 1;
  std::uint64_t under = 1;
};

// Uniform on 0 .. m - 1; m is not 0.
Wide below(Wide m, RandomBits& random);
// True with probability n/d, where n <= d.
bool bernoulli(Wide n, Wide d, RandomBits& random);
// True with probability exp(-n/d).
bool bernoulli_exp(Wide n, Wide d, RandomBits& random);

// Discrete Laplace: y with probability proportional to exp(-|y| / scale). Bug unless `laplace_fits`.
std::int64_t discrete_laplace(Ratio scale, RandomBits& random);
// Discrete Gaussian: y with probability proportional to exp(-y^2 / (2 variance)). Bug unless `gaussian_fits`.
std::int64_t discrete_gaussian(Ratio variance, RandomBits& random);

// Whether the arithmetic of a draw cannot overflow. Scales up to 2^40 and integer deviations up to 2^28 fit.
bool laplace_fits(Ratio scale);
bool gaussian_fits(Ratio variance);

// The largest magnitude that a draw can have. A draw that would exceed it is begun again: one in e^1900.
std::int64_t laplace_reach(Ratio scale);
std::int64_t gaussian_reach(Ratio variance);

}  // namespace starfold::privacy

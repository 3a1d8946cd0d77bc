// What noise costs, as (epsilon, delta). Every function is an upper bound on the loss of the mechanism it is about, or exact.
//
//   Gaussian    k releases with sensitivities D_i and deviations s_i are together one of sensitivity 1 and deviation 1/mu, with
//               mu^2 = sum (D_i / s_i)^2; its delta at every epsilon is known exactly.
//   zCDP        rho = mu^2 / 2, also for discrete noise; a little larger.
//   RDP         for sums of discrete Gaussians, which are not quite one (Kairouz, Liu, Steinke 2021).
//   pure        epsilons of discrete Laplace noise add up.
#pragma once

#include <cstdint>
#include <vector>

namespace starfold::privacy {

// The smallest delta at an epsilon (which may be negative), the smallest epsilon >= 0 at a delta, and the largest mu that keeps both.
double gaussian_delta(double mu, double epsilon);
double gaussian_epsilon(double mu, double delta);
double gaussian_mu(double epsilon, double delta);

// The same of rho-zCDP.
double zcdp_delta(double rho, double epsilon);
double zcdp_epsilon(double rho, double delta);
double zcdp_rho(double epsilon, double delta);

// The discrete Gaussian of this variance parameter: the sum of exp(-y^2 / (2 variance)) over the integers, the variance it really
// has, and its exact delta for one number of integer sensitivity. For small variances: they sum up terms.
double discrete_gaussian_normalizer(double variance);
double discrete_gaussian_variance(double variance);
double discrete_gaussian_delta(double variance, std::int64_t sensitivity, double epsilon);

// Deviations of discrete Gaussian noise, on the integers, that may be accounted as continuous: a discrete Gaussian of variance v is,
// but for a factor of 1 +- 1e-33 per number, a continuous one of variance v - 4 that was rounded at random, and rounding is
// post-processing (docs/privacy.md has the proof).
inline constexpr double rounding_variance = 4;

// Noise that is the sum of shares: each of `shares` parties adds discrete Gaussian noise of this deviation to its integers.
struct SharedNoise {
  double l1 = 0;  // sensitivities of what is released together
  double l2 = 0;
  double numbers = 0;
  std::int64_t shares = 1;
  double deviation = 1;
  double times = 1;  // it is released so often
};
// How far a sum of discrete Gaussians is from one.
double shared_noise_gap(std::int64_t shares, double deviation);
// Its Renyi divergence of this order, released once.
double shared_noise_rdp(const SharedNoise& noise, double alpha);
// What releases cost together.
double shared_noise_epsilon(const std::vector<SharedNoise>& releases, double delta);

}  // namespace starfold::privacy

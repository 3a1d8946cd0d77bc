// The accountant against figures from the literature and from other accountants (tests/reference/privacy.json).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "starfold/privacy/noise/accountant.h"

namespace starfold::privacy {
namespace {

// To the digits given: half a unit of the last one.
void expect_digits(double value, double expected, double unit) {
  EXPECT_NEAR(value, expected, unit / 2 * 1.0001);
}

TEST(PrivacyAccountant, Gaussian) {
  expect_digits(gaussian_delta(1, -2), .86749642, 1e-8);
  expect_digits(gaussian_delta(1, -1), .67881797, 1e-8);
  expect_digits(gaussian_delta(1, 0), .38292492, 1e-8);
  expect_digits(gaussian_delta(1, 1), .12693674, 1e-8);
  expect_digits(gaussian_delta(1, 2), .020923636, 1e-9);
  expect_digits(gaussian_delta(3, 1), .78760074, 1e-8);
  // Three releases with deviation sqrt(3).
  expect_digits(gaussian_delta(std::sqrt(3 * (1.0 / 3)), 1), .126936, 2e-6);
  expect_digits(1 / gaussian_mu(1, 1e-6), 4.224678889, 1e-9);
  expect_digits(1 / gaussian_mu(1, 1e-5), 3.730631635, 1e-9);
  expect_digits(1 / gaussian_mu(.1, 1e-6), 36.30469043, 1e-8);
  expect_digits(gaussian_epsilon(1, 1e-5), 4.377178096, 1e-9);
}

TEST(PrivacyAccountant, Concentrated) {
  expect_digits(zcdp_delta(.025, 1), 1.3361319064e-6, 1e-16);
  expect_digits(zcdp_epsilon(.025, 1e-6), 1.014074254726, 1e-12);
  expect_digits(zcdp_rho(1, 1e-6), .0243559703595, 1e-13);
  expect_digits(zcdp_epsilon(.5, 1e-5), 4.728386985, 1e-9);
}

TEST(PrivacyAccountant, DiscreteGaussian) {
  expect_digits(discrete_gaussian_delta(1, 1, 1), .141351339406, 1e-12);
  expect_digits(discrete_gaussian_delta(4, 1, 1), .007248776846, 1e-12);
  expect_digits(discrete_gaussian_normalizer(10), 7.926654595212, 1e-12);
  expect_digits(discrete_gaussian_variance(.5), .498979130833, 1e-12);
  expect_digits(shared_noise_gap(100, 1), 5.477887e-4, 1e-10);
}

// What is taken for granted where noise is accounted as continuous: from a deviation of 16 on, the discrete Gaussian loses no more
// than the continuous one with the variance that rounding at random leaves.
TEST(PrivacyAccountant, DiscreteNoiseIsNoWorseThanWhatItIsAccountedAs) {
  for (const double deviation : {16.0, 40.0, 300.0}) {
    for (const std::int64_t sensitivity : {1, 7, 16, 100}) {
      for (const double epsilon : {0.01, 0.5, 1.0, 3.0}) {
        const double variance = deviation * deviation;
        const double mu =
            static_cast<double>(sensitivity) / std::sqrt(variance - rounding_variance);
        EXPECT_LE(discrete_gaussian_delta(variance, sensitivity, epsilon),
                  gaussian_delta(mu, epsilon) + 1e-14)
            << deviation << " " << sensitivity << " " << epsilon;
      }
    }
  }
}

TEST(PrivacyAccountant, EachFunctionUndoesAnother) {
  for (const double epsilon : {0.01, 0.1, 1.0, 8.0}) {
    for (const double delta : {1e-12, 1e-6, 1e-2}) {
      const double mu = gaussian_mu(epsilon, delta);
      EXPECT_LE(gaussian_delta(mu, epsilon), delta);
      EXPECT_GT(gaussian_delta(mu * 1.000001, epsilon), delta);
      EXPECT_NEAR(gaussian_epsilon(mu, delta), epsilon, 1e-8);
      const double rho = zcdp_rho(epsilon, delta);
      EXPECT_LE(zcdp_delta(rho, epsilon), delta);
      EXPECT_NEAR(zcdp_epsilon(rho, delta), epsilon, 1e-8);
      // The exact account never costs more.
      EXPECT_GE(mu * mu / 2, rho);
    }
  }
}

TEST(PrivacyAccountant, SharedNoiseOfOneIsConcentrated) {
  // One share alone is a discrete Gaussian: rho-zCDP.
  const SharedNoise one{5, 5, 1, 1, 50};
  EXPECT_NEAR(shared_noise_epsilon({one}, 1e-6), zcdp_epsilon(.005, 1e-6), 1e-6);
  // Many wide shares are as good as one; narrow ones are worse.
  const SharedNoise wide{5, 5, 1, 25, 10};
  EXPECT_NEAR(shared_noise_epsilon({wide}, 1e-6), zcdp_epsilon(.005, 1e-6), 1e-6);
  const SharedNoise narrow{5, 5, 1, 10000, .5};
  EXPECT_GT(shared_noise_epsilon({narrow}, 1e-6), zcdp_epsilon(.005, 1e-6));
  EXPECT_NEAR(shared_noise_epsilon({wide, wide}, 1e-6), zcdp_epsilon(.01, 1e-6), 1e-6);
  const SharedNoise twice{5, 5, 1, 25, 10, 2};
  EXPECT_NEAR(shared_noise_epsilon({twice}, 1e-6), zcdp_epsilon(.01, 1e-6), 1e-6);
}

TEST(PrivacyAccountant, NothingCostsNothingAndTooMuchIsSaid) {
  EXPECT_EQ(gaussian_delta(0, 1), 0);
  EXPECT_EQ(gaussian_epsilon(0, 1e-6), 0);
  EXPECT_EQ(zcdp_delta(0, 0), 0);
  EXPECT_GT(gaussian_epsilon(100, 1e-6), 4000);
  EXPECT_GT(gaussian_mu(1, 1e-300), 0);
}

TEST(PrivacyAccountant, AgreesWithOtherAccountants) {
  std::ifstream file(STARFOLD_SOURCE_DIR "/tests/reference/privacy.json");
  const nlohmann::json figures = nlohmann::json::parse(file);
  for (const auto& row : figures.at("gaussian"))
    EXPECT_NEAR(gaussian_epsilon(row.at("mu"), row.at("delta")), row.at("epsilon"),
                1e-4 + 2e-3 * row.at("epsilon").get<double>());
  for (const auto& row : figures.at("analytic"))
    EXPECT_NEAR(1 / gaussian_mu(row.at("epsilon"), row.at("delta")), row.at("sigma"),
                1e-5 * row.at("sigma").get<double>());
  for (const auto& row : figures.at("zcdp"))
    EXPECT_NEAR(zcdp_epsilon(row.at("rho"), row.at("delta")), row.at("epsilon"),
                1e-6 * row.at("epsilon").get<double>());
  for (const auto& row : figures.at("rdp"))
    EXPECT_NEAR(zcdp_epsilon(row.at("rho"), row.at("delta")), row.at("epsilon"),
                2e-3 * row.at("epsilon").get<double>());
  for (const auto& row : figures.at("discrete_gaussian"))
    EXPECT_NEAR(
        discrete_gaussian_delta(row.at("variance"), row.at("sensitivity"), row.at("epsilon")),
        row.at("delta"), 1e-9);
}

}  // namespace
}  // namespace starfold::privacy

// The samplers against the distributions they promise. Each test would fail by chance once in a million seeds; the seeds are fixed.
#include <gtest/gtest.h>

#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <functional>
#include <map>

#include "starfold/base/error.h"
#include "starfold/privacy/noise/accountant.h"
#include "starfold/privacy/noise/sampler.h"

namespace starfold::privacy {
namespace {

constexpr double error_rate = 1e-6;

// Pearson's test of integer draws against weights on lo .. hi; what lies outside is one more cell.
void expect_distribution(int draws, int lo, int hi, const std::function<std::int64_t()>& draw,
                         const std::function<double(std::int64_t)>& weight) {
  std::map<std::int64_t, int> seen;
  for (int i = 0; i < draws; ++i) {
    const std::int64_t y = draw();
    ++seen[y < lo || y > hi ? hi + 1 : y];
  }
  double total = 0;
  for (int y = -2000; y <= 2000; ++y) total += weight(y);
  double statistic = 0;
  double inside = 0;
  int cells = 1;
  const auto add = [&](std::int64_t y, double expected) {
    statistic += (seen[y] - expected) * (seen[y] - expected) / expected;
  };
  for (int y = lo; y <= hi; ++y) {
    const double expected = draws * weight(y) / total;
    inside += expected;
    ASSERT_GT(expected, 5) << y;
    add(y, expected);
    ++cells;
  }
  if (draws - inside > 5) add(hi + 1, draws - inside);
  const boost::math::chi_squared law(cells - 1);
  EXPECT_LT(statistic, quantile(complement(law, error_rate)));
}

TEST(PrivacySampler, BelowIsUniform) {
  RandomBits random = RandomBits::for_tests(1);
  for (const int m : {1, 2, 3, 5, 16, 17}) {
    expect_distribution(
        20000, 0, m - 1, [&] { return static_cast<std::int64_t>(below(Wide(m), random)); },
        [&](std::int64_t y) { return y >= 0 && y < m ? 1.0 : 0.0; });
  }
}

// A known mistake: a generator that never yields its top value.
TEST(PrivacySampler, TheTopValueOccurs) {
  RandomBits random = RandomBits::for_tests(2);
  const Wide m = (Wide{3} << 64U) + 2;
  Wide most = 0;
  std::map<int, int> words;
  for (int i = 0; i < 30000; ++i) {
    const Wide x = below(m, random);
    ASSERT_LT(x, m);
    most = std::max(most, x);
    ++words[static_cast<int>(x >> 64U)];
  }
  EXPECT_GT(most, (Wide{3} << 64U) - (Wide{1} << 58U));
  for (int word = 0; word < 3; ++word) EXPECT_NEAR(words[word], 10000, 500);
  bool top = false;
  for (int i = 0; i < 10000; ++i) top = top || random.bits(8) == 255;
  EXPECT_TRUE(top);
}

TEST(PrivacySampler, BernoulliExp) {
  RandomBits random = RandomBits::for_tests(3);
  const std::pair<int, int> cases[] = {{0, 1}, {1, 1}, {1, 3}, {5, 2}, {7, 7}, {9, 4}};
  for (const auto& [n, d] : cases) {
    int yes = 0;
    constexpr int draws = 40000;
    for (int i = 0; i < draws; ++i) yes += bernoulli_exp(Wide(n), Wide(d), random) ? 1 : 0;
    const double p = std::exp(-static_cast<double>(n) / d);
    EXPECT_NEAR(yes, draws * p, 4.9 * std::sqrt(draws * p * (1 - p)) + 1e-9) << n << "/" << d;
  }
}

TEST(PrivacySampler, DiscreteLaplace) {
  RandomBits random = RandomBits::for_tests(4);
  for (const Ratio scale : {Ratio{1, 1}, Ratio{5, 2}, Ratio{2, 3}, Ratio{7, 1}}) {
    const double t = static_cast<double>(scale.over) / static_cast<double>(scale.under);
    const int reach = static_cast<int>(4 * t) + 1;
    expect_distribution(
        100000, -reach, reach, [&] { return discrete_laplace(scale, random); },
        [&](std::int64_t y) { return std::exp(-std::abs(static_cast<double>(y)) / t); });
  }
}

TEST(PrivacySampler, DiscreteGaussian) {
  RandomBits random = RandomBits::for_tests(5);
  for (const Ratio variance : {Ratio{1, 2}, Ratio{1, 1}, Ratio{10, 1}, Ratio{401, 4}}) {
    const double v = static_cast<double>(variance.over) / static_cast<double>(variance.under);
    const int reach = static_cast<int>(3 * std::sqrt(v));
    expect_distribution(
        100000, -reach, reach, [&] { return discrete_gaussian(variance, random); },
        [&](std::int64_t y) {
          return std::exp(-static_cast<double>(y) * static_cast<double>(y) / (2 * v));
        });
  }
}

// The sum of squares over the variance it really has is nearly chi-squared, for the widest noise that fits as well.
TEST(PrivacySampler, VarianceOfWideNoise) {
  RandomBits random = RandomBits::for_tests(6);
  constexpr int draws = 20000;
  for (const std::uint64_t variance : {std::uint64_t{1} << 20U, std::uint64_t{1} << 56U}) {
    double sum = 0;
    double mean = 0;
    for (int i = 0; i < draws; ++i) {
      const auto y = static_cast<double>(discrete_gaussian({variance, 1}, random));
      sum += y * y / static_cast<double>(variance);
      mean += y / std::sqrt(static_cast<double>(variance)) / draws;
    }
    const boost::math::chi_squared law(draws);
    EXPECT_GT(sum, quantile(law, error_rate / 2));
    EXPECT_LT(sum, quantile(complement(law, error_rate / 2)));
    EXPECT_NEAR(mean, 0, 4.9 / std::sqrt(draws));
  }
}

TEST(PrivacySampler, WhatDoesNotFitIsRefused) {
  RandomBits random = RandomBits::for_tests(7);
  EXPECT_TRUE(gaussian_fits({std::uint64_t{1} << 56U, 1}));
  EXPECT_FALSE(gaussian_fits({std::uint64_t{1} << 60U, 1}));
  EXPECT_FALSE(gaussian_fits({0, 1}));
  EXPECT_FALSE(gaussian_fits({1, 0}));
  EXPECT_FALSE(laplace_fits({std::uint64_t{1} << 60U, 1}));
  EXPECT_THROW(discrete_gaussian({std::uint64_t{1} << 60U, 1}, random), Bug);
  EXPECT_THROW(discrete_laplace({0, 1}, random), Bug);
}

TEST(PrivacySampler, OnlyTestsArePredictable) {
  RandomBits a = RandomBits::for_tests(7);
  RandomBits b = RandomBits::for_tests(7);
  RandomBits c = RandomBits::for_tests(8);
  EXPECT_TRUE(a.predictable());
  for (int i = 0; i < 3000; ++i) {  // beyond one buffer
    const std::uint64_t x = a.word();
    EXPECT_EQ(x, b.word());
    EXPECT_NE(x, c.word());
  }
  RandomBits d;
  RandomBits e;
  EXPECT_FALSE(d.predictable());
  EXPECT_NE(d.word(), e.word());
}

}  // namespace
}  // namespace starfold::privacy

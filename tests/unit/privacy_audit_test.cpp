// Audits: how much more likely a result is with one record than without it, measured from outside, for noise wherever it is added. What is
// found is below what was promised, and close enough to it that a mistake by a factor of two would show.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <cmath>

#include "starfold/privacy/private_plan.h"
#include "starfold/starfold.h"

namespace starfold {
namespace {

using privacy::At;
using privacy::PrivatePlan;
using privacy::RandomBits;

constexpr int samples = 60000;

// A lower bound on epsilon that holds with probability 1 - 2e-6: how much more likely a result above a threshold is with one
// record than without it, by the intervals of Clopper and Pearson.
double audited(const std::vector<double>& with, const std::vector<double>& without, double delta) {
  std::vector<double> sorted = with;
  std::sort(sorted.begin(), sorted.end());
  double best = 0;
  for (const double part : {0.5, 0.8, 0.9, 0.97}) {
    const double threshold =
        sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size()))];
    const auto above = [&](const std::vector<double>& all) {
      return static_cast<double>(
          std::count_if(all.begin(), all.end(), [&](double x) { return x > threshold; }));
    };
    const auto n = static_cast<double>(with.size());
    const double k = above(with);
    const double j = above(without);
    const double least = quantile(boost::math::beta_distribution<>(k, n - k + 1), 2.5e-7);
    const double most =
        quantile(complement(boost::math::beta_distribution<>(j + 1, n - j), 2.5e-7));
    best = std::max(best, std::log((least - delta) / most));
  }
  return best;
}

constexpr std::int64_t shares = 3;

PrivatePlan plan_of(double epsilon, double delta, At at) {
  ProgramOptions options;
  options.planning.additive = true;
  const auto program = compile_program(
      {"test.fold", "input y : [*]\noutput s = sum[*](clip(y, 0, 10))\n", {}}, options);
  privacy::Terms terms;
  terms.promise.epsilon = epsilon;
  terms.promise.delta = delta;
  terms.promise.at = at;
  terms.clients = 2 * shares;
  terms.shares = shares;
  return {program->plan, {}, terms};
}

// The sum of some records and this one, as whoever the noise protects against sees it, again and again. Of shares of noise, as few
// are added as the promise allows: those of who works with the server are known to it.
std::vector<double> released(const PrivatePlan& plan, double record, std::uint64_t seed) {
  RandomBits random = RandomBits::for_tests(seed);
  const At at = plan.promise().at;
  std::vector<double> values;
  for (int i = 0; i < samples; ++i) {
    std::vector<MergeState> states = {
        {Tensor::scalar((50 + record) / plan.rounds()[0].merges[0].grid)}};
    if (at != At::output) plan.add_noise(states, 0, random, at == At::distributed ? shares : 1);
    plan.to_values(states, 0);
    std::map<std::string, Tensor> outputs = {{"s", states[0][0]}};
    if (at == At::output) plan.add_noise(outputs, random);
    values.push_back(outputs.at("s").item());
  }
  return values;
}

TEST(PrivacyAudit, FindsNoMoreThanWasPromised) {
  for (const At at : {At::server, At::client, At::output, At::distributed}) {
    for (const double delta : {0.0, 1e-3}) {
      if (at == At::distributed && delta == 0) continue;  // shares are Gauss's
      for (const double epsilon : {0.5, 2.0}) {
        const PrivatePlan plan = plan_of(epsilon, delta, at);
        const double found = audited(released(plan, 10, 3), released(plan, 0, 4), delta);
        EXPECT_LE(found, epsilon) << to_string(at) << " " << delta;
        // Gauss's noise loses that much only where it is nearly impossible; Laplace's everywhere above the mean.
        EXPECT_GT(found, delta == 0 ? 0.85 * epsilon : 0.25 * epsilon)
            << to_string(at) << " " << delta;
      }
    }
  }
}

// A record that counts twice as much as the bound says, as if noise were made for half the sensitivity, is found out.
TEST(PrivacyAudit, HasTeeth) {
  for (const At at : {At::server, At::output}) {
    const PrivatePlan plan = plan_of(1, 0, at);
    EXPECT_GT(audited(released(plan, 20, 5), released(plan, 0, 6), 0), 1.5) << to_string(at);
  }
  const PrivatePlan plan = plan_of(1, 1e-3, At::distributed);
  EXPECT_GT(audited(released(plan, 60, 5), released(plan, 0, 6), 1e-3), 1);
}

}  // namespace
}  // namespace starfold

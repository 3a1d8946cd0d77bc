// What a private run did: for its results, its pages and whoever asks.
#pragma once

#include <string>
#include <vector>

#include "starfold/privacy/private_plan.h"

namespace starfold::privacy {

// One release, with all that left in it together.
struct Release {
  std::uint32_t round = 0;  // of the plan, from 0
  double sensitivity = 0;   // in the norm of the mechanism: L1 for Laplace, L2 for Gauss
  double scale = 0;         // of the noise, for that sensitivity
  double grid = 0;          // the coarsest that noise lies on
  double epsilon = 0;       // spent up to here
};

struct Report {
  Promise promise;
  double epsilon = 0;  // spent
  bool predictable = false;
  std::int64_t clients = 0;
  std::int64_t shares = 0;
  std::vector<PrivateRound> rounds;  // of the plan: what noise is added to in each
  std::vector<Release> releases;     // as they came

  // "discrete_laplace" or "discrete_gaussian".
  std::string_view mechanism() const;
};

// After these rounds, in this order.
Report report_of(const PrivatePlan& plan, const std::vector<std::uint32_t>& ran);

// What is guaranteed, against whom, and what is not: sentences for people.
std::vector<std::string> guarantees(const Promise& promise);

}  // namespace starfold::privacy

// Which round may follow which, as far as the plan alone says: loops may run any number of times.
#pragma once

#include <set>
#include <vector>

#include "starfold/plan/plan.h"

namespace starfold {

struct RoundOrder {
  std::set<int> first;               // rounds that may be the first of a run
  std::vector<std::set<int>> after;  // by round: those that may come next
};

RoundOrder round_order(const Plan& plan);

}  // namespace starfold

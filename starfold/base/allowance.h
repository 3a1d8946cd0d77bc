// So many at once, and then so many a second.
#pragma once

#include <algorithm>

#include "starfold/base/clock.h"

namespace starfold {

class Allowance {
 public:
  Allowance(double at_once, double a_second)
      : most_(at_once), a_second_(a_second), left_(at_once) {}

  // Takes one, if there is one.
  bool take(Clock::time_point now = Clock::now()) {
    const double passed = std::chrono::duration<double>(now - last_).count();
    left_ = std::min(most_, left_ + std::max(0.0, passed) * a_second_);
    last_ = now;
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }

 private:
  double most_;
  double a_second_;
  double left_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace starfold

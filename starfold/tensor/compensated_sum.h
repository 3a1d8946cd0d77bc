// A running sum that carries its own rounding error (Neumaier's form of Kahan's method).
#pragma once

#include <cmath>

namespace starfold {

class CompensatedSum {
 public:
  void add(double x) {
    const double next = sum_ + x;
    error_ += std::fabs(sum_) >= std::fabs(x) ? (sum_ - next) + x : (x - next) + sum_;
    sum_ = next;
  }
  // Once the sum is inf or nan, the error term is meaningless.
  double value() const { return std::isfinite(sum_) ? sum_ + error_ : sum_; }

 private:
  double sum_ = 0;
  double error_ = 0;
};

}  // namespace starfold

// Time that only goes forward.
#pragma once

#include <chrono>

namespace starfold {

using Clock = std::chrono::steady_clock;

// Seconds.
inline double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace starfold

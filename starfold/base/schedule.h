// Places where the order of threads could change. Tests put a function there that yields or sleeps, and expect the same
// results; without one, a place costs one load of a pointer.
#pragma once

#include <atomic>

namespace starfold {

inline std::atomic<void (*)()> at_schedule_points = nullptr;

inline void schedule_point() {
  if (void (*const perturb)() = at_schedule_points.load(std::memory_order_relaxed)) perturb();
}

}  // namespace starfold

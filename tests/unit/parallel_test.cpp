// The one pool of threads: every task once, failures carried, threads kept.
#include "starfold/base/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace starfold {
namespace {

TEST(Parallel, EveryTaskOnce) {
  for (const std::size_t threads : {1U, 2U, 5U}) {
    std::vector<std::atomic<int>> done(1000);
    in_parallel(done.size(), threads, [&](std::size_t task) { ++done[task]; });
    for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
  }
  in_parallel(0, 4, [](std::size_t) { FAIL(); });
}

TEST(Parallel, AnExceptionIsCarriedAndEndsTheWork) {
  std::atomic<int> begun = 0;
  EXPECT_THROW(in_parallel(1'000'000, 3,
                           [&](std::size_t task) {
                             ++begun;
                             if (task == 5) throw std::invalid_argument("no");
                           }),
               std::invalid_argument);
  EXPECT_LT(begun, 1'000'000);
  // What failed leaves the pool as it was.
  std::atomic<int> done = 0;
  in_parallel(10, 3, [&](std::size_t) { ++done; });
  EXPECT_EQ(done, 10);
}

TEST(Parallel, ThreadsAreKept) {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  for (int round = 0; round < 200; ++round) {
    in_parallel(6, 3, [&](std::size_t) {
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
  }
  // Other tests may have started a few; a new one for every round would be hundreds.
  EXPECT_LE(seen.size(), 1 + std::max<std::size_t>(8, hardware_threads()));
}

TEST(Parallel, CallsMayNest) {
  std::atomic<int> done = 0;
  in_parallel(4, 2, [&](std::size_t) { in_parallel(5, 2, [&](std::size_t) { ++done; }); });
  EXPECT_EQ(done, 20);
}

}  // namespace
}  // namespace starfold

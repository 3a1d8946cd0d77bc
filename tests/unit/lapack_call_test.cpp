// LAPACK as several threads call it: which libraries are refused, and that the one that is linked has no threads of its own.
#include "starfold/ops/lapack_call.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>

#include "meaning_testing.h"
#include "starfold/base/schedule.h"
#include "tests/support/sanitized.h"

namespace starfold::testing {
namespace {

using meaning::lapack_refusal;

long threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

const Tensor kMatrix({3, 3}, {4, 1, -2, 1, 3, 0.5, -2, 0.5, 6});
const Tensor kRight = vec({1, 2, 3});

TEST(LapackCall, LibrariesWithLocksAndOneThreadPass) {
  EXPECT_EQ(lapack_refusal("OpenBLAS 0.3.21 DYNAMIC_ARCH Haswell MAX_THREADS=64", 1, 1), "");
  EXPECT_EQ(lapack_refusal("OpenBLAS 0.3.21 USE_LOCKING Haswell SINGLE_THREADED", 0, 1), "");
}

TEST(LapackCall, LibrariesWithoutLocksAreRefused) {
  EXPECT_EQ(lapack_refusal("OpenBLAS 0.3.21 Haswell SINGLE_THREADED", 0, 1),
            "this OpenBLAS (OpenBLAS 0.3.21 Haswell SINGLE_THREADED) was built without locks: "
            "threads that "
            "call it share scratch memory, so that results could be wrong; link the pthread build "
            "(Debian: libopenblas-pthread-dev)");
  EXPECT_NE(lapack_refusal("OpenBLAS 0.3.21 USE_OPENMP Haswell MAX_THREADS=64", 2, 1)
                .find("was built for applications with threads of OpenMP"),
            std::string::npos);
  EXPECT_NE(lapack_refusal("OpenBLAS 0.3.21 Haswell MAX_THREADS=64", 1, 8)
                .find("uses 8 threads of its own"),
            std::string::npos);
}

TEST(LapackCall, TheLibraryStartsNoThreads) {
  const long before = threads_of_process();
  const Tensor big = apply1(meaning::normal, {Tensor::scalar(1)}, {.sizes = {300, 300}});
  apply1(meaning::inv, {big});
  EXPECT_EQ(threads_of_process(), before);
  if (sanitized) return;  // sanitizers bring threads along
  const pid_t child = fork();
  if (child == 0) {
    apply1(meaning::inv, {big});
    _exit(static_cast<int>(threads_of_process()));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

std::atomic<int> inside = 0;
std::atomic<int> most_inside = 0;

// More threads than the library has scratch memory for: the others wait, and each gets the answer.
TEST(LapackCall, MoreThreadsThanPlacesWait) {
  const Tensor want = apply1(meaning::solve, {kMatrix, kRight});
  std::atomic<int> wrong = 0;
  at_schedule_points = [] {  // called inside, once a place was taken
    const int now = ++inside;
    for (int most = most_inside; now > most && !most_inside.compare_exchange_weak(most, now);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --inside;
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 200; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 5; ++k)
          wrong += apply1(meaning::solve, {kMatrix, kRight}).data != want.data ? 1 : 0;
      });
    }
  }
  at_schedule_points = nullptr;
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(most_inside, meaning::lapack_callers);
  EXPECT_GT(most_inside, 1);
}

}  // namespace
}  // namespace starfold::testing

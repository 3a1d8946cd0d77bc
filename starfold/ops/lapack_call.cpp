// cmake/StarfoldBlas.cmake compiles this file too, to check the library before anything is built with it.
#include "starfold/ops/lapack_call.h"

#include <lapacke.h>

#include <cstddef>
#include <cstring>
#include <semaphore>

#include "starfold/base/error.h"
#include "starfold/base/schedule.h"

extern "C" {

char* openblas_get_config(void);
int openblas_get_parallel(void);
int openblas_get_num_threads(void);

// OpenBLAS starts its threads before main, as many as its environment variables say. These functions take the place of
// those that read the variables (openblas_env.c), in the static library that we link: one thread, from the
// start and after a fork, whatever the environment says, and the environment stays as it is for NumPy and others.
void openblas_read_env(void) {}
int openblas_num_threads_env(void) { return 1; }
int openblas_goto_num_threads_env(void) { return 1; }
int openblas_omp_num_threads_env(void) { return 1; }
int openblas_omp_adaptive_env(void) { return 0; }
int openblas_block_factor(void) { return 0; }
int openblas_verbose(void) { return 0; }
unsigned openblas_thread_timeout(void) { return 0; }

// The one function of the Fortran runtime that these routines of LAPACK call: joins two strings, padded with spaces.
__attribute__((weak)) void _gfortran_concat_string(std::size_t length, char* result,
                                                   std::size_t first_length, const char* first,
                                                   std::size_t second_length, const char* second) {
  const std::size_t from_first = first_length < length ? first_length : length;
  const std::size_t room = length - from_first;
  const std::size_t from_second = second_length < room ? second_length : room;
  std::memcpy(result, first, from_first);
  std::memcpy(result + from_first, second, from_second);
  std::memset(result + from_first + from_second, ' ', room - from_second);
}

}  // extern "C"

namespace starfold::meaning {
namespace {

std::counting_semaphore<lapack_callers> free_places{lapack_callers};

// LAPACKE reads LAPACKE_NANCHECK at its first call, without a lock; here it is set once, to what it is by default.
std::string refusal_of_linked() {
  LAPACKE_set_nancheck(1);
  return lapack_refusal(openblas_get_config(), openblas_get_parallel(), openblas_get_num_threads());
}

}  // namespace

std::string lapack_refusal(std::string_view config, int parallel, int threads) {
  const std::string seen = "this OpenBLAS (" + std::string(config) + ") ";
  const std::string rule =
      ", so that results could be wrong; link the pthread build (Debian: libopenblas-pthread-dev)";
  if (parallel == 2) return seen + "was built for applications with threads of OpenMP" + rule;
  if (parallel == 0 && config.find("USE_LOCKING") == std::string_view::npos)
    return seen + "was built without locks: threads that call it share scratch memory" + rule;
  if (threads != 1)
    return seen + "uses " + std::to_string(threads) +
           " threads of its own: Starfold must be linked before it, and it must be the static "
           "library";
  return "";
}

LapackCall::LapackCall() {
  static const std::string refusal = refusal_of_linked();
  if (!refusal.empty()) throw RunError("linear algebra: " + refusal);
  free_places.acquire();
  schedule_point();
}

LapackCall::~LapackCall() { free_places.release(); }

}  // namespace starfold::meaning

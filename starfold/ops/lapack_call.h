// How LAPACK is entered: by threads of ours only, never by threads of its own.
#pragma once

#include <string>
#include <string_view>

namespace starfold::meaning {

// Stands in scope around every call of LAPACK. The first one checks the library that was linked: RunError if
// several threads must not call it. At most `lapack_callers` threads are inside at once; others wait.
class LapackCall {
 public:
  LapackCall();
  ~LapackCall();
  LapackCall(const LapackCall&) = delete;
  LapackCall& operator=(const LapackCall&) = delete;
};

// OpenBLAS has scratch memory for at least 50 callers (NUM_BUFFERS in its common.h).
inline constexpr int lapack_callers = 48;

// Why several threads must not call an OpenBLAS that describes itself so; empty if they may. The arguments are what
// openblas_get_config, openblas_get_parallel (0: serial, 1: pthreads, 2: OpenMP) and openblas_get_num_threads return.
std::string lapack_refusal(std::string_view config, int parallel, int threads);

}  // namespace starfold::meaning

// Run at configure time over the linear algebra that the library will be linked with. Prints why it must not be used, or nothing.
#include <lapacke.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iterator>

#include "starfold/ops/lapack_call.h"

extern "C" {
char* openblas_get_config(void);
int openblas_get_parallel(void);
int openblas_get_num_threads(void);
}

namespace {

// Where there is no /proc, one.
long threads_of_process() {
  std::error_code none;
  const std::filesystem::directory_iterator tasks("/proc/self/task", none);
  return none ? 1 : std::distance(begin(tasks), end(tasks));
}

bool solves() {
  double matrix[] = {4, 1, 1, 3};
  if (LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', 2, matrix, 2) != 0) return false;
  return matrix[0] == 2 && matrix[2] == 0.5;
}

}  // namespace

int main() {
  const std::string refusal = starfold::meaning::lapack_refusal(
      openblas_get_config(), openblas_get_parallel(), openblas_get_num_threads());
  if (!refusal.empty()) {
    std::printf("%s", refusal.c_str());
    return 1;
  }
  if (threads_of_process() != 1 || !solves() || threads_of_process() != 1) {
    std::printf("this OpenBLAS starts threads of its own, or gives a wrong Cholesky factor");
    return 1;
  }
  const pid_t child = fork();
  if (child == 0) _exit(solves() && threads_of_process() == 1 ? 0 : 1);
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    std::printf("this OpenBLAS starts threads of its own after a fork");
    return 1;
  }
  return 0;
}

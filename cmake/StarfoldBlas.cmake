# Linear algebra: LAPACK of OpenBLAS, by LAPACKE. Several threads of ours call it at once, each for a matrix of its own. So it must be a build
# with locks (the pthread one), and it must not start threads itself: starfold/ops/lapack_call.cpp sees to that in the
# static library. Static also means that nothing on a machine where Starfold runs can put another build in its place, that NumPy's OpenBLAS in
# the same process keeps its own settings, and that a short command does not spend its time on resolving symbols.

find_library(STARFOLD_OPENBLAS libopenblas.a PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread NO_DEFAULT_PATH)
find_library(STARFOLD_OPENBLAS NAMES libopenblas.a libopenblasp.a REQUIRED)
# The static LAPACKE as well: the shared one brings the reference LAPACK along.
find_library(STARFOLD_LAPACKE NAMES liblapacke.a REQUIRED)

set(STARFOLD_BLAS ${STARFOLD_LAPACKE} ${STARFOLD_OPENBLAS})

# Checked again when another library is named or installed.
file(TIMESTAMP ${STARFOLD_OPENBLAS} blas_time)
set(blas_checked "${STARFOLD_BLAS} ${blas_time}")
if(NOT STARFOLD_BLAS_CHECKED STREQUAL blas_checked)
  try_run(blas_result blas_links
    SOURCES ${CMAKE_SOURCE_DIR}/cmake/blas_check.cpp ${CMAKE_SOURCE_DIR}/starfold/ops/lapack_call.cpp
    CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${CMAKE_SOURCE_DIR}
    LINK_LIBRARIES ${STARFOLD_BLAS} Threads::Threads m
    COMPILE_OUTPUT_VARIABLE blas_compiler_said
    RUN_OUTPUT_VARIABLE blas_said
    NO_CACHE)
  if(NOT blas_links)
    message(FATAL_ERROR "${STARFOLD_OPENBLAS} does not link with ${STARFOLD_LAPACKE}:\n${blas_compiler_said}")
  endif()
  if(NOT blas_result STREQUAL 0)
    message(FATAL_ERROR "${STARFOLD_OPENBLAS}: ${blas_said}")
  endif()
  set(STARFOLD_BLAS_CHECKED "${blas_checked}" CACHE INTERNAL "The linear algebra that was last checked")
endif()

# Tests, examples, benchmarks and fuzzers. Each function does nothing while its folder is empty.

# tests/<folder>/*.cpp become one GoogleTest binary, <folder>_tests ("laws" gives law_tests), run as several shards so
# that ctest can use every core. Results per case go to results/ in the build folder, where tools/test reads them.
# BUSY: they compute much themselves; what others do is little beside what they ask of the library, so that where the build
# should be quick they are not optimized.
function(starfold_gtest folder)
  cmake_parse_arguments(arg "BUSY" "SHARDS" "" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*.cpp)
  if(NOT sources)
    return()
  endif()
  find_package(GTest REQUIRED)
  string(REGEX REPLACE "s$" "" target ${folder})
  set(target ${target}_tests)
  add_executable(${target} ${sources})
  if((starfold_quick OR STARFOLD_SANITIZE) AND NOT arg_BUSY)
    target_compile_options(${target} PRIVATE -O0)
  else()
    starfold_compile_lightly(${target})
  endif()
  starfold_precompile(${target} <gtest/gtest.h>)
  target_link_libraries(${target} PRIVATE starfold starfold_duckdb GTest::gtest GTest::gtest_main)
  add_custom_target(${folder} DEPENDS ${target})
  target_compile_definitions(${target} PRIVATE STARFOLD_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  starfold_test_shards(${folder} ${target} SHARDS ${arg_SHARDS})
endfunction()

# Registers one run of a GoogleTest binary. Further configurations of the same suite are one line each:
#   starfold_test_shards(golden-no-opt golden_tests SHARDS 2 ENVIRONMENT STARFOLD_OPT=0)
function(starfold_test_shards name target)
  cmake_parse_arguments(arg "" "SHARDS" "ENVIRONMENT" ${ARGN})
  math(EXPR last "${arg_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(test ${name}.${shard})
    add_test(NAME ${test} COMMAND ${target} --gtest_brief=1)
    set(environment GTEST_TOTAL_SHARDS=${arg_SHARDS} GTEST_SHARD_INDEX=${shard}
                    GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/results/${test}.xml ${arg_ENVIRONMENT})
    set_tests_properties(${test} PROPERTIES
      LABELS ${name} TIMEOUT 600 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} ENVIRONMENT "${environment}")
  endforeach()
endfunction()

# examples/*.cpp: one program each, which must run and exit with 0.
function(starfold_examples)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/*.cpp)
  add_custom_target(example)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(example_${name} ${source})
    add_dependencies(example example_${name})
    target_link_libraries(example_${name} PRIVATE starfold)
    add_test(NAME example.${name} COMMAND example_${name})
    set_tests_properties(example.${name} PROPERTIES
      LABELS example TIMEOUT 120 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  endforeach()
endfunction()

# bench/*.cpp: Starfold and the limits of the machine as contestants of bench/run.
function(starfold_contestant)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*.cpp)
  add_executable(starfold_contestant ${sources})
  target_link_libraries(starfold_contestant PRIVATE starfold starfold_duckdb)
endfunction()

# bench/micro/*.cpp: one Google Benchmark binary, for parts of the library alone.
function(starfold_benchmarks)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/micro/*.cpp)
  find_package(benchmark REQUIRED)
  add_executable(starfold_bench ${sources})
  target_link_libraries(starfold_bench PRIVATE starfold starfold_duckdb benchmark::benchmark_main)
  target_compile_definitions(starfold_bench PRIVATE STARFOLD_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
endfunction()

# fuzz/<name>_fuzzer.cpp: one libFuzzer binary each; seeds in fuzz/corpus/<name>_fuzzer/.
function(starfold_fuzzers)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/*_fuzzer.cpp)
  target_compile_options(starfold PRIVATE -fsanitize=fuzzer-no-link)
  add_custom_target(fuzzers)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    add_dependencies(fuzzers ${name})
    target_link_libraries(${name} PRIVATE starfold starfold_duckdb)
    target_compile_definitions(${name} PRIVATE STARFOLD_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endforeach()
  # The programs of the differential fuzzer are those of the laws.
  file(GLOB generator CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/laws/generator*.cpp)
  target_sources(differential_fuzzer PRIVATE ${generator} ${CMAKE_SOURCE_DIR}/tests/laws/outcome.cpp)
endfunction()

# How every target is compiled: warnings, sanitizers, compiler cache.

add_library(starfold_compiler INTERFACE)

set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns about its own std::string operator+ (GCC bug 105651), and with -O3 about values inside empty
  # std::optional (GCC bug 80635).
  list(APPEND warnings -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(STARFOLD_WERROR)
  list(APPEND warnings -Werror)
endif()
target_compile_options(starfold_compiler INTERFACE ${warnings})

if(STARFOLD_SANITIZE)
  set(sanitize -fsanitize=${STARFOLD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_compile_options(${sanitize})
  add_link_options(${sanitize})
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

# Paths in messages and debug information are relative to the repository, which also lets copies of it in different
# places share one compiler cache.
file(RELATIVE_PATH source_from_build ${CMAKE_BINARY_DIR} ${CMAKE_SOURCE_DIR}/)  # ccache makes paths relative
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/= -ffile-prefix-map=${source_from_build}=)
find_program(CCACHE ccache)

# Where there is no compiler cache, headers that most files include are compiled once instead: that saves a third of a build
# from nothing. Not both: precompiled headers differ from folder to folder, and would keep copies from sharing a cache.
if(CCACHE)
  set(precompile OFF)
else()
  set(precompile ON)
endif()
option(STARFOLD_PRECOMPILE "Precompile common headers instead of using a compiler cache" ${precompile})
if(CCACHE AND NOT STARFOLD_PRECOMPILE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()

# Further headers may follow the target.
function(starfold_precompile target)
  if(STARFOLD_PRECOMPILE)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # GCC 12 no longer knows that its own headers are not ours, and warns about its std::string.
      target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
    endif()
    target_precompile_headers(${target} PRIVATE
      <algorithm> <cmath> <cstdint> <functional> <map> <memory> <optional> <set> <string> <string_view> <variant> <vector>
      <fmt/format.h> <fmt/ranges.h> ${ARGN})
  endif()
endfunction()

# Without a compiler cache the files of a folder are also compiled together, some at a time, which halves a build from nothing:
# names in the unnamed namespaces of one folder must differ. Those that have reasons to stand alone say so by SKIP_UNITY_BUILD_INCLUSION.
if(STARFOLD_PRECOMPILE)
  target_compile_options(starfold_compiler INTERFACE -Wno-shadow)  # what one file names has no bearing on the next
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(starfold_compiler INTERFACE -Wno-subobject-linkage)
  endif()
endif()
function(starfold_compile_together target)
  if(NOT STARFOLD_PRECOMPILE OR STARFOLD_SANITIZE)  # sanitized builds are for files as they are
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" group)
    math(EXPR count_${group} "0${count_${group}} + 1")
    math(EXPR part "${count_${group}} / 8")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${part})
  endforeach()
endfunction()

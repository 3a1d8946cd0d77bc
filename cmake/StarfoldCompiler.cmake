# How every target is compiled: warnings, sanitizers, compiler cache.

add_library(starfold_compiler INTERFACE)

# The files of a folder compiled as one: what they include is read once, which halves a build from nothing. So names are unique
# within a folder. Where there is a compiler cache, single files are quicker.
find_program(CCACHE ccache)
if(CCACHE)
  set(unity OFF)
else()
  set(unity ON)
endif()
option(STARFOLD_UNITY "Compile the files of a folder as one" ${unity})

set(warnings -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion)
if(NOT STARFOLD_UNITY)  # there, names of another file would be meant
  list(APPEND warnings -Wshadow)
endif()
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

# Those in `apart` are compiled alone, as are the kernels, which include themselves once for each instruction set.
function(starfold_unity target)
  cmake_parse_arguments(arg "" "" "SOURCES;APART" ${ARGN})
  if(NOT STARFOLD_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS arg_SOURCES)
    file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${source})
    get_filename_component(folder ${path} DIRECTORY)
    if(NOT path IN_LIST arg_APART AND NOT folder MATCHES "/kernels$")
      string(REPLACE "/" "_" group ${folder})
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
endfunction()

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

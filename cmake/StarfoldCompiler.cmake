# How every target is compiled: warnings, sanitizers, compiler cache.

add_library(starfold_compiler INTERFACE)

set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns about its own std::string operator+ (GCC bug 105651), and with -O3 about values inside empty
  # std::optional (GCC bug 80635).
  list(APPEND warnings -Wno-restrict -Wno-maybe-uninitialized)
endif()

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

# Warnings take a seventh of the time. They do not help who only wants the command, and where sanitizers look the same code was
# compiled with them before.
if(STARFOLD_WERROR)
  list(APPEND warnings -Werror)
endif()
if(STARFOLD_SANITIZE OR (STARFOLD_PRECOMPILE AND STARFOLD_COMMAND_ONLY))
  set(warnings -w)
endif()
target_compile_options(starfold_compiler INTERFACE ${warnings})

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
# Such a build is made once, to be used: it has no debug information (cmake -DSTARFOLD_PRECOMPILE=OFF for those who want it).
if(STARFOLD_PRECOMPILE)
  target_compile_options(starfold_compiler INTERFACE -Wno-shadow)  # what one file names has no bearing on the next
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(starfold_compiler INTERFACE -Wno-subobject-linkage)
  endif()
  if(NOT STARFOLD_SANITIZE)
    add_compile_options(-g0)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Up to a gigabyte for each compiler, which looks for garbage less often: a tenth of its time.
    add_compile_options(--param=ggc-min-expand=300 --param=ggc-min-heapsize=600000)
  endif()
endif()
# In such a build, what need not be fast is optimized less: a quarter of its time.
set(starfold_quick OFF)
if(STARFOLD_PRECOMPILE AND NOT STARFOLD_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  set(starfold_quick ON)
endif()
function(starfold_compile_lightly target)
  if(starfold_quick)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

function(starfold_compile_together target)
  if(NOT STARFOLD_PRECOMPILE)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(most 110000)  # bytes: more take longer than all others when they come last
  set(part 0)
  set(filled 0)
  set(last_folder "")
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_source_file_property(alone ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(alone OR NOT EXISTS ${source})
      continue()
    endif()
    get_filename_component(folder ${source} DIRECTORY)
    file(SIZE ${source} size)
    math(EXPR filled "${filled} + ${size}")
    if(NOT folder STREQUAL last_folder OR filled GREATER most)
      math(EXPR part "${part} + 1")
      set(filled ${size})
      set(last_folder ${folder})
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${part})
  endforeach()
endfunction()

# The Python module and what its wheel holds beside it, as `pip install .` asks for them (pyproject.toml). Everything is installed
# below the package's folder: the module, the command in bin, DuckDB and the shared libraries of the system that both need in lib.

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                OUTPUT_VARIABLE nanobind_ROOT COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

file(GLOB module_sources CONFIGURE_DEPENDS python/src/*.cpp)
nanobind_add_module(starfold_python NB_STATIC NOMINSIZE ${module_sources})
set_target_properties(starfold_python PROPERTIES OUTPUT_NAME _engine LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
target_link_libraries(starfold_python PRIVATE starfold)
# nanobind's headers are not ours, nor are Python's: no warnings from there.
target_include_directories(starfold_python SYSTEM PRIVATE ${nanobind_ROOT}/../include ${NB_DIR}/include ${Python_INCLUDE_DIRS})
# Of the old kind, which also holds for what the libraries need themselves.
target_link_options(starfold_python PRIVATE -Wl,--disable-new-dtags -Wl,--exclude-libs,ALL)
set_target_properties(starfold_python PROPERTIES INSTALL_RPATH "$ORIGIN/lib/starfold" INSTALL_RPATH_USE_LINK_PATH OFF)
install(TARGETS starfold_python LIBRARY DESTINATION .)

# The libraries that a machine with Python alone does not have. Not the C++ runtime: a process has one, and others may need a newer one.
install(CODE "set(module \"$<TARGET_FILE:starfold_python>\")")
install(CODE [[
  file(GET_RUNTIME_DEPENDENCIES
    MODULES ${module}
    RESOLVED_DEPENDENCIES_VAR found
    UNRESOLVED_DEPENDENCIES_VAR missing
    PRE_EXCLUDE_REGEXES "^ld-linux" "^libc\\.so" "^libm\\.so" "^libdl\\.so" "^libpthread\\.so" "^librt\\.so" "^libpython" "^libstdc" "^libgcc_s" "^libz\\.so")
  foreach(library IN LISTS found)
    get_filename_component(name ${library} NAME)
    file(REAL_PATH ${library} real)
    file(INSTALL FILES ${real} DESTINATION "${CMAKE_INSTALL_PREFIX}/lib/starfold" RENAME ${name})
  endforeach()
]])

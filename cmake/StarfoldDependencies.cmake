# What the library is linked with. tools/setup installs all of it on Debian.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(Boost REQUIRED)  # headers only
find_package(hwy REQUIRED)
set(OPENSSL_USE_STATIC_LIBS TRUE)  # a few functions of it: not worth a shared library at every start
find_package(OpenSSL REQUIRED)
find_library(STARFOLD_MINIZIP minizip REQUIRED)
find_library(STARFOLD_ZLIB z REQUIRED)

include(StarfoldBlas)

add_library(starfold_dependencies INTERFACE)
target_link_libraries(starfold_dependencies INTERFACE
  Threads::Threads fmt::fmt nlohmann_json::nlohmann_json tomlplusplus::tomlplusplus
  Boost::headers hwy::hwy hwy::hwy_contrib OpenSSL::Crypto
  ${STARFOLD_MINIZIP} ${STARFOLD_ZLIB} ${STARFOLD_BLAS})

# DuckDB is loaded when a table is first opened, never linked: only its header is needed here. The library is
# installed beside the command, where starfold/data/duckdb/library.cpp looks for it.
set(duckdb_folder ${CMAKE_SOURCE_DIR}/build/deps/duckdb)
if(NOT EXISTS ${duckdb_folder}/duckdb.h)
  execute_process(COMMAND ${CMAKE_SOURCE_DIR}/tools/fetch-duckdb COMMAND_ERROR_IS_FATAL ANY)
endif()
add_library(starfold_duckdb INTERFACE)
target_include_directories(starfold_duckdb SYSTEM INTERFACE ${duckdb_folder})
target_link_libraries(starfold_duckdb INTERFACE ${CMAKE_DL_LIBS})
file(GLOB duckdb_files ${duckdb_folder}/libduckdb.so ${duckdb_folder}/*.duckdb_extension)
foreach(file IN LISTS duckdb_files)
  file(REAL_PATH ${file} real_file)  # a DuckDB of the system is a link here
  get_filename_component(name ${file} NAME)
  install(FILES ${real_file} DESTINATION lib/starfold RENAME ${name})
endforeach()

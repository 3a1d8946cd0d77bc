# What the library is linked with. tools/setup installs all of it on Debian.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(Boost REQUIRED)  # headers only
find_package(hwy REQUIRED)

# One thread per worker: prefer the serial OpenBLAS even where another variant is the default.
find_library(STARFOLD_OPENBLAS openblas
             PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-serial NO_DEFAULT_PATH)
find_library(STARFOLD_OPENBLAS openblas REQUIRED)
find_library(STARFOLD_LAPACKE lapacke REQUIRED)

add_library(starfold_dependencies INTERFACE)
target_link_libraries(starfold_dependencies INTERFACE
  Threads::Threads fmt::fmt nlohmann_json::nlohmann_json tomlplusplus::tomlplusplus
  Boost::headers hwy::hwy hwy::hwy_contrib ${STARFOLD_LAPACKE} ${STARFOLD_OPENBLAS})

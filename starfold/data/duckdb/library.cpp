#include "starfold/data/duckdb/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "starfold/base/error.h"
#include "starfold/data/table.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

// The folders of the running program and of the object that holds this code (the Python module, say).
std::vector<fs::path> own_folders() {
  std::vector<fs::path> folders;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(program.parent_path());
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&own_folders), &info) != 0 &&
      info.dli_fname != nullptr) {
    const fs::path object = fs::canonical(info.dli_fname, error);
    if (!error && object != program) folders.push_back(object.parent_path());
  }
  return folders;
}

void* open_library() {
  for (const fs::path& folder : own_folders()) {
    // Beside the program, where `cmake --install` puts it, and in the build tree.
    for (const char* place : {"libduckdb.so", "../lib/starfold/libduckdb.so",
                              "lib/starfold/libduckdb.so", "../deps/duckdb/libduckdb.so"}) {
      std::error_code error;
      const fs::path path = folder / place;
      if (!fs::exists(path, error)) continue;
      if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
  }
  if (void* library = dlopen("libduckdb.so", RTLD_NOW | RTLD_LOCAL)) return library;
  throw RunError(
      "tables are read with DuckDB, and libduckdb.so is neither beside the program, in "
      "../lib/starfold nor installed; tools/fetch-duckdb brings it");
}

std::atomic<const char*> loaded_version = nullptr;

DuckdbFunctions load() {
  void* library = open_library();
  const auto find = [library](const char* name) {
    void* function = dlsym(library, name);
    if (function == nullptr) {
      throw RunError(
          fmt::format("the DuckDB found here has no {}; version 1.4 or later is needed", name));
    }
    return function;
  };
  DuckdbFunctions functions;
#define STARFOLD_FIND(name) \
  functions.name = reinterpret_cast<decltype(functions.name)>(find("duckdb_" #name));
  STARFOLD_DUCKDB_FUNCTIONS(STARFOLD_FIND)
#undef STARFOLD_FIND
  return functions;
}

}  // namespace

const DuckdbFunctions& duckdb() {
  static const DuckdbFunctions functions = [] {
    DuckdbFunctions all = load();
    loaded_version = all.library_version();
    return all;
  }();
  return functions;
}

std::string loaded_duckdb_version() {
  const char* version = loaded_version;
  return version == nullptr ? "" : version;
}

std::string duckdb_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(duckdb().query), &info) == 0) return "";
  return fs::path(info.dli_fname).parent_path().string();
}

}  // namespace starfold

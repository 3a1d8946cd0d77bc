#include "starfold/editor/library_files.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "starfold/base/embedded_lib.h"
#include "starfold/base/hash.h"

namespace starfold::editor {
namespace {

namespace fs = std::filesystem;

bool holds(const fs::path& path, std::string_view text) {
  std::ifstream in(path, std::ios::binary);
  return in && std::string(std::istreambuf_iterator<char>(in), {}) == text;
}

// Whole or not at all, and not to be edited: a changed copy would not be what programs call.
bool write(const fs::path& path, std::string_view text) {
  const fs::path fresh = path.string() + "." + std::to_string(::getpid());
  std::error_code failed;
  fs::remove(fresh, failed);
  {
    std::ofstream out(fresh, std::ios::binary);
    out << text;
    if (!out.flush()) return false;
  }
  fs::permissions(fresh, fs::perms::owner_read | fs::perms::group_read, failed);
  fs::rename(fresh, path, failed);
  return !failed;
}

}  // namespace

std::string library_folder() {
  std::string all;
  for (const EmbeddedModule& module : embedded_modules()) all += module.text;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  fs::path folder;
  if (cache != nullptr && fs::path(cache).is_absolute()) {
    folder = cache;
  } else if (home != nullptr && fs::path(home).is_absolute()) {
    folder = fs::path(home) / ".cache";
  } else {
    return "";
  }
  return (folder / "starfold" / ("lib-" + sha256_hex(all).substr(0, 12))).string();
}

std::string library_file(const std::string& folder, const std::string& name) {
  if (folder.empty()) return "";
  for (const EmbeddedModule& module : embedded_modules()) {
    const std::string below = std::string(module.name) + ".fold";
    if ("lib/" + below != name) continue;
    const fs::path path = fs::path(folder) / below;
    std::error_code failed;
    fs::create_directories(path.parent_path(), failed);
    return holds(path, module.text) || write(path, module.text) ? path.string() : "";
  }
  return "";
}

}  // namespace starfold::editor

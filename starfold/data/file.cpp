#include "starfold/data/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "starfold/base/error.h"

namespace starfold {

void require_readable(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) throw RunError(fmt::format("{} does not exist", path));
  if (fs::is_directory(path, ignored))
    throw RunError(fmt::format("{} is a folder, not a file", path));
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw RunError(fmt::format("{} cannot be opened: {}", path, std::strerror(errno)));
  close(file);
}

}  // namespace starfold

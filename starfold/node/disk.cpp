#include "starfold/node/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"

namespace starfold {

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

std::string system_reason() { return std::strerror(errno); }

Descriptor open_regular(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) {
    if (errno == ENOENT) return file;
    throw RunError(fmt::format("{} cannot be opened: {}", printable(path), system_reason()));
  }
  struct stat info {};
  if (::fstat(file.number(), &info) != 0 || !S_ISREG(info.st_mode))
    throw RunError(fmt::format("{} is not a regular file", printable(path)));
  return file;
}

std::string read_regular(const std::string& path, std::size_t most) {
  const Descriptor file = open_regular(path);
  if (!file) throw RunError(fmt::format("{} does not exist", printable(path)));
  std::string text;
  char buffer[1 << 14];
  while (text.size() <= most) {
    const ssize_t count = ::read(file.number(), buffer, sizeof buffer);
    if (count == 0) return text;
    if (count < 0 && errno != EINTR)
      throw RunError(fmt::format("{} cannot be read: {}", printable(path), system_reason()));
    if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
  }
  throw RunError(fmt::format("{} has more than {} bytes", printable(path), most));
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void sync_folder(const std::string& folder) {
  const std::string path = folder.empty() ? "." : folder;
  const Descriptor open(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open || ::fsync(open.number()) != 0)
    throw RunError(fmt::format("{} cannot be synced: {}", printable(path), system_reason()));
}

void write_lasting(const std::string& path, std::string_view bytes) {
  std::string fresh = path + ".XXXXXX";
  const Descriptor file(::mkostemp(fresh.data(), O_CLOEXEC));
  if (file && write_all(file.number(), bytes) && ::fsync(file.number()) == 0 &&
      ::rename(fresh.c_str(), path.c_str()) == 0) {
    sync_folder(std::filesystem::path(path).parent_path().string());
    return;
  }
  const std::string reason = system_reason();
  if (file) ::unlink(fresh.c_str());
  throw RunError(fmt::format("{} cannot be written: {}", printable(path), reason));
}

void make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), S_IRWXU) == 0) {
    sync_folder(std::filesystem::path(path).parent_path().string());
    return;
  }
  const std::string reason = system_reason();
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    throw RunError(fmt::format("the folder {} cannot be made: {}", printable(path), reason));
  if (!S_ISDIR(info.st_mode)) throw RunError(fmt::format("{} is not a folder", printable(path)));
}

}  // namespace starfold

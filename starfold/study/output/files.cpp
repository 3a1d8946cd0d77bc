#include "starfold/study/output/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "starfold/base/utf8.h"
#include "starfold/node/disk.h"
#include "starfold/study/study.h"

namespace starfold {
namespace {

[[noreturn]] void fail(const std::string& path, const char* what, const std::string& why) {
  throw StudyError(
      fmt::format("{} cannot be {}: {}", path.empty() ? "''" : printable(path), what, why));
}

std::string reason(int error) { return error == EISDIR ? "it is a folder" : std::strerror(error); }

// Closes a file at the end of a scope.
struct File {
  int number;
  ~File() {
    if (number > STDERR_FILENO) ::close(number);
  }
};

}  // namespace

std::string read_text(const std::string& path, std::size_t most) {
  const File file{path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (file.number >= 0 && text.size() <= most) {
    const ssize_t count = ::read(file.number, buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count < 0 && errno != EINTR) break;
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  if (text.size() > most) return text;
  fail(path, "read", reason(errno));
}

void replace_text(const std::string& path, std::string_view text) {
  // A link stays a link: what it points to is replaced.
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  struct stat before {};
  if (error || ::stat(target.c_str(), &before) != 0)
    fail(path, "written", reason(error ? error.value() : errno));
  if (!S_ISREG(before.st_mode)) fail(path, "written", "it is not a regular file");
  std::string fresh = target.string() + ".XXXXXX";
  const File file{::mkstemp(fresh.data())};
  if (file.number >= 0 && write_all(file.number, text) &&
      ::fchmod(file.number, before.st_mode & 07777U) == 0 && ::fsync(file.number) == 0 &&
      ::rename(fresh.c_str(), target.c_str()) == 0) {
    return;
  }
  const int failure = errno;
  if (file.number >= 0) ::unlink(fresh.c_str());
  fail(path, "written", reason(failure));
}

}  // namespace starfold

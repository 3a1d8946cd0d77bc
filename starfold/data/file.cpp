#include "starfold/data/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"

namespace starfold {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileStamp stamp_of(const struct stat& info) {
  return {info.st_dev, info.st_ino, info.st_size, nanoseconds(info.st_mtim),
          nanoseconds(info.st_ctim)};
}

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw RunError(fmt::format("{} {}", printable(path), why));
}

// Opens without waiting: a pipe nobody writes to must not hang the run.
int open_regular(const std::string& path, FileStamp& stamp) {
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (number < 0) {
    fail(path, errno == ENOENT ? "does not exist"
                               : fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  struct stat info {};
  if (::fstat(number, &info) == 0 && S_ISREG(info.st_mode)) {
    stamp = stamp_of(info);
    return number;
  }
  ::close(number);
  fail(path, S_ISDIR(info.st_mode) ? "is a folder, not a file"
                                   : "is not a regular file, which could be read more than once");
}

}  // namespace

OpenFile::OpenFile(int number, FileStamp stamp, std::string path)
    : number_(number), stamp_(stamp), path_(std::move(path)) {}

OpenFile::OpenFile(OpenFile&& other) noexcept
    : number_(std::exchange(other.number_, -1)),
      stamp_(other.stamp_),
      path_(std::move(other.path_)) {}

OpenFile::~OpenFile() {
  if (number_ >= 0) ::close(number_);
}

std::size_t OpenFile::read_at(std::int64_t offset, char* to, std::size_t size) const {
  while (true) {
    const ssize_t count = ::pread(number_, to, size, offset);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) fail(path_, fmt::format("cannot be read: {}", std::strerror(errno)));
  }
}

void OpenFile::require_unchanged() const {
  struct stat info {};
  if (::fstat(number_, &info) != 0 || stamp_of(info) != stamp_)
    fail(path_, "changed while it was read");
}

std::string OpenFile::exact_path() const { return fmt::format("/proc/self/fd/{}", number_); }

DataFile::DataFile(std::string path) : path_(std::move(path)) {
  const OpenFile file(open_regular(path_, stamp_), stamp_, path_);
}

void DataFile::settle() const {
  // The kernel's clock of file times moves in steps of a few milliseconds. A file that was written to within
  // the last step could be written to again without a new time.
  constexpr std::int64_t step = 20'000'000;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t age = nanoseconds(now) - stamp_.changed;
  if (age >= 0 && age < step) std::this_thread::sleep_for(std::chrono::nanoseconds(step - age));
}

OpenFile DataFile::open() const {
  FileStamp stamp;
  OpenFile file(open_regular(path_, stamp), stamp_, path_);
  file.require_unchanged();
  return file;
}

std::string read_whole(const DataFile& file, std::int64_t most) {
  if (file.size() > most) fail(file.path(), "is too large for the memory given; raise --memory");
  const OpenFile open = file.open();
  std::string bytes(static_cast<std::size_t>(file.size()), '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const std::size_t count = open.read_at(static_cast<std::int64_t>(filled), bytes.data() + filled,
                                           bytes.size() - filled);
    if (count == 0) break;
    filled += count;
  }
  open.require_unchanged();
  if (filled < bytes.size()) fail(file.path(), "changed while it was read");
  return bytes;
}

}  // namespace starfold

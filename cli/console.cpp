#include "cli/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "starfold/base/utf8.h"
#include "starfold/diag/render.h"
#include "starfold/syntax/parser.h"

namespace starfold::cli {
namespace {

bool output_failed = false;

void complain_about(const std::string& what, const std::string& path, int error) {
  complain(fmt::format("cannot {} {}: {}", what, path.empty() ? "''" : path, std::strerror(error)));
}

// Closes a file descriptor at the end of a scope.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number > STDERR_FILENO) ::close(number);
  }
};

// Everything up to one byte more than a program may have; nullopt with errno set on failure.
std::optional<std::string> read_all(int file) {
  std::string text;
  char buffer[1 << 16];
  while (text.size() <= max_source_bytes) {
    const ssize_t count = ::read(file, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

std::optional<std::string> read_program(const std::string& path) {
  const Descriptor file{path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) {
    complain_about("read", path, errno);
    return std::nullopt;
  }
  std::optional<std::string> text = read_all(file.number);
  if (!text) complain_about("read", path, errno);
  return text;
}

bool replace_file(const std::string& path, std::string_view text) {
  // A link stays a link: what it points to is replaced.
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  struct stat before {};
  if (error || ::stat(target.c_str(), &before) != 0) {
    complain_about("write", path, error ? error.value() : errno);
    return false;
  }
  if (!S_ISREG(before.st_mode)) {
    complain(fmt::format("cannot write {}: not a regular file", path));
    return false;
  }
  std::string fresh = target.string() + ".XXXXXX";
  const Descriptor file{::mkstemp(fresh.data())};
  const bool written = file.number >= 0 && write_all(file.number, text) &&
                       ::fchmod(file.number, before.st_mode & 07777) == 0 &&
                       ::fsync(file.number) == 0 && ::rename(fresh.c_str(), target.c_str()) == 0;
  if (written) return true;
  const int reason = errno;
  if (file.number >= 0) ::unlink(fresh.c_str());
  complain_about("write", path, reason);
  return false;
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && errno != EPIPE)
    output_failed = true;
}

void print_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

void complain(std::string_view message) {
  print_error(fmt::format("starfold: {}\n", printable(message)));
}

bool finish_output() {
  if (std::fflush(stdout) != 0 && errno != EPIPE) output_failed = true;
  if (output_failed) complain("cannot write to standard output");
  return !output_failed;
}

void print_diagnostics(const Diagnostics& diagnostics, const SourceMap& sources) {
  const bool color = ::isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  print_error(render_text(diagnostics, sources, color));
  if (diagnostics.dropped() > 0)
    print_error(fmt::format("\n... and {} more\n", diagnostics.dropped()));
}

std::string shown_name(const std::string& path) { return path == "-" ? "standard input" : path; }

}  // namespace starfold::cli

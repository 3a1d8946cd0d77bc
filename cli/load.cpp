#include "cli/load.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "starfold/base/embedded_lib.h"
#include "starfold/base/utf8.h"
#include "starfold/diag/render.h"
#include "starfold/syntax/parser.h"

namespace starfold::cli {

namespace {

void print_file_error(const std::string& path, const char* what, const std::string& why) {
  fmt::print(stderr, "error: {} cannot be {}: {}\n", path.empty() ? "''" : printable(path), what,
             why);
}

std::string reason(int error) { return error == EISDIR ? "it is a folder" : std::strerror(error); }

// Closes a file at the end of a scope.
struct File {
  int number;
  ~File() {
    if (number > STDERR_FILENO) ::close(number);
  }
};

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

std::optional<std::string> read_text(const std::string& path) {
  const File file{path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (file.number >= 0 && text.size() <= max_source_bytes) {
    const ssize_t count = ::read(file.number, buffer.data(), buffer.size());
    if (count == 0) return text;
    if (count < 0 && errno != EINTR) break;
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  if (text.size() > max_source_bytes) return text;
  print_file_error(path, "read", reason(errno));
  return std::nullopt;
}

bool replace_text(const std::string& path, std::string_view text) {
  // A link stays a link: what it points to is replaced.
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  struct stat before {};
  if (error || ::stat(target.c_str(), &before) != 0) {
    print_file_error(path, "written", reason(error ? error.value() : errno));
    return false;
  }
  if (!S_ISREG(before.st_mode)) {
    print_file_error(path, "written", "it is not a regular file");
    return false;
  }
  std::string fresh = target.string() + ".XXXXXX";
  const File file{::mkstemp(fresh.data())};
  if (file.number >= 0 && write_all(file.number, text) &&
      ::fchmod(file.number, before.st_mode & 07777U) == 0 && ::fsync(file.number) == 0 &&
      ::rename(fresh.c_str(), target.c_str()) == 0) {
    return true;
  }
  print_file_error(path, "written", reason(errno));
  if (file.number >= 0) ::unlink(fresh.c_str());
  return false;
}

void print_diagnostics(const Diagnostics& diagnostics, const SourceMap& sources) {
  const bool color = isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  fmt::print(stderr, "{}", render_text(diagnostics, sources, color));
  if (diagnostics.dropped() > 0) fmt::print(stderr, "\n... and {} more\n", diagnostics.dropped());
}

std::optional<NamedText> find_program(const std::string& name) {
  std::error_code ignored;
  if (!std::filesystem::exists(name, ignored)) {
    for (const EmbeddedModule& file : embedded_modules()) {
      if (file.name == fmt::format("{}{}", library_programs, name)) {
        return NamedText{fmt::format("lib/{}.fold", file.name), std::string(file.text)};
      }
    }
  }
  std::optional<std::string> text = read_text(name);
  return text ? std::optional<NamedText>({name, std::move(*text)}) : std::nullopt;
}

std::shared_ptr<const CompiledProgram> load_program(const std::string& file, bool json) {
  std::optional<NamedText> named = find_program(file);
  if (!named) return nullptr;
  ProgramOptions options;
  options.load = modules_beside(file);
  std::shared_ptr<const CompiledProgram> program =
      compile_program({named->name, std::move(named->text), {}}, options);
  const Compilation& compilation = program->compilation;
  print_diagnostics(compilation.diagnostics, compilation.sources);
  if (json && !compilation.ok()) {
    const nlohmann::json object = {
        {"ok", false}, {"diagnostics", render_json(compilation.diagnostics, compilation.sources)}};
    fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return program;
}

void print_run_error(const RunError& error, const SourceMap& sources, bool json) {
  fmt::print(stderr, "error: {}\n", printable_lines(error.what()));
  nlohmann::json object = {{"error", error.what()}};
  if (error.where()) {
    const Source& source = sources[error.where()->file];
    const Position at = source.position(error.where()->begin);
    fmt::print(stderr, "  --> {}:{}:{}\n   |\n{:>2} | {}\n   |\n", source.name(), at.line,
               at.column, at.line, source.line(at.line));
    object["line"] = at.line;
  }
  if (json)
    fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace starfold::cli

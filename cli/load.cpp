#include "cli/load.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "starfold/base/embedded_lib.h"
#include "starfold/diag/render.h"

namespace starfold::cli {

std::optional<std::string> read_text(const std::string& path) {
  std::error_code ignored;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!std::filesystem::is_directory(path, ignored) && in) text << in.rdbuf();
  if (std::filesystem::is_directory(path, ignored) || !in || in.bad()) {
    fmt::print(stderr, "error: {} cannot be read{}\n", path, std::filesystem::is_directory(path, ignored) ? ": it is a folder" : "");
    return std::nullopt;
  }
  return text.str();
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
  std::shared_ptr<const CompiledProgram> program = compile_program({named->name, std::move(named->text), {}}, options);
  const Compilation& compilation = program->compilation;
  fmt::print(stderr, "{}", render_text(compilation.diagnostics, compilation.sources, isatty(STDERR_FILENO) != 0));
  if (json && !compilation.ok()) {
    const nlohmann::json object = {{"ok", false}, {"diagnostics", render_json(compilation.diagnostics, compilation.sources)}};
    fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return program;
}

void print_run_error(const RunError& error, const SourceMap& sources, bool json) {
  fmt::print(stderr, "error: {}\n", error.what());
  nlohmann::json object = {{"error", error.what()}};
  if (error.where()) {
    const Source& source = sources[error.where()->file];
    const Position at = source.position(error.where()->begin);
    fmt::print(stderr, "  --> {}:{}:{}\n   |\n{:>2} | {}\n   |\n", source.name(), at.line, at.column, at.line, source.line(at.line));
    object["line"] = at.line;
  }
  if (json) fmt::print("{}\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace starfold::cli

#include "cli/load.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

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

std::shared_ptr<const CompiledProgram> load_program(const std::string& file, bool json) {
  std::optional<std::string> text = read_text(file);
  if (!text) return nullptr;
  ProgramOptions options;
  options.load = modules_beside(file);
  std::shared_ptr<const CompiledProgram> program = compile_program({file, std::move(*text), {}}, options);
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

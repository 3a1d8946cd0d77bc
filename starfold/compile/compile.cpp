#include "starfold/compile/compile.h"

#include <filesystem>
#include <fstream>

#include "starfold/diff/differentiate.h"
#include "starfold/syntax/parser.h"

namespace starfold {

Compilation compile(std::string name, std::string text, const CheckOptions& options) {
  Compilation result;
  const std::uint32_t file = result.sources.add(std::move(name), std::move(text));
  const ast::File parsed = parse(result.sources, file, result.diagnostics);
  result.program = check(result.sources, parsed, options, result.diagnostics);
  if (!result.ok()) return result;
  ir::verify(result.program, "check");
  result.program = differentiate(result.program, result.diagnostics);
  result.diagnostics.sort();
  ir::verify(result.program, "differentiate");
  return result;
}

ModuleLoader modules_beside(const std::string& program_path) {
  const std::filesystem::path folder = std::filesystem::path(program_path).parent_path();
  return [folder](std::string_view module) -> std::optional<std::pair<std::string, std::string>> {
    const std::filesystem::path path = folder / (std::string(module) + ".fold");
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
    std::ifstream in(path, std::ios::binary);
    // Of one that is too large no more than shows it.
    std::string text(max_source_bytes + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (in.bad()) return std::nullopt;
    text.resize(static_cast<std::size_t>(in.gcount()));
    return std::make_pair(path.string(), std::move(text));
  };
}

}  // namespace starfold

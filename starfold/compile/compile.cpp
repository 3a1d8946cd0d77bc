#include "starfold/compile/compile.h"

#include <filesystem>
#include <fstream>
#include <sstream>

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
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) return std::nullopt;
    return std::make_pair(path.string(), text.str());
  };
}

}  // namespace starfold

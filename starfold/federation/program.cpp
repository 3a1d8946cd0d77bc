#include "starfold/federation/program.h"

namespace starfold {

std::shared_ptr<const CompiledProgram> compile_program(ProgramText text,
                                                       const ProgramOptions& options) {
  auto result = std::make_shared<CompiledProgram>();
  result->text = std::move(text);
  result->planning = options.planning;
  CheckOptions check;
  check.signature = options.signature;
  check.base = options.base;
  check.load = [&](std::string_view module) -> std::optional<std::pair<std::string, std::string>> {
    const auto found = result->text.modules.find(std::string(module));
    if (found != result->text.modules.end())
      return std::make_pair(found->first + ".fold", found->second);
    if (!options.load) return std::nullopt;
    std::optional<std::pair<std::string, std::string>> loaded = options.load(module);
    if (loaded) result->text.modules.emplace(module, loaded->second);
    return loaded;
  };
  result->compilation = compile(result->text.name, result->text.text, check);
  if (result->compilation.ok()) {
    result->plan =
        std::make_shared<const Plan>(make_plan(result->compilation.program, options.planning));
    result->hash = plan_hash(*result->plan);
  }
  return result;
}

}  // namespace starfold

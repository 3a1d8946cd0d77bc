#include "starfold/study/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "starfold/base/embedded_lib.h"
#include "starfold/base/suggest.h"
#include "starfold/base/utf8.h"
#include "starfold/study/files.h"
#include "starfold/study/study.h"
#include "starfold/syntax/parser.h"

namespace starfold {
namespace {

// Whether a name could be that of a ready-made program: no path, no extension.
bool is_bare_word(const std::string& name) {
  return name != "-" && !name.empty() && !std::filesystem::path(name).has_parent_path() &&
         !std::filesystem::path(name).has_extension();
}

// Programs that may be meant, or all there are.
std::string near_programs(const std::string& name) {
  const std::vector<std::string> all = library_program_names();
  std::vector<std::string> near;
  for (const std::string& program : all) {
    const std::string_view known = program;
    const bool inside = name.size() > 2 &&
                        (known.find(name) != known.npos || name.find(program) != std::string::npos);
    if (inside) near.push_back(program);
  }
  if (const std::string word = nearest(name, all); near.empty() && !word.empty())
    near.push_back(word);
  return near.empty() ? fmt::format("there are {}", fmt::join(all, ", "))
                      : fmt::format("did you mean {}?", fmt::join(near, " or "));
}

ProgramText find_program(const std::string& name) {
  std::error_code ignored;
  if (!std::filesystem::exists(name, ignored)) {
    for (const EmbeddedModule& file : embedded_modules()) {
      if (file.name == fmt::format("{}{}", library_programs, name))
        return {fmt::format("lib/{}.fold", file.name), std::string(file.text), {}};
    }
  }
  if (is_bare_word(name) && !std::filesystem::exists(name, ignored))
    throw StudyError(fmt::format("there is no file {}, and no ready-made program of that name; {}",
                                 printable(name), near_programs(name)));
  return {name, read_text(name, max_source_bytes), {}};
}

// The module `model` in its text without an intercept, unless there is one of that name beside the program.
ModuleLoader without_intercept(ModuleLoader beside) {
  return [beside = std::move(beside)](
             std::string_view module) -> std::optional<std::pair<std::string, std::string>> {
    auto found = beside(module);
    if (found || module != "model") return found;
    for (const EmbeddedModule& file : embedded_modules()) {
      if (file.name == "model/no_intercept")
        return std::pair(fmt::format("lib/{}.fold", file.name), std::string(file.text));
    }
    return std::nullopt;
  };
}

}  // namespace

std::vector<std::string> library_program_names() {
  std::vector<std::string> names;
  for (const EmbeddedModule& file : embedded_modules()) {
    if (file.name.starts_with(library_programs))
      names.emplace_back(file.name.substr(library_programs.size()));
  }
  return names;
}

std::shared_ptr<const CompiledProgram> open_program(const std::string& name, ProgramOptions options,
                                                    Intercept intercept) {
  options.load = modules_beside(name);
  if (intercept == Intercept::none) options.load = without_intercept(std::move(options.load));
  return compile_program(find_program(name), options);
}

std::shared_ptr<const CompiledProgram> open_program(const Study& study, ProgramOptions options) {
  options.planning.exact = options.planning.exact || study.exact;
  // What is masked must add up, as the integers of an exact run do by themselves.
  if (study.secure && !options.planning.exact) options.planning.additive = true;
  if (study.privacy) options.planning.additive = true;  // noise is added to sums
  const bool none = !study.formula.empty() && !has_intercept(study.formula);
  return open_program(study.program, std::move(options), none ? Intercept::none : Intercept::usual);
}

std::shared_ptr<const CompiledProgram> open_program(const Study& study, ProgramText text) {
  ProgramOptions options;
  options.load = modules_beside(text.name);
  options.planning.exact = study.exact;
  if (!study.formula.empty() && !has_intercept(study.formula)) {
    options.load = without_intercept(std::move(options.load));
    text.modules.clear();  // they are found again
  }
  return compile_program(std::move(text), options);
}

}  // namespace starfold

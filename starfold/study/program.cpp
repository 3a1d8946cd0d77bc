#include "starfold/study/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "starfold/base/analyses.h"
#include "starfold/base/embedded_lib.h"
#include "starfold/base/suggest.h"
#include "starfold/base/utf8.h"
#include "starfold/study/output/files.h"
#include "starfold/study/study.h"
#include "starfold/syntax/parser.h"

namespace starfold {
namespace {

// Whether a name could be that of a ready-made program: no path, no extension.
bool is_bare_word(const std::string& name) {
  return name != "-" && !name.empty() && !std::filesystem::path(name).has_parent_path() &&
         !std::filesystem::path(name).has_extension();
}

// Programs that may be meant by a name: what other software calls so, the same written otherwise, one that has it in its
// name, or a typing slip.
std::vector<std::string> programs_near(const std::string& name) {
  const std::vector<std::string> all = library_program_names();
  std::vector<std::string> near;
  if (const Analysis* known = find_analysis(name)) {
    std::istringstream programs{std::string(known->programs)};
    for (std::string program; programs >> program;) near.push_back(program);
    return near;
  }
  std::copy_if(all.begin(), all.end(), std::back_inserter(near),
               [&](const std::string& program) { return same_analysis(program, name); });
  if (!near.empty()) return near;
  if (name.size() > 2) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(near), [&](const std::string& program) {
      return program.find(name) != program.npos || name.find(program) != name.npos;
    });
  }
  if (const std::string word = nearest(name, all); near.empty() && !word.empty())
    near.push_back(word);
  return near;
}

// A line `A  # with NAME: B` is B where NAME is given.
std::string with_given(std::string_view text, const std::set<std::string>& given) {
  constexpr std::string_view mark = "# with ";
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    const std::size_t at = line.find(mark);
    const std::size_t colon = line.find(": ", at == line.npos ? line.size() : at);
    if (colon != line.npos) {
      const std::string name(line.substr(at + mark.size(), colon - at - mark.size()));
      const std::size_t indent = line.find_first_not_of(' ');
      if (given.count(name) != 0) {
        result += line.substr(0, indent);
        line.remove_prefix(colon + 2);
      }
    }
    result += line;
  }
  return result;
}

ProgramText find_program(const std::string& name, const std::set<std::string>& given) {
  std::error_code ignored;
  if (!std::filesystem::exists(name, ignored)) {
    for (const EmbeddedModule& file : embedded_modules()) {
      if (file.name == fmt::format("{}{}", library_programs, name))
        return {fmt::format("lib/{}.fold", file.name), with_given(file.text, given), {}};
    }
  }
  const bool program = is_bare_word(name) || (!std::filesystem::path(name).has_parent_path() &&
                                              find_analysis(name) != nullptr);
  if (program && !std::filesystem::exists(name, ignored))
    throw StudyError(fmt::format("there is no file {}, and no ready-made program of that name; {}",
                                 printable(name), near_programs(name)));
  return {name, read_text(name, max_source_bytes), {}};
}

// The inputs for which a study has columns, as far as it says so itself.
std::set<std::string> given_inputs(const Study& study) {
  std::set<std::string> given;
  for (const auto& [input, choice] : study.bindings) given.insert(input);
  if (!study.formula.empty() && has_offset(study.formula)) given.insert("offset");
  return given;
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

std::string near_programs(const std::string& name) {
  const std::vector<std::string> near = programs_near(name);
  if (!near.empty()) return fmt::format("did you mean {}?", fmt::join(near, " or "));
  const Analysis* known = find_analysis(name);
  return known != nullptr ? fmt::format("in a program, {}", known->inside)
                          : "`starfold lib` lists what there is";
}

std::shared_ptr<const CompiledProgram> open_program(const std::string& name, ProgramOptions options,
                                                    Intercept intercept,
                                                    const std::set<std::string>& given) {
  options.load = modules_beside(name);
  if (intercept == Intercept::none) options.load = without_intercept(std::move(options.load));
  return compile_program(find_program(name, given), options);
}

std::shared_ptr<const CompiledProgram> open_program(const Study& study, ProgramOptions options) {
  options.planning.exact = options.planning.exact || study.exact;
  // What is masked must add up, as the integers of an exact run do by themselves.
  if (study.secure && !options.planning.exact) options.planning.additive = true;
  if (study.privacy) options.planning.additive = true;  // noise is added to sums
  const bool none = !study.formula.empty() && !has_intercept(study.formula);
  return open_program(study.program, std::move(options), none ? Intercept::none : Intercept::usual,
                      given_inputs(study));
}

bool has_optional_input(std::string_view text, const std::string& name) {
  return text.find(fmt::format("# with {}: input ", name)) != text.npos;
}

std::shared_ptr<const CompiledProgram> open_program(const Study& study, ProgramText text,
                                                    const std::set<std::string>& arrays) {
  ProgramOptions options;
  options.load = modules_beside(text.name);
  options.planning.exact = study.exact;
  std::set<std::string> given = given_inputs(study);
  given.insert(arrays.begin(), arrays.end());
  if (text.name.starts_with(fmt::format("lib/{}", library_programs)))
    text.text = with_given(text.text, given);
  if (!study.formula.empty() && !has_intercept(study.formula)) {
    options.load = without_intercept(std::move(options.load));
    text.modules.clear();  // they are found again
  }
  return compile_program(std::move(text), options);
}

}  // namespace starfold

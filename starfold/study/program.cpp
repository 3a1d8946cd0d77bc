#include "starfold/study/program.h"

#include <fmt/format.h>

#include <filesystem>

#include "starfold/base/embedded_lib.h"
#include "starfold/study/files.h"
#include "starfold/syntax/parser.h"

namespace starfold {
namespace {

ProgramText find_program(const std::string& name) {
  std::error_code ignored;
  if (!std::filesystem::exists(name, ignored)) {
    for (const EmbeddedModule& file : embedded_modules()) {
      if (file.name == fmt::format("{}{}", library_programs, name))
        return {fmt::format("lib/{}.fold", file.name), std::string(file.text), {}};
    }
  }
  return {name, read_text(name, max_source_bytes), {}};
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

std::shared_ptr<const CompiledProgram> open_program(const std::string& name,
                                                    ProgramOptions options) {
  options.load = modules_beside(name);
  return compile_program(find_program(name), options);
}

}  // namespace starfold

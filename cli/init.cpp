// starfold init: a commented study file for a program and data.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "cli/commands.h"
#include "cli/output.h"
#include "starfold/base/error.h"
#include "starfold/study/look/propose.h"
#include "starfold/study/study.h"

namespace starfold::cli {
namespace {

void write_new_file(const std::string& path, const std::string& text) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored))
    throw StudyError(fmt::format("{} exists already and is not overwritten", path));
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.flush();
  if (!out) throw RunError(fmt::format("{} cannot be written", path));
}

int init(const StudyProposal& arguments) {
  Study study;
  study.program = arguments.program;
  const std::shared_ptr<const CompiledProgram> program = load_program(study, false);
  if (!program->plan) return exit_refused;
  const std::string text = propose_study(arguments, program->compilation.program);
  if (arguments.out.empty()) {
    say(text);
  } else {
    write_new_file(arguments.out, text);
  }
  return exit_done;
}

}  // namespace

void add_init(CommandLine& line) {
  auto arguments = std::make_shared<StudyProposal>();
  Command command = line.add("init", "write a study file for a program and data",
                             [arguments] { return init(*arguments); });
  command.required("PROGRAM", arguments->program, "a program, or the name of a library program");
  command.required("DATA", arguments->data, "NAME=PATH or PATH: the data of each client");
  command.option("--out", arguments->out, "write to this new file instead of standard output");
}

}  // namespace starfold::cli

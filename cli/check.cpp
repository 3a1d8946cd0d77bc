// starfold check: parse, type, plan; the type of every name and what would leave each client.
#include "cli/commands.h"
#include "cli/output.h"
#include "starfold/study/check_report.h"
#include "starfold/study/facts.h"
#include "starfold/study/options.h"
#include "starfold/study/program.h"

namespace starfold::cli {
namespace {

struct Arguments {
  std::string file;
  bool base = false;
  bool json = false;
  std::string print;  // the intermediate form to show instead; empty for none
};

int check(const Arguments& arguments) {
  ProgramOptions options;
  options.base = arguments.base;
  const Study study = make_study({.file = arguments.file});
  const auto program = open_program(study, options);
  const Compilation& compilation = program->compilation;
  print_diagnostics(compilation.diagnostics, compilation.sources);
  std::optional<StudyFacts> facts;
  if (program->plan && is_study(arguments.file)) facts = study_facts(study, compilation.program);
  const StudyFacts* known = facts ? &*facts : nullptr;
  if (!arguments.print.empty()) {
    say(intermediate_form(arguments.print, *program));
  } else if (arguments.json) {
    say(check_json(*program, known));
  } else if (program->plan) {
    say(check_text(*program, known));
  }
  return compilation.ok() ? exit_done : exit_refused;
}

}  // namespace

void add_check(CommandLine& line) {
  auto arguments = std::make_shared<Arguments>();
  Command command =
      line.add("check", "show the type of every name, and what would leave each client",
               [arguments] { return check(*arguments); });
  command.required(
      "FILE", arguments->file,
      "a program (a file, - for standard input, or the name of a library program), or a "
      "study (.toml)");
  command.flag("--base", arguments->base,
               "also reject what lies outside the paper's base signature");
  command.flag("--json", arguments->json, "print one JSON object");
  command.choice("--print", arguments->print, {"ast", "ir", "plan", "blocks"},
                 "show an intermediate form instead: ast, ir, plan or blocks");
  command.exclusive({"--json", "--print"});
}

}  // namespace starfold::cli

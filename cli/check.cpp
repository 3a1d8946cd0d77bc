// starfold check: parse, type, plan; the type of every name and what would leave each client.
#include "cli/commands.h"
#include "cli/output.h"
#include "starfold/study/check_report.h"
#include "starfold/study/program.h"

namespace starfold::cli {
namespace {

struct Arguments {
  std::string file;
  bool base = false;
  bool json = false;
};

int check(const Arguments& arguments) {
  ProgramOptions options;
  options.base = arguments.base;
  const auto program = open_program(arguments.file, options);
  const Compilation& compilation = program->compilation;
  print_diagnostics(compilation.diagnostics, compilation.sources);
  if (arguments.json) {
    say(check_json(*program));
  } else if (program->plan) {
    say(check_text(*program));
  }
  return compilation.ok() ? exit_done : exit_refused;
}

}  // namespace

void add_check(CommandLine& line) {
  auto arguments = std::make_shared<Arguments>();
  Command command =
      line.add("check", "show the type of every name, and what would leave each client",
               [arguments] { return check(*arguments); });
  command.required("FILE", arguments->file,
                   "the program: a file, - for standard input, or the name of a library program");
  command.flag("--base", arguments->base,
               "also reject what lies outside the paper's base signature");
  command.flag("--json", arguments->json, "print one JSON object");
}

}  // namespace starfold::cli

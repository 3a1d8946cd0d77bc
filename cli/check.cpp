// starfold check: parse, type, plan; the type of every name and what would leave each client.
#include "cli/commands.h"
#include "cli/output.h"
#include "starfold/study/look/facts.h"
#include "starfold/study/options.h"
#include "starfold/study/output/check_report.h"
#include "starfold/study/program.h"

namespace starfold::cli {
namespace {

struct CheckArguments {
  std::string file;
  bool base = false;
  bool exact = false;
  bool json = false;
  bool privacy = false;
  std::string unit = "record";
  std::string neighbours = "add_remove";
  std::vector<std::string> settings;  // "c=1"
  std::string print;                  // the intermediate form to show instead; empty for none
};

std::optional<PrivacyCheck> privacy_of(const CheckArguments& arguments,
                                       const CompiledProgram& program, const Study& study,
                                       const StudyFacts* facts) {
  if (!arguments.privacy || !program.plan) return std::nullopt;
  return check_privacy(program,
                       arguments.unit == "client" ? privacy::Unit::client : privacy::Unit::record,
                       arguments.neighbours == "replace" ? privacy::Neighbours::replace
                                                         : privacy::Neighbours::add_remove,
                       known_before_run(study, program.compilation.program, facts));
}

int check(const CheckArguments& arguments) {
  ProgramOptions options;
  options.base = arguments.base;
  options.planning.additive = arguments.privacy;
  const Study study = make_study(
      {.file = arguments.file, .settings = arguments.settings, .exact = arguments.exact});
  const auto program = open_program(study, options);
  const Compilation& compilation = program->compilation;
  print_diagnostics(compilation.diagnostics, compilation.sources);
  std::optional<StudyFacts> facts;
  if (program->plan && is_study(arguments.file)) facts = study_facts(study, compilation.program);
  const StudyFacts* known = facts ? &*facts : nullptr;
  const std::optional<PrivacyCheck> privacy = privacy_of(arguments, *program, study, known);
  if (privacy) print_diagnostics(privacy->refusals, compilation.sources);
  const PrivacyCheck* found = privacy ? &*privacy : nullptr;
  if (!arguments.print.empty()) {
    say(intermediate_form(arguments.print, *program));
  } else if (arguments.json) {
    say(check_json(*program, known, found));
  } else if (program->plan) {
    say(check_text(*program, known, found));
  }
  const bool refused = !compilation.ok() || (privacy && !privacy->found.bounded());
  return refused ? exit_refused : exit_done;
}

}  // namespace

void add_check(CommandLine& line) {
  auto arguments = std::make_shared<CheckArguments>();
  Command command =
      line.add("check", "show the type of every name, and what would leave each client",
               [arguments] { return check(*arguments); });
  command.required(
      "FILE", arguments->file,
      "a program (a file, - for standard input, or the name of a library program), or a "
      "study (.toml)");
  command.flag("--base", arguments->base,
               "also reject what lies outside the paper's base signature");
  command.flag("--exact", arguments->exact, "as an exact run would be planned");
  command.flag("--privacy", arguments->privacy,
               "also show how much one record can change each release, and what bounds it");
  command.choice("--unit", arguments->unit, {"record", "client"},
                 "with --privacy: what is protected, record or client");
  command.choice(
      "--neighbours", arguments->neighbours, {"add_remove", "replace"},
      "with --privacy: what may differ, one more or less (add_remove) or another (replace)");
  command.option("--set", arguments->settings,
                 "NAME=VALUE: a shared input or a size whose value is known (may repeat)");
  command.flag("--json", arguments->json, "print one JSON object");
  command.choice("--print", arguments->print, {"ast", "ir", "plan", "blocks"},
                 "show an intermediate form instead: ast, ir, plan or blocks");
  command.exclusive({"--json", "--print"});
}

}  // namespace starfold::cli

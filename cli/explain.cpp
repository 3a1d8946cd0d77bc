// starfold explain: the encoders, merges and decoders of each round.
#include <filesystem>

#include "cli/commands.h"
#include "cli/output.h"
#include "starfold/plan/explain.h"
#include "starfold/study/inputs.h"
#include "starfold/study/look/facts.h"
#include "starfold/study/options.h"
#include "starfold/study/output/check_report.h"
#include "starfold/study/output/seal.h"

namespace starfold::cli {
namespace {

struct ExplainArguments {
  std::string file;
  bool json = false;
  bool exact = false;
  bool dot = false;
  std::string html;
};

int explain(const ExplainArguments& arguments) {
  const Study study = make_study({.file = arguments.file, .exact = arguments.exact});
  const auto program = load_program(study, arguments.json);
  if (!program->plan) return exit_refused;
  std::optional<StudyFacts> facts;
  if (is_study(arguments.file)) facts = study_facts(study, program->compilation.program);
  const StudyFacts* known = facts ? &*facts : nullptr;
  if (!arguments.html.empty()) {
    require_no_input(arguments.html, study, *program);
    const std::string title = std::filesystem::path(arguments.file).filename().string();
    write_page(arguments.html,
               explain_html(*program->plan, program->compilation.sources, title, known));
  } else if (arguments.json) {
    say(explain_report_json(*program, known));
  } else {
    say(arguments.dot ? explain_dot(*program->plan) : explain_report(*program, known));
  }
  return exit_done;
}

}  // namespace

void add_explain(CommandLine& line) {
  auto arguments = std::make_shared<ExplainArguments>();
  Command command = line.add("explain", "show the encoders, merges and decoders of each round",
                             [arguments] { return explain(*arguments); });
  command.required("FILE", arguments->file,
                   "a program, the name of a library program, or a study (.toml)");
  command.flag("--json", arguments->json, "print one JSON object");
  command.flag("--exact", arguments->exact, "as an exact run would be planned");
  command.flag("--dot", arguments->dot, "print a graph for Graphviz");
  command.option("--html", arguments->html, "write one self-contained page to this file");
  command.exclusive({"--json", "--dot", "--html"});
}

}  // namespace starfold::cli

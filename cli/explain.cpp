// starfold explain: the encoders, merges and decoders of each round.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/output.h"
#include "starfold/base/error.h"
#include "starfold/page/pages.h"
#include "starfold/plan/explain.h"

namespace starfold::cli {
namespace {

struct Arguments {
  std::string file;
  bool json = false;
  bool dot = false;
  std::string html;
};

int explain(const Arguments& arguments) {
  const std::shared_ptr<const CompiledProgram> program =
      load_program(arguments.file, arguments.json);
  if (!program->plan) return exit_refused;
  const Plan& plan = *program->plan;
  const SourceMap& sources = program->compilation.sources;
  if (!arguments.html.empty()) {
    std::ofstream out(arguments.html, std::ios::binary);
    out << explain_html(plan, sources, std::filesystem::path(arguments.file).filename().string());
    out.flush();
    if (!out) throw RunError(fmt::format("{} cannot be written", arguments.html));
    return exit_done;
  }
  if (arguments.json) {
    say(explain_json(plan, sources).dump() + "\n");
  } else {
    say(arguments.dot ? explain_dot(plan) : explain_text(plan));
  }
  return exit_done;
}

}  // namespace

void add_explain(CommandLine& line) {
  auto arguments = std::make_shared<Arguments>();
  Command command = line.add("explain", "show the encoders, merges and decoders of each round",
                             [arguments] { return explain(*arguments); });
  command.required("FILE", arguments->file, "a program");
  command.flag("--json", arguments->json, "print one JSON object");
  command.flag("--dot", arguments->dot, "print a graph for Graphviz");
  command.option("--html", arguments->html, "write one self-contained page to this file");
  command.exclusive({"--json", "--dot", "--html"});
}

}  // namespace starfold::cli

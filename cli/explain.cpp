// starfold explain: the encoders, merges and decoders of each round.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/load.h"
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
  if (!program) return exit_usage;
  if (!program->plan) return exit_refused;
  const Plan& plan = *program->plan;
  const SourceMap& sources = program->compilation.sources;
  if (!arguments.html.empty()) {
    std::ofstream out(arguments.html, std::ios::binary);
    out << explain_html(plan, sources, std::filesystem::path(arguments.file).filename().string());
    out.flush();
    if (!out) {
      fmt::print(stderr, "error: {} cannot be written\n", arguments.html);
      return exit_failed;
    }
    return exit_done;
  }
  if (arguments.json) {
    fmt::print("{}\n", explain_json(plan, sources).dump());
  } else {
    fmt::print("{}", arguments.dot ? explain_dot(plan) : explain_text(plan));
  }
  return exit_done;
}

}  // namespace

void add_explain(CLI::App& app, int& status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("explain", "show the encoders, merges and decoders of each round");
  command->add_option("FILE", arguments->file, "a program")->required();
  CLI::Option* json = command->add_flag("--json", arguments->json, "print one JSON object");
  CLI::Option* dot = command->add_flag("--dot", arguments->dot, "print a graph for Graphviz");
  CLI::Option* html =
      command->add_option("--html", arguments->html, "write one self-contained page to this file");
  json->excludes(dot)->excludes(html);
  dot->excludes(html);
  command->callback([arguments, &status] { status = explain(*arguments); });
}

}  // namespace starfold::cli

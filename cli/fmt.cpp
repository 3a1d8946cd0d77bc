// starfold fmt: one canonical layout.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/console.h"
#include "starfold/syntax/format.h"
#include "starfold/syntax/parser.h"

namespace starfold::cli {
namespace {

struct FmtArguments {
  std::vector<std::string> files;
  bool check = false;
};

int format_file(const std::string& path, bool check) {
  std::optional<std::string> text = read_program(path);
  if (!text) return Exit::usage;
  SourceMap sources;
  Diagnostics diagnostics;
  const std::uint32_t file = sources.add(shown_name(path), std::move(*text));
  const ast::File parsed = parse(sources, file, diagnostics);
  if (diagnostics.has_errors()) {
    print_diagnostics(diagnostics, sources);
    return Exit::refused;
  }
  const std::string formatted = format(sources, parsed);
  const bool same = formatted == sources[file].text();
  if (check) {
    if (!same) print_error(fmt::format("{}: not in canonical layout\n", shown_name(path)));
    return same ? Exit::done : Exit::refused;
  }
  if (path == "-") {
    print(formatted);
    return Exit::done;
  }
  return same || replace_file(path, formatted) ? Exit::done : Exit::usage;
}

}  // namespace

Command fmt_command(CLI::App& app) {
  auto arguments = std::make_shared<FmtArguments>();
  CLI::App* command = app.add_subcommand("fmt", "Lay out programs in the one canonical way");
  command
      ->add_option("FILE", arguments->files,
                   "Programs to rewrite; - reads standard input and writes standard output")
      ->required()
      ->type_name("");
  command->add_flag("--check", arguments->check,
                    "Rewrite nothing; exit with 1 when a file is laid out differently");
  return {command, [arguments] {
            int code = Exit::done;
            for (const std::string& file : arguments->files)
              code = std::max(code, format_file(file, arguments->check));
            return code;
          }};
}

}  // namespace starfold::cli

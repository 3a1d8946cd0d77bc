// starfold fmt: one canonical layout.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/load.h"
#include "starfold/syntax/format.h"
#include "starfold/syntax/parser.h"

namespace starfold::cli {
namespace {

struct Arguments {
  std::vector<std::string> files;
  bool check = false;
};

std::string shown_name(const std::string& path) { return path == "-" ? "standard input" : path; }

int format_file(const std::string& path, bool check) {
  std::optional<std::string> text = read_text(path);
  if (!text) return exit_usage;
  SourceMap sources;
  Diagnostics diagnostics;
  const std::uint32_t file = sources.add(shown_name(path), std::move(*text));
  const ast::File parsed = parse(sources, file, diagnostics);
  if (diagnostics.has_errors()) {
    print_diagnostics(diagnostics, sources);
    return exit_refused;
  }
  const std::string formatted = format(sources, parsed);
  const bool same = formatted == sources[file].text();
  if (check) {
    if (!same) fmt::print(stderr, "{}: not in canonical layout\n", shown_name(path));
    return same ? exit_done : exit_refused;
  }
  if (path == "-") {
    fmt::print("{}", formatted);
    return exit_done;
  }
  return same || replace_text(path, formatted) ? exit_done : exit_usage;
}

}  // namespace

void add_fmt(CLI::App& app, int& status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("fmt", "lay out programs in the one canonical way");
  command
      ->add_option("FILE", arguments->files,
                   "programs to rewrite; - reads standard input and writes standard output")
      ->required()
      ->type_name("");
  command->add_flag("--check", arguments->check,
                    "rewrite nothing; exit with 1 when a file is laid out differently");
  command->callback([arguments, &status] {
    for (const std::string& file : arguments->files) {
      status = std::max(status, format_file(file, arguments->check));
    }
  });
}

}  // namespace starfold::cli

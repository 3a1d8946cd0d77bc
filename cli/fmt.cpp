// starfold fmt: one canonical layout.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/output.h"
#include "starfold/study/output/files.h"
#include "starfold/study/study.h"
#include "starfold/syntax/format.h"
#include "starfold/syntax/parser.h"

namespace starfold::cli {
namespace {

struct FmtArguments {
  std::vector<std::string> files;
  bool check = false;
};

std::string shown_name(const std::string& path) { return path == "-" ? "standard input" : path; }

int format_file(const std::string& path, bool check) {
  SourceMap sources;
  Diagnostics diagnostics;
  const std::uint32_t file = sources.add(shown_name(path), read_text(path, max_source_bytes));
  const ast::File parsed = parse(sources, file, diagnostics);
  if (diagnostics.has_errors()) {
    print_diagnostics(diagnostics, sources);
    return exit_refused;
  }
  const std::string formatted = format(sources, parsed);
  const bool same = formatted == sources[file].text();
  if (check) {
    if (!same) complain(fmt::format("{}: not in canonical layout\n", shown_name(path)));
    return same ? exit_done : exit_refused;
  }
  if (path == "-") {
    say(formatted);
    return exit_done;
  }
  if (!same) replace_text(path, formatted);
  return exit_done;
}

// One file that cannot be read or written does not keep the others from being laid out.
int format_files(const FmtArguments& arguments) {
  int status = exit_done;
  for (const std::string& file : arguments.files) {
    try {
      status = std::max(status, format_file(file, arguments.check));
    } catch (const StudyError&) {
      status = std::max(status, tell(current_trouble(), false));
    }
  }
  return status;
}

}  // namespace

void add_fmt(CommandLine& line) {
  auto arguments = std::make_shared<FmtArguments>();
  Command command = line.add("fmt", "lay out programs in the one canonical way",
                             [arguments] { return format_files(*arguments); });
  command.required("FILE", arguments->files,
                   "programs to rewrite; - reads standard input and writes standard output");
  command.flag("--check", arguments->check,
               "rewrite nothing; exit with 1 when a file is laid out differently");
}

}  // namespace starfold::cli

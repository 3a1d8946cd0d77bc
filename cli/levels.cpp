// starfold levels: asks all clients of a study for the levels of its columns, and writes them into it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>

#include "cli/commands.h"
#include "cli/output.h"
#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/study/look/levels.h"
#include "starfold/study/options.h"
#include "starfold/study/output/files.h"

namespace starfold::cli {
namespace {

struct LevelsArguments {
  std::string study;
  std::vector<std::string> columns;
  bool print = false;
};

// Whole or not at all: a study is never left half written.
void replace_file(const std::string& path, const std::string& text) {
  const std::string aside = path + ".partial";
  std::ofstream out(aside, std::ios::binary);
  out << text;
  out.flush();
  std::error_code error;
  if (out) std::filesystem::rename(aside, path, error);
  if (!out || error) {
    std::filesystem::remove(aside, error);
    throw RunError(fmt::format("{} cannot be written", printable(path)));
  }
}

std::string listed(const std::vector<std::string>& levels) {
  std::vector<std::string> shown;
  for (const std::string& level : levels) shown.push_back(printable(level));
  return fmt::format("{}", fmt::join(shown, ", "));
}

int levels(const LevelsArguments& arguments) {
  if (!is_study(arguments.study))
    throw StudyError("levels are asked of the clients of a study: give its file (.toml)");
  const Study study = make_study({.file = arguments.study});
  const std::vector<ColumnLevels> found = find_levels(study, arguments.columns);
  if (arguments.print) {
    say(levels_sections(found));
    return exit_done;
  }
  if (found.empty()) say("no column of text that the study uses lacks levels\n");
  const auto fresh = [](const ColumnLevels& one) { return !one.declared; };
  if (std::any_of(found.begin(), found.end(), fresh)) {
    constexpr std::size_t most = std::size_t{1} << 24U;
    replace_file(arguments.study,
                 with_levels(read_text(arguments.study, most), arguments.study, found));
  }
  for (const ColumnLevels& one : found) {
    if (!one.declared) {
      say(fmt::format("{}: {}\n", printable(one.column), listed(one.levels)));
    } else if (one.lacking.empty()) {
      say(fmt::format("{}: declared already, and complete\n", printable(one.column)));
    } else {
      say(fmt::format("{}: declared already, but clients also have {}\n", printable(one.column),
                      listed(one.lacking)));
    }
  }
  return exit_done;
}

}  // namespace

void add_levels(CommandLine& line) {
  auto arguments = std::make_shared<LevelsArguments>();
  Command command = line.add(
      "levels", "ask all clients for the levels of text columns, and write them into a study",
      [arguments] { return levels(*arguments); });
  command.required("STUDY", arguments->study, "a study (.toml)");
  command.optional("COLUMN", arguments->columns,
                   "the columns; otherwise those of text that the study uses");
  command.flag("--print", arguments->print, "print the sections instead of writing them");
}

}  // namespace starfold::cli

#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/commands.h"
#include "cli/output.h"
#include "starfold/base/suggest.h"
#include "starfold/base/utf8.h"
#include "starfold/base/version.h"
#include "starfold/study/output/trouble.h"
#include "starfold/study/program.h"
#include "starfold/study/study.h"

namespace starfold::cli {

void Command::required(const char* name, std::string& value, const char* help) {
  app_.add_option(name, value, help)->required()->type_name("");
}

void Command::required(const char* name, std::vector<std::string>& values, const char* help) {
  app_.add_option(name, values, help)->required()->type_name("");
}

void Command::optional(const char* name, std::string& value, const char* help) {
  app_.add_option(name, value, help)->type_name("");
}

void Command::optional(const char* name, std::vector<std::string>& values, const char* help) {
  app_.add_option(name, values, help)->type_name("");
}

void Command::option(const char* name, std::string& value, const char* help) {
  app_.add_option(name, value, help);
}

void Command::option(const char* name, std::vector<std::string>& values, const char* help) {
  app_.add_option(name, values, help);
}

void Command::option(const char* name, int& value, int least, int most, const char* help) {
  app_.add_option(name, value, help)->check(CLI::Range(least, most));
}

void Command::choice(const char* name, std::string& value, const std::vector<std::string>& values,
                     const char* help) {
  app_.add_option(name, value, help)->check(CLI::IsMember(values));
}

void Command::flag(const char* name, bool& value, const char* help) {
  app_.add_flag(name, value, help);
}

void Command::exclusive(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t k = i + 1; k < names.size(); ++k)
      app_.get_option(names[i])->excludes(app_.get_option(names[k]));
  }
}

CommandLine::CommandLine()
    : app_(std::make_unique<CLI::App>(
          "Write as if all records were in one place; see what leaves each client.", "starfold")) {
  app_->set_version_flag("--version", fmt::format("starfold {}", version()), "show the version");
  app_->set_help_flag("-h,--help", "show this help");
  app_->failure_message(CLI::FailureMessage::simple);
  app_->get_formatter()->column_width(24);
  app_->get_formatter()->label("REQUIRED", "");
  app_->require_subcommand(1);
  app_->footer(
      "`starfold COMMAND --help` says more about a command.\n"
      "Exit codes: 0 done; 1 the program says no; 2 wrong usage; 3 the run failed.");
}

CommandLine::~CommandLine() = default;

Command CommandGroup::add(const char* name, const char* help, std::function<int()> run) {
  CLI::App* command = app_.add_subcommand(name, help);
  command->callback([&status = status_, run = std::move(run)] { status = run(); });
  return Command(*command);
}

Command CommandLine::add(const char* name, const char* help, std::function<int()> run) {
  return CommandGroup(*app_, status_).add(name, help, std::move(run));
}

CommandGroup CommandLine::group(const char* name, const char* help) {
  CLI::App* group = app_->add_subcommand(name, help);
  group->require_subcommand(1);
  return CommandGroup(*group, status_);
}

namespace {

// Of the word in the place of a subcommand that is none; empty where the words before options name one.
std::string unknown_command(const CLI::App& app, const char* const* words, const char* const* end) {
  if (words == end || (*words)[0] == '-' || app.get_subcommands({}).empty()) return "";
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == *words) return unknown_command(*command, words + 1, end);
    names.push_back(command->get_name());
  }
  const std::string word = *words;
  const std::vector<std::string> programs = library_program_names();
  const bool program = word.ends_with(".fold") || word.ends_with(".toml") ||
                       std::find(programs.begin(), programs.end(), word) != programs.end();
  const std::string near = nearest(word, names);
  const std::string group = app.get_parent() == nullptr ? "" : " " + app.get_name();
  return fmt::format("there is no command {}; {}", printable(word),
                     !near.empty() ? fmt::format("did you mean `starfold{} {}`?", group, near)
                     : program && group.empty()
                         ? fmt::format("did you mean `starfold run {}`?", printable(word))
                         : fmt::format("`starfold{} --help` lists them", group));
}

}  // namespace

int CommandLine::run(int argc, char** argv) {
  // Where the arguments themselves are wrong this is all that is known of them.
  const bool json = std::any_of(
      argv, argv + argc, [](const char* word) { return word == std::string_view("--json"); });
  try {
    if (const std::string unknown = unknown_command(*app_, argv + 1, argv + argc); !unknown.empty())
      throw StudyError(unknown);
    app_->parse(argc, argv);
    return status_;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help and --version
      app_->exit(error);
      return exit_done;
    }
    return tell({Trouble::Kind::usage, error.what(), {}}, json);
  } catch (...) {
    return tell(current_trouble(), json);
  }
}

}  // namespace starfold::cli

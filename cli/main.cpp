// starfold: the command line. Options and behaviour of a subcommand are in its own file.
#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"

namespace starfold::cli {
namespace {

int run(int argc, char** argv) {
  CLI::App app("Statistics over records that stay where they are.", "starfold");
  app.set_version_flag("--version", "starfold " STARFOLD_VERSION);
  app.set_help_flag("-h,--help", "Show this help");
  app.failure_message(CLI::FailureMessage::simple);
  app.require_subcommand(1);
  app.footer(
      "`starfold COMMAND --help` says more about a command.\n"
      "Exit codes: 0 done; 1 the program or a policy says no; 2 wrong usage; 3 the run failed.");
  app.get_formatter()->column_width(24);

  const std::vector<Command> commands = {check_command(app), fmt_command(app), ops_command(app)};
  for (const Command& command : commands) command.app->set_help_flag("-h,--help", "Show this help");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are successes that CLI11 prints; anything else is wrong usage.
    return app.exit(error) == 0 ? Exit::done : Exit::usage;
  }
  for (const Command& command : commands) {
    if (command.app->parsed()) return command.run();
  }
  return Exit::usage;
}

}  // namespace
}  // namespace starfold::cli

int main(int argc, char** argv) {
  using namespace starfold::cli;
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away ends a command quietly
  try {
    const int code = run(argc, argv);
    return finish_output() ? code : static_cast<int>(Exit::failed);
  } catch (const std::bad_alloc&) {
    complain("out of memory");
  } catch (const std::exception& error) {
    complain(std::string("internal error, please report it: ") + error.what());
  }
  return Exit::failed;
}

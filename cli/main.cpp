#include <CLI/CLI.hpp>
#include <csignal>

#include "cli/commands.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // a reader that leaves ends the program quietly
  CLI::App app("Starfold: write as if all records were in one place; see and limit what leaves each client.", "starfold");
  app.set_version_flag("--version", STARFOLD_VERSION);
  app.require_subcommand(1);
  int status = starfold::cli::exit_done;
  starfold::cli::add_check(app, status);
  starfold::cli::add_explain(app, status);
  starfold::cli::add_lib(app, status);
  starfold::cli::add_run(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;  // --help and --version
    app.exit(error);
    return asked ? starfold::cli::exit_done : starfold::cli::exit_usage;
  }
  return status;
}

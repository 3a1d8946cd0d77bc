#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <new>

#include "cli/commands.h"

namespace {

int run(int argc, char** argv) {
  using namespace starfold::cli;
  CLI::App app("Write as if all records were in one place; see what leaves each client.",
               "starfold");
  app.set_version_flag("--version", "starfold " STARFOLD_VERSION, "show the version");
  app.set_help_flag("-h,--help", "show this help");
  app.failure_message(CLI::FailureMessage::simple);
  app.get_formatter()->column_width(24);
  app.get_formatter()->label("REQUIRED", "");
  app.require_subcommand(1);
  app.footer(
      "`starfold COMMAND --help` says more about a command.\n"
      "Exit codes: 0 done; 1 the program says no; 2 wrong usage; 3 the run failed.");
  int status = exit_done;
  add_check(app, status);
  add_run(app, status);
  add_init(app, status);
  add_explain(app, status);
  add_fmt(app, status);
  add_ops(app, status);
  add_lib(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked = error.get_exit_code() == 0;  // --help and --version
    app.exit(error);
    return asked ? exit_done : exit_usage;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // a reader that leaves ends the program quietly
  try {
    const int status = run(argc, argv);
    if (std::fflush(stdout) == 0) return status;
    fmt::print(stderr, "error: standard output cannot be written\n");
  } catch (const std::bad_alloc&) {
    std::fputs("error: out of memory\n", stderr);
  } catch (const std::system_error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: this is a mistake in Starfold, please report it: {}\n",
               error.what());
  }
  return starfold::cli::exit_failed;
}

// The subcommands: one file each. Library code says what is wrong; only this folder prints.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace starfold::cli {

// Exit codes of every command.
enum Exit : int {
  done = 0,
  refused = 1,  // the program (or a policy) says no
  usage = 2,    // the command was used wrongly
  failed = 3,   // the run failed: data, numerics, federation
};

// A subcommand: its place in the command line, and what runs it and gives the exit code.
struct Command {
  CLI::App* app;
  std::function<int()> run;
};

// Each adds its subcommand with its options.
Command check_command(CLI::App& app);
Command fmt_command(CLI::App& app);
Command ops_command(CLI::App& app);

}  // namespace starfold::cli

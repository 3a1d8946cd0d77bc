// One function per subcommand, each in a file of its own: it says what the subcommand takes and what it does.
#pragma once

#include "cli/command_line.h"

namespace starfold::cli {

inline constexpr int exit_done = 0;
inline constexpr int exit_refused = 1;  // the program says no
inline constexpr int exit_usage = 2;
inline constexpr int exit_failed = 3;  // data, numerics, federation

void add_check(CommandLine& line);
void add_explain(CommandLine& line);
void add_fmt(CommandLine& line);
void add_init(CommandLine& line);
void add_levels(CommandLine& line);
void add_lib(CommandLine& line);
void add_lsp(CommandLine& line);
void add_node(CommandLine& line);
void add_ops(CommandLine& line);
void add_run(CommandLine& line);

}  // namespace starfold::cli

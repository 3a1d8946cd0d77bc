// One function per subcommand: each adds itself to the app and sets the exit status when it runs.
#pragma once

namespace CLI {
class App;
}

namespace starfold::cli {

inline constexpr int exit_done = 0;
inline constexpr int exit_refused = 1;  // the program says no
inline constexpr int exit_usage = 2;
inline constexpr int exit_failed = 3;  // data, numerics, federation

void add_check(CLI::App& app, int& status);
void add_explain(CLI::App& app, int& status);
void add_fmt(CLI::App& app, int& status);
void add_init(CLI::App& app, int& status);
void add_lib(CLI::App& app, int& status);
void add_ops(CLI::App& app, int& status);
void add_run(CLI::App& app, int& status);

}  // namespace starfold::cli

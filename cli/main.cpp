#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "cli/commands.h"
#include "cli/output.h"

namespace {

// A stream that is closed would give its number to the next file that is opened, and what is printed would go there.
// So it is held by one on which printing fails.
void hold_closed_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (fcntl(stream, F_GETFD) == -1) [[maybe_unused]]
      const int held = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace starfold::cli;
  hold_closed_streams();
  std::signal(SIGPIPE, SIG_DFL);  // a reader that leaves ends the program quietly
  CommandLine line;
  add_check(line);
  add_run(line);
  add_init(line);
  add_levels(line);
  add_explain(line);
  add_fmt(line);
  add_ops(line);
  add_lib(line);
  add_lsp(line);
  add_node(line);
  const int status = line.run(argc, argv);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  complain("error: standard output cannot be written\n");
  return exit_failed;
}

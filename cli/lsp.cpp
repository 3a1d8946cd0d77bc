// starfold lsp: the language server, for editors.
#include <unistd.h>

#include "cli/commands.h"
#include "starfold/editor/serve.h"

namespace starfold::cli {

void add_lsp(CommandLine& line) {
  line.add(
      "lsp",
      "serve an editor: problems, types and exposure as you type, on standard input and output",
      [] { return editor::serve(STDIN_FILENO, STDOUT_FILENO); });
}

}  // namespace starfold::cli

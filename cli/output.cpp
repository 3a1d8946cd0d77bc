#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/commands.h"
#include "starfold/diag/render.h"
#include "starfold/study/output/check_report.h"
#include "starfold/study/program.h"

namespace starfold::cli {

void say(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void complain(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

int tell(const Trouble& trouble, bool json, const SourceMap* sources) {
  if (json) say(trouble_json(trouble, sources));
  complain(trouble_text(trouble, sources));
  if (trouble.kind == Trouble::Kind::refused) return exit_refused;
  return trouble.kind == Trouble::Kind::usage ? exit_usage : exit_failed;
}

void print_diagnostics(const Diagnostics& diagnostics, const SourceMap& sources) {
  const bool color = isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  complain(render_text(diagnostics, sources, color));
  if (diagnostics.dropped() > 0)
    complain(fmt::format("\n... and {} more\n", diagnostics.dropped()));
}

std::shared_ptr<const CompiledProgram> load_program(const Study& study, bool json) {
  std::shared_ptr<const CompiledProgram> program = open_program(study);
  const Compilation& compilation = program->compilation;
  print_diagnostics(compilation.diagnostics, compilation.sources);
  if (json && !compilation.ok()) say(diagnostics_json(compilation));
  return program;
}

}  // namespace starfold::cli

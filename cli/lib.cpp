// starfold lib: the ready-made programs and modules that come with Starfold.
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "starfold/base/embedded_lib.h"
#include "starfold/study/program.h"
#include "starfold/study/study.h"

namespace starfold::cli {
namespace {

// The first comment of a file: what it is for.
std::string_view purpose(std::string_view text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  if (!line.starts_with("#")) return {};
  line.remove_prefix(1);
  while (line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

int list() {
  std::string programs;
  std::string modules;
  for (const EmbeddedModule& file : embedded_modules()) {
    const bool program = file.name.starts_with(library_programs);
    // Texts of a module for other cases are shown by name, not listed.
    if (!program && file.name.find('/') != std::string_view::npos) continue;
    const std::string_view name = program ? file.name.substr(library_programs.size()) : file.name;
    (program ? programs : modules) += fmt::format("  {:<14} {}\n", name, purpose(file.text));
  }
  say(fmt::format(
      "programs, run as `starfold run NAME --client ...`:\n{}\nmodules, used as `import NAME`:\n{}",
      programs, modules));
  return exit_done;
}

int show(const std::string& name) {
  for (const EmbeddedModule& file : embedded_modules()) {
    if (file.name != name && file.name != fmt::format("{}{}", library_programs, name)) continue;
    say(file.text);
    return exit_done;
  }
  throw StudyError(fmt::format("the library has nothing named {}; `starfold lib` lists it", name));
}

}  // namespace

void add_lib(CommandLine& line) {
  auto name = std::make_shared<std::string>();
  Command command = line.add("lib", "list the ready-made programs and modules",
                             [name] { return name->empty() ? list() : show(*name); });
  command.optional("NAME", *name, "print the source of one of them");
}

}  // namespace starfold::cli

// starfold lib: the ready-made programs and modules that come with Starfold.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/load.h"
#include "starfold/base/embedded_lib.h"

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
    const std::string_view name = program ? file.name.substr(library_programs.size()) : file.name;
    (program ? programs : modules) += fmt::format("  {:<14} {}\n", name, purpose(file.text));
  }
  fmt::print(
      "programs, run as `starfold run NAME --client ...`:\n{}\nmodules, used as `import NAME`:\n{}",
      programs, modules);
  return exit_done;
}

int show(const std::string& name) {
  for (const EmbeddedModule& file : embedded_modules()) {
    if (file.name != name && file.name != fmt::format("{}{}", library_programs, name)) continue;
    fmt::print("{}", file.text);
    return exit_done;
  }
  fmt::print(stderr, "error: the library has nothing named {}; `starfold lib` lists it\n", name);
  return exit_usage;
}

}  // namespace

void add_lib(CLI::App& app, int& status) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("lib", "list the ready-made programs and modules");
  command->add_option("NAME", *name, "print the source of one of them");
  command->callback([name, &status] { status = name->empty() ? list() : show(*name); });
}

}  // namespace starfold::cli

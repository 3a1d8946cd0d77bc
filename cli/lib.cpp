// starfold lib: the ready-made programs and modules that come with Starfold.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "starfold/base/embedded_lib.h"
#include "starfold/base/utf8.h"
#include "starfold/plan/explain.h"
#include "starfold/study/program.h"
#include "starfold/study/study.h"

namespace starfold::cli {
namespace {

struct LibArguments {
  std::string name;
  bool markdown = false;
};

// What the comment at the top of a program says: a sentence, then fields, "Model: ...", each of which may go on in indented lines.
struct Field {
  std::string key;
  std::string text;
};
struct Entry {
  std::string_view name;
  bool program = false;
  std::string purpose;
  std::string kind;
  std::vector<Field> fields;
  std::vector<std::string> outputs;
};

// The kinds of programs, in the order in which a study needs them.
constexpr std::string_view kinds[] = {"description", "tests",   "regression",
                                      "survival",    "judging", "learning"};

// A line without the sign of a comment and the blank after it; nothing where it is none.
std::optional<std::string_view> commented(std::string_view line) {
  if (!line.starts_with("#")) return std::nullopt;
  line.remove_prefix(1);
  if (line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

void read_comment(std::string_view line, Entry& entry) {
  const std::size_t colon = line.find(": ");
  const bool starts_field = colon != std::string_view::npos && line[0] >= 'A' && line[0] <= 'Z' &&
                            line.substr(0, colon).find(' ') == std::string_view::npos;
  if (entry.purpose.empty()) {
    entry.purpose = line;
  } else if (starts_field) {
    entry.fields.push_back(
        {std::string(line.substr(0, colon)), std::string(line.substr(colon + 2))});
  } else if (!entry.fields.empty() && line.starts_with("  ")) {
    entry.fields.back().text += " " + std::string(line.substr(2));
  }
}

Entry read_entry(const EmbeddedModule& file) {
  Entry entry;
  entry.program = file.name.starts_with(library_programs);
  entry.name = entry.program ? file.name.substr(library_programs.size()) : file.name;
  bool top = true;
  for (std::string_view rest = file.text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::optional<std::string_view> comment = commented(line);
    top = top && comment;
    if (top) read_comment(*comment, entry);
    if (line.starts_with("output "))
      entry.outputs.emplace_back(line.substr(7, line.find(' ', 7) - 7));
  }
  const auto kind = std::find_if(entry.fields.begin(), entry.fields.end(),
                                 [](const Field& field) { return field.key == "Kind"; });
  if (kind != entry.fields.end()) {
    entry.kind = kind->text.substr(0, kind->text.find('.'));
    entry.fields.erase(kind);
  }
  return entry;
}

std::vector<Entry> entries() {
  std::vector<Entry> all;
  for (const EmbeddedModule& file : embedded_modules()) {
    Entry entry = read_entry(file);
    // Texts of a module for other cases are shown by name, not listed.
    if (!entry.program && entry.name.find('/') != std::string_view::npos) continue;
    all.push_back(std::move(entry));
  }
  return all;
}

template <typename Line>
std::string of_kind(const std::vector<Entry>& all, std::string_view kind, Line line) {
  std::string text;
  for (const Entry& entry : all) {
    if (entry.program && entry.kind == kind) text += line(entry);
  }
  return text;
}

int list() {
  const std::vector<Entry> all = entries();
  const auto row = [](const Entry& entry) {
    return fmt::format("  {:<20} {}\n", entry.name, entry.purpose);
  };
  std::string text = "programs, run as `starfold run NAME --client ...`:\n";
  for (const std::string_view kind : kinds)
    text += fmt::format("\n {}\n{}", kind, of_kind(all, kind, row));
  text += "\nmodules, used as `import NAME`:\n";
  for (const Entry& entry : all) {
    if (!entry.program) text += row(entry);
  }
  say(text +
      "\n`starfold lib NAME` shows what a program assumes, needs and sends, and its text.\n");
  return exit_done;
}

// "p*p + 2 numbers, then in each iteration p + 1 numbers", as the plan has it.
std::string numbers_sent(const Entry& entry) {
  const std::shared_ptr<const CompiledProgram> program = open_program(std::string(entry.name));
  if (!program->plan)
    throw RunError(fmt::format("{0} has errors: `starfold check {0}` shows them", entry.name));
  std::vector<std::string> parts;
  for (const Round* round : rounds_of(*program->plan)) {
    const std::string numbers = message_numbers(*program->plan, *round);
    parts.push_back(
        fmt::format("{}{}", round->loop_depth > 0 ? "in each iteration " : "", numbers));
  }
  return fmt::format("{} numbers", fmt::join(parts, "; "));
}

std::string section(const Entry& entry) {
  std::string text = fmt::format("\n### {}\n\n{}\n\n", entry.name, entry.purpose);
  for (const Field& field : entry.fields) {
    text += fmt::format("- *{}:* {}\n", field.key, field.text);
    if (field.key == "Exposure")
      text += fmt::format("- *Each client sends:* {}\n", numbers_sent(entry));
  }
  return text + fmt::format("- *Results:* `{}`\n", fmt::join(entry.outputs, "`, `"));
}

std::string as_markdown() {
  const std::vector<Entry> all = entries();
  std::string text =
      "# Ready-made programs\n\n"
      "Every program of the library, from the comments at its top. This page is generated by `make "
      "docs`; "
      "`starfold lib NAME`\nshows the text of a program, which is a good start for one of your "
      "own. "
      "[comparison.md](comparison.md) sets them beside\nthose of other platforms.\n\n"
      "    starfold run logistic --formula 'case ~ age + parity' --client north=north.csv --client "
      "south=south.csv\n\n"
      "Programs say in words what is wrong with data: an outcome outside its range, columns that "
      "do not vary or are combinations\nof "
      "others, by name, levels that do not occur, too few records, a fit that does not converge.\n";
  for (const std::string_view kind : kinds) {
    std::string title(kind);
    title[0] = static_cast<char>(title[0] - 'a' + 'A');
    text += fmt::format("\n## {}\n\n| program | what it gives |\n|---|---|\n", title);
    text += of_kind(all, kind, [](const Entry& entry) {
      return fmt::format("| [{0}](#{0}) | {1} |\n", entry.name, entry.purpose);
    });
    text += of_kind(all, kind, section);
  }
  text +=
      "\n## Modules\n\nFunctions for programs of your own: `import NAME`, then "
      "`NAME.function(...)`.\n\n| module | what it holds |\n|---|---|\n";
  for (const Entry& entry : all) {
    if (!entry.program) text += fmt::format("| `{}` | {} |\n", entry.name, entry.purpose);
  }
  return text;
}

int show(const std::string& name) {
  for (const EmbeddedModule& file : embedded_modules()) {
    if (file.name != name && file.name != fmt::format("{}{}", library_programs, name)) continue;
    say(file.text);
    return exit_done;
  }
  throw StudyError(
      fmt::format("the library has nothing named {}; {}", printable(name), near_programs(name)));
}

}  // namespace

void add_lib(CommandLine& line) {
  auto arguments = std::make_shared<LibArguments>();
  Command command = line.add("lib", "list the ready-made programs and modules", [arguments] {
    if (!arguments->markdown) return arguments->name.empty() ? list() : show(arguments->name);
    say(as_markdown());
    return exit_done;
  });
  command.optional("NAME", arguments->name,
                   "print one of them: what it assumes, needs and sends, and its text");
  command.flag("--markdown", arguments->markdown, "the page docs/library.md");
}

}  // namespace starfold::cli

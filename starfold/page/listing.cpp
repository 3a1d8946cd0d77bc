#include "starfold/page/listing.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/page/html.h"
#include "starfold/page/words.h"
#include "starfold/plan/explain.h"
#include "starfold/syntax/lexer.h"

namespace starfold::page {
namespace {

// How a byte of the text is shown.
struct Look {
  char token = 0;  // 'c' comment, 'k' keyword, 'n' number, 's' star
  int fold = -1;   // index into the folds
  friend bool operator==(const Look&, const Look&) = default;
};

struct Fold {
  Span span;
  std::string title;  // plain text
};

std::string line_id(std::uint32_t file, std::uint32_t line) {
  return file == 0 ? fmt::format("L{}", line) : fmt::format("F{}L{}", file, line);
}

std::vector<Fold> folds_of(const Plan& plan) {
  std::vector<Fold> folds;
  for (const Round* round : rounds_of(plan)) {
    for (const Merge& merge : round->merges) {
      const ir::Node& node = plan.program.graph[merge.fold];
      const std::string title = fmt::format("Leaves each client in round {}: {} {}, {}",
                                            round->number + 1, describe_fold(plan, merge.fold),
                                            node.type().to_string(), merge.monoid->words);
      const auto same = std::find_if(folds.begin(), folds.end(),
                                     [&](const Fold& fold) { return fold.span == node.span; });
      if (same != folds.end()) {
        same->title += "\n" + title;
      } else {
        folds.push_back({node.span, title});
      }
    }
  }
  return folds;
}

char token_look(const Token& token) {
  if (is_keyword(token.kind)) return 'k';
  if (token.kind == TokenKind::number) return 'n';
  return 0;
}

std::vector<Look> looks_of(const SourceMap& sources, std::uint32_t file,
                           const std::vector<Fold>& folds) {
  std::vector<Look> looks(sources[file].text().size());
  Diagnostics ignored;
  const Lexed lexed = lex(sources, file, ignored);
  const auto paint = [&](std::uint32_t begin, std::uint32_t end, char token) {
    for (std::size_t i = begin; i < std::min<std::size_t>(end, looks.size()); ++i)
      looks[i].token = token;
  };
  for (const Token& token : lexed.tokens) paint(token.begin, token.end, token_look(token));
  for (const ast::Comment& comment : lexed.comments)
    paint(comment.span.begin, comment.span.end, 'c');
  for (std::size_t f = 0; f < folds.size(); ++f) {
    if (folds[f].span.file != file) continue;
    for (std::size_t i = folds[f].span.begin;
         i < std::min<std::size_t>(folds[f].span.end, looks.size()); ++i) {
      // A fold inside another one keeps its own mark.
      const int other = looks[i].fold;
      if (other < 0 || folds[static_cast<std::size_t>(other)].span.end -
                               folds[static_cast<std::size_t>(other)].span.begin >
                           folds[f].span.end - folds[f].span.begin) {
        looks[i].fold = static_cast<int>(f);
      }
    }
  }
  return looks;
}

std::string run_html(std::string_view text, Look look) {
  if (look.token == 0) return escape(text);
  return fmt::format("<span class=\"t{}\">{}</span>", look.token, escape(text));
}

// One line, cut where the look changes.
std::string line_html(std::string_view line, std::size_t begin, const std::vector<Look>& looks,
                      const std::vector<Fold>& folds) {
  std::string html;
  int open = -1;
  for (std::size_t i = 0; i < line.size();) {
    const Look look = looks[begin + i];
    std::size_t end = i + 1;
    while (end < line.size() && looks[begin + end] == look) ++end;
    if (look.fold != open) {
      if (open >= 0) html += "</mark>";
      if (look.fold >= 0)
        html += fmt::format("<mark title=\"{}\">",
                            escape(folds[static_cast<std::size_t>(look.fold)].title));
      open = look.fold;
    }
    html += run_html(line.substr(i, end - i), look);
    i = end;
  }
  return open >= 0 ? html + "</mark>" : html;
}

// A file by its name: where it lies on some machine is nobody's business. The library keeps its place.
std::string shown_name(const std::string& path) {
  return path.starts_with("lib/") ? path : path.substr(path.find_last_of('/') + 1);
}

std::string file_html(const SourceMap& sources, std::uint32_t file,
                      const std::vector<Fold>& folds) {
  const Source& source = sources[file];
  const std::vector<Look> looks = looks_of(sources, file, folds);
  std::string html = fmt::format(
      "<div class=\"scroll listing\" role=\"region\" tabindex=\"0\" "
      "aria-label=\"{}\"><table><tbody>\n",
      escape(shown_name(source.name())));
  const std::uint32_t lines = source.line_count();
  for (std::uint32_t number = 1; number <= lines; ++number) {
    const std::string_view line = source.line(number);
    if (number == lines && line.empty()) break;
    const auto begin = static_cast<std::size_t>(line.data() - source.text().data());
    html += fmt::format("<tr id=\"{}\"><td class=\"no\">{}</td><td><code>{}</code></td></tr>\n",
                        line_id(file, number), number, line_html(line, begin, looks, folds));
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace

std::string line_link(const SourceMap& sources, Span span) {
  const std::uint32_t line = sources[span.file].position(span.begin).line;
  std::string module;
  if (span.file != 0) {
    const std::string& path = sources[span.file].name();
    const std::string file = path.substr(path.find_last_of('/') + 1);
    module = escape(file.substr(0, file.rfind(".fold"))) + "\u00a0";
  }
  return fmt::format("<a href=\"#{}\">{}{}</a>", line_id(span.file, line), module, line);
}

std::string listing(const Plan& plan, const SourceMap& sources) {
  const std::vector<Fold> folds = folds_of(plan);
  std::string html = file_html(sources, 0, folds);
  for (std::uint32_t file = 1; file < sources.size(); ++file) {
    html += fmt::format("<details class=\"module\"><summary>Module {}</summary>{}</details>\n",
                        code(shown_name(sources[file].name())), file_html(sources, file, folds));
  }
  return html;
}

namespace {

// Whether a name belongs to a block `each client { ... }`: what it stands for is computed there and differs between clients.
bool inside_a_block(const ir::Program& program, Span name) {
  for (ir::NodeId id = 0; id < program.graph.size(); ++id) {
    const ir::Node& node = program.graph[id];
    if (node.block && node.span.file == name.file && node.span.begin <= name.begin &&
        name.end <= node.span.end)
      return true;
  }
  return false;
}

}  // namespace

std::string names_table(const Plan& plan, const SourceMap& sources, const SizeValues& sizes) {
  std::vector<std::vector<Field>> rows;
  for (const ir::NameType& name : plan.program.name_types) {
    const bool stays = name.type.federated() || inside_a_block(plan.program, name.span);
    rows.push_back({{code(name.name)},
                    {type_tag(name.type)},
                    {amount(name.type, sizes)},
                    {stays ? "stays on each client" : "shared: known to the server"},
                    {line_link(sources, name.span), true}});
  }
  return table("Names and types", {{"Name"}, {"Type"}, {"In words"}, {"Where"}, {"Line", true}},
               rows);
}

}  // namespace starfold::page

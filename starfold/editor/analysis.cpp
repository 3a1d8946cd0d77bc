#include "starfold/editor/analysis.h"

#include <algorithm>

#include "starfold/diff/differentiate.h"
#include "starfold/plan/disclosure.h"
#include "starfold/plan/plan.h"
#include "starfold/syntax/parser.h"

namespace starfold::editor {
namespace {

bool holds(Span span, std::uint32_t offset) {
  return span.file == 0 && span.begin <= offset && offset <= span.end;
}

void collect(const ast::Block& block, Analysis& analysis) {
  for (const ast::Stmt& stmt : block) {
    if (const auto* repeat = std::get_if<ast::Repeat>(&stmt.node)) {
      collect(repeat->body, analysis);
    } else if (const auto* fn = std::get_if<ast::Fn>(&stmt.node)) {
      collect(fn->body, analysis);
      analysis.statements.push_back(fn->value_span);
      analysis.functions.push_back(cover(fn->name.span, fn->braces ? fn->close : fn->value_span));
    } else {
      analysis.statements.push_back(stmt.span);
    }
  }
}

std::vector<Exposure> exposures_of(const Plan& plan) {
  const std::vector<std::vector<Disclosure>> shown = disclosures(plan);
  std::vector<Exposure> exposures;
  for (const Round* round : rounds_of(plan)) {
    for (std::size_t i = 0; i < round->merges.size(); ++i) {
      const ir::NodeId fold = round->merges[i].fold;
      const ir::Node& node = plan.program.graph[fold];
      const Disclosure& disclosure = shown[static_cast<std::size_t>(round->number)][i];
      exposures.push_back({node.span, round->number + 1, round->loop_depth > 0,
                           describe_fold(plan, fold), node.type().to_string(),
                           std::string(round->merges[i].monoid->name),
                           std::string(plain_shows(disclosure.shows)), disclosure.reason});
    }
  }
  std::stable_sort(exposures.begin(), exposures.end(), [](const Exposure& a, const Exposure& b) {
    return a.span.begin < b.span.begin;
  });
  return exposures;
}

// The last of some pieces of text, in their order, that holds a byte; of two that meet there the one that begins.
template <typename Pieces>
auto last_holding(const Pieces& pieces, std::uint32_t offset) {
  auto at =
      std::upper_bound(pieces.begin(), pieces.end(), offset,
                       [](std::uint32_t o, const auto& piece) { return o < piece.span.begin; });
  return at != pieces.begin() && holds(std::prev(at)->span, offset) ? &*std::prev(at) : nullptr;
}

}  // namespace

Analysis analyze(std::string name, std::string text, ModuleLoader load) {
  // The way of compile(), with the names.
  Analysis analysis;
  Compilation& found = analysis.compilation;
  CheckOptions options;
  options.load = std::move(load);
  const ast::File file =
      parse(found.sources, found.sources.add(std::move(name), std::move(text)), found.diagnostics);
  collect(file.items, analysis);
  found.program = check(found.sources, file, options, found.diagnostics, analysis.names);
  if (!found.ok()) return analysis;
  found.program = differentiate(found.program, found.diagnostics);
  found.diagnostics.sort();
  if (!found.ok()) return analysis;
  analysis.exposures = exposures_of(make_plan(found.program));
  analysis.planned = true;
  return analysis;
}

const Definition* definition_at(const Analysis& analysis, Span span) {
  for (const Definition& definition : analysis.names.definitions) {
    if (definition.span == span) return &definition;
  }
  return nullptr;
}

const Definition* definition_of(const Analysis& analysis, std::uint32_t offset, Span& span) {
  if (const Use* use = last_holding(analysis.names.uses, offset)) {
    span = use->span;
    return definition_at(analysis, use->definition);
  }
  for (const Definition& definition : analysis.names.definitions) {
    if (definition.kind == Definition::Kind::module || !holds(definition.span, offset)) continue;
    span = definition.span;
    return &definition;
  }
  return nullptr;
}

const TypedWord* word_at(const Analysis& analysis, std::uint32_t offset) {
  return last_holding(analysis.names.words, offset);
}

std::vector<const Exposure*> exposures_in_statement(const Analysis& analysis,
                                                    std::uint32_t offset) {
  std::vector<const Exposure*> found;
  for (const Span statement : analysis.statements) {
    if (!holds(statement, offset)) continue;
    for (const Exposure& exposure : analysis.exposures) {
      if (exposure.span.file == 0 && exposure.span.begin >= statement.begin &&
          exposure.span.end <= statement.end)
        found.push_back(&exposure);
    }
    break;
  }
  return found;
}

std::string comment_above(std::string_view text, std::uint32_t offset) {
  std::vector<std::string_view> lines;
  std::size_t end = text.rfind('\n', offset == 0 ? 0 : offset - 1);  // of the line above
  while (end != std::string_view::npos && end > 0) {
    const std::size_t before = text.rfind('\n', end - 1);
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    std::string_view line = text.substr(begin, end - begin);
    const std::size_t sign = line.find_first_not_of(" \t");
    if (sign == std::string_view::npos || line[sign] != '#') break;
    line.remove_prefix(std::min(line.find_first_not_of("# \t", sign), line.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back(line);
    end = before;
  }
  std::string comment;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    comment += (comment.empty() ? "" : "\n") + std::string(*line);
  return comment;
}

std::string on_one_line(std::string_view text) {
  std::string line;
  bool blank = false;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      blank = !line.empty();
      continue;
    }
    if (blank) line += ' ';
    blank = false;
    line += c;
  }
  return line;
}

}  // namespace starfold::editor

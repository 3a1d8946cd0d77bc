#include "starfold/study/check_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "starfold/base/json.h"
#include "starfold/base/utf8.h"
#include "starfold/diag/render.h"
#include "starfold/plan/explain.h"
#include "starfold/runtime/engine_print.h"
#include "starfold/study/facts.h"
#include "starfold/syntax/parser.h"
#include "starfold/syntax/print.h"

namespace starfold {
namespace {

std::uint32_t line_of(const Compilation& compilation, Span span) {
  return compilation.sources[span.file].position(span.begin).line;
}

// One row per name, in aligned columns.
std::string types_text(const Compilation& compilation) {
  struct Row {
    std::string name;
    std::string type;
    std::string line;
  };
  std::vector<Row> rows = {{"name", "type", "line"}};
  for (const ir::NameType& name : compilation.program.name_types) {
    rows.push_back(
        {name.name, name.type.to_string(), std::to_string(line_of(compilation, name.span))});
  }
  if (rows.size() == 1) return "";
  std::size_t name_width = 0;
  std::size_t type_width = 0;
  for (const Row& row : rows) {
    name_width = std::max(name_width, row.name.size());
    type_width = std::max(type_width, row.type.size());
  }
  std::string text;
  for (const Row& row : rows) {
    text +=
        fmt::format("{:<{}}  {:<{}}  {}\n", row.name, name_width, row.type, type_width, row.line);
  }
  return text + "\n";
}

}  // namespace

std::string intermediate_form(const std::string& form, const CompiledProgram& program) {
  if (form == "ast") {
    SourceMap sources;
    Diagnostics again;  // reported by the compilation
    return print(parse(sources, sources.add(program.text.name, program.text.text), again));
  }
  if (!program.plan) return "";
  if (form == "ir") return ir::print(program.compilation.program, true);
  return form == "plan" ? print(*program.plan, true) : print_blocks(program.plan);
}

std::string check_text(const CompiledProgram& program, const StudyFacts* study) {
  return types_text(program.compilation) +
         exposure_text(*program.plan, program.compilation.sources) +
         (study != nullptr ? "\n" + facts_text(*study, *program.plan) : "");
}

std::string explain_report(const CompiledProgram& program, const StudyFacts* study) {
  return explain_text(*program.plan) +
         (study != nullptr ? "\n" + facts_text(*study, *program.plan) : "");
}

std::string explain_report_json(const CompiledProgram& program, const StudyFacts* study) {
  nlohmann::json object = explain_json(*program.plan, program.compilation.sources);
  if (study != nullptr) object["study"] = facts_json(*study, *program.plan);
  return json_line(object);
}

std::string check_json(const CompiledProgram& program, const StudyFacts* study) {
  const Compilation& compilation = program.compilation;
  nlohmann::json types = nlohmann::json::array();
  for (const ir::NameType& name : compilation.program.name_types) {
    types.push_back({{"name", name.name},
                     {"type", name.type.to_string()},
                     {"line", line_of(compilation, name.span)}});
  }
  std::vector<std::pair<std::string, nlohmann::json>> members = {
      {"ok", compilation.ok()},
      {"diagnostics", render_json(compilation.diagnostics, compilation.sources)},
      {"types", std::move(types)},
      {"rounds",
       program.plan ? exposure_json(*program.plan, compilation.sources) : nlohmann::json::array()}};
  if (is_split(compilation.program))
    members.insert(members.begin() + 1, {"split", nlohmann::json(true)});
  if (study != nullptr) members.emplace_back("study", facts_json(*study, *program.plan));
  return json_ordered_line(members);
}

std::string diagnostics_json(const Compilation& compilation) {
  return json_line(nlohmann::json{
      {"ok", false}, {"diagnostics", render_json(compilation.diagnostics, compilation.sources)}});
}

std::string trouble_text(const Trouble& trouble, const SourceMap* sources) {
  std::string text =
      trouble.kind == Trouble::Kind::bug
          ? fmt::format("error: this is a mistake in Starfold, please report it: {}\n",
                        trouble.message)
          : fmt::format("error: {}\n", printable_lines(trouble.message));
  if (!trouble.where || sources == nullptr) return text;
  const Source& source = (*sources)[trouble.where->file];
  const Position at = source.position(trouble.where->begin);
  return text + fmt::format("  --> {}:{}:{}\n   |\n{:>2} | {}\n   |\n", source.name(), at.line,
                            at.column, at.line, source.line(at.line));
}

std::string trouble_json(const Trouble& trouble, const SourceMap* sources) {
  nlohmann::json object = {{"ok", false}, {"error", trouble.message}};
  if (!trouble.client.empty())
    object["refused"] = {{"client", trouble.client}, {"rule", trouble.rule}};
  if (trouble.where && sources != nullptr)
    object["line"] = (*sources)[trouble.where->file].position(trouble.where->begin).line;
  return json_line(object);
}

}  // namespace starfold

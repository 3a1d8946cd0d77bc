#include "starfold/study/output/check_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "starfold/base/json.h"
#include "starfold/base/utf8.h"
#include "starfold/diag/render.h"
#include "starfold/plan/explain.h"
#include "starfold/privacy/report.h"
#include "starfold/runtime/steps/print.h"
#include "starfold/study/look/facts.h"
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

privacy::Known known_before_run(const Study& study, const ir::Program& program,
                                const StudyFacts* facts) {
  check_study(study, program);
  privacy::Known known;
  if (facts != nullptr) known.sizes = facts->sizes;
  for (const auto& [name, value] : study.values) {
    const auto is_name = [name = name](const auto& declared) { return declared.name == name; };
    if (std::any_of(program.sizes.begin(), program.sizes.end(), is_name))
      known.sizes[name] = size_value(name, value);
    else
      known.inputs[name] = value;
  }
  return known;
}

PrivacyCheck check_privacy(const CompiledProgram& program, privacy::Unit unit,
                           privacy::Neighbours neighbours, const privacy::Known& given) {
  const ir::Program& declared = program.plan->program;
  const privacy::Known known = privacy::with_defaults(declared, given);
  PrivacyCheck check;
  check.found = privacy::sensitivities(*program.plan, unit, neighbours, known);
  for (const auto& [name, value] : known.inputs) {
    if (given.inputs.count(name) == 0 && value.shape.empty())
      check.assumed.push_back(fmt::format("{} = {}", name, value.item()));
  }
  privacy::report_unbounded(*program.plan, check.found, check.refusals);
  return check;
}

std::string check_text(const CompiledProgram& program, const StudyFacts* study,
                       const PrivacyCheck* privacy) {
  std::string text =
      types_text(program.compilation) + exposure_text(*program.plan, program.compilation.sources);
  if (study != nullptr) text += "\n" + facts_text(*study, *program.plan);
  if (privacy == nullptr) return text;
  text +=
      "\n" + privacy::sensitivity_text(*program.plan, program.compilation.sources, privacy->found);
  if (!privacy->assumed.empty())
    text += fmt::format("\nDefaults of shared inputs count as their values here: {}.\n",
                        fmt::join(privacy->assumed, ", "));
  return text;
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

std::string check_json(const CompiledProgram& program, const StudyFacts* study,
                       const PrivacyCheck* privacy) {
  const Compilation& compilation = program.compilation;
  nlohmann::json diagnostics = render_json(compilation.diagnostics, compilation.sources);
  nlohmann::json rounds =
      program.plan ? exposure_json(*program.plan, compilation.sources) : nlohmann::json::array();
  if (privacy != nullptr) {
    for (nlohmann::json& refusal : render_json(privacy->refusals, compilation.sources))
      diagnostics.push_back(std::move(refusal));
    privacy::add_sensitivities(rounds, *program.plan, compilation.sources, privacy->found);
  }
  nlohmann::json types = nlohmann::json::array();
  for (const ir::NameType& name : compilation.program.name_types) {
    types.push_back({{"name", name.name},
                     {"type", name.type.to_string()},
                     {"line", line_of(compilation, name.span)}});
  }
  std::vector<std::pair<std::string, nlohmann::json>> members = {
      {"ok", compilation.ok() && (privacy == nullptr || privacy->found.bounded())},
      {"diagnostics", std::move(diagnostics)},
      {"types", std::move(types)},
      {"rounds", std::move(rounds)}};
  if (is_split(compilation.program))
    members.insert(members.begin() + 1, {"split", nlohmann::json(true)});
  if (privacy != nullptr) {
    members.emplace_back("privacy",
                         nlohmann::json{{"unit", to_string(privacy->found.unit)},
                                        {"neighbours", to_string(privacy->found.neighbours)},
                                        {"assumed", privacy->assumed}});
  }
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
  const std::string help =
      trouble.help.empty() ? "" : fmt::format("   = help: {}\n", printable_lines(trouble.help));
  if (!trouble.where || sources == nullptr) return text + help;
  const Source& source = (*sources)[trouble.where->file];
  const Position at = source.position(trouble.where->begin);
  return text +
         fmt::format("  --> {}:{}:{}\n   |\n{:>2} | {}\n   |\n", source.name(), at.line, at.column,
                     at.line, source.line(at.line)) +
         help;
}

std::string trouble_json(const Trouble& trouble, const SourceMap* sources) {
  nlohmann::json object = {{"ok", false}, {"error", trouble.message}};
  if (!trouble.help.empty()) object["help"] = trouble.help;
  if (!trouble.client.empty())
    object["refused"] = {{"client", trouble.client}, {"rule", trouble.rule}};
  if (trouble.where && sources != nullptr)
    object["line"] = (*sources)[trouble.where->file].position(trouble.where->begin).line;
  return json_line(object);
}

}  // namespace starfold

#include "starfold/privacy/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

namespace starfold::privacy {
namespace {

Position position(const SourceMap& sources, Span span) {
  return sources[span.file].position(span.begin);
}

// "line 3"; with the file's name for what is written in a module.
std::string line_text(const SourceMap& sources, Span span) {
  const std::string line = fmt::format("line {}", position(sources, span).line);
  return span.file == 0 ? line : fmt::format("{} of {}", line, sources[span.file].name());
}

nlohmann::json place_json(const SourceMap& sources, const char* key, Span span) {
  nlohmann::json place = {{key, position(sources, span).line}};
  if (span.file != 0) place["file"] = sources[span.file].name();
  return place;
}

// What a bound comes from: "clip_norm(x, 1), line 3"; of several the first ones.
std::string origin_text(const Plan& plan, const SourceMap& sources, const MergeSensitivity& merge) {
  std::string text;
  std::set<std::string> said;
  for (const ir::NodeId id : merge.from) {
    const std::string line = line_text(sources, plan.program.graph[id].span);
    if (!said.insert(line).second) continue;
    text += (text.empty() ? "" : ", ") + line;
  }
  return text;
}

std::string title(const Sensitivities& found) {
  const bool record = found.unit == Unit::record;
  const std::string who = record ? "record" : "client";
  const std::string how = found.neighbours == Neighbours::add_remove
                              ? fmt::format("one {} more or less", who)
                              : fmt::format("another {} in the place of one", who);
  return fmt::format("How much {} can change what is released (unit {}, neighbours {}):\n", how,
                     to_string(found.unit), to_string(found.neighbours));
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = "  ";
    for (std::size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{:<{}}", row[i], i + 1 < row.size() ? width[i] + 2 : 0);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::vector<std::string> row(std::string name, const Norms& norms, std::string from) {
  return {std::move(name), norms.l1.to_string(), norms.l2.to_string(), norms.linf.to_string(),
          std::move(from)};
}

}  // namespace

nlohmann::json to_json(const Bound& bound) {
  if (bound.number()) return std::strtod(bound.to_string().c_str(), nullptr);
  return bound.to_string();
}

nlohmann::json to_json(const Norms& norms) {
  return {{"l1", to_json(norms.l1)}, {"l2", to_json(norms.l2)}, {"linf", to_json(norms.linf)}};
}

void report_unbounded(const Plan& plan, const Sensitivities& found, Diagnostics& into) {
  std::set<std::string> told;
  const std::vector<const Round*> rounds = rounds_of(plan);
  for (std::size_t i = 0; i < found.rounds.size(); ++i) {
    for (std::size_t j = 0; j < found.rounds[i].merges.size(); ++j) {
      const std::optional<Unbounded>& unbounded = found.rounds[i].merges[j].unbounded;
      if (!unbounded || !told.insert(unbounded->expr + "\n" + unbounded->help).second) continue;
      const Span fold = plan.program.graph[rounds[i]->merges[j].fold].span;
      Diagnostic diagnostic{unbounded->code,   unbounded->message, {unbounded->where, "here"}, {},
                            unbounded->reason, unbounded->help};
      diagnostic.primary.text =
          unbounded->where == fold ? "released here" : "no bound on what one record adds";
      if (!(unbounded->where == fold)) diagnostic.others.push_back({fold, "released here"});
      into.report(std::move(diagnostic));
    }
  }
}

void add_sensitivities(nlohmann::json& rounds, const Plan& plan, const SourceMap& sources,
                       const Sensitivities& found) {
  for (std::size_t i = 0; i < found.rounds.size(); ++i) {
    const RoundSensitivity& round = found.rounds[i];
    for (std::size_t j = 0; j < round.merges.size(); ++j) {
      const MergeSensitivity& merge = round.merges[j];
      nlohmann::json& entry = rounds[i]["merges"][j];
      if (merge.unbounded) {
        entry["unbounded"] = place_json(sources, "line", merge.unbounded->where);
        entry["unbounded"]["expr"] = merge.unbounded->expr;
        entry["unbounded"]["help"] = merge.unbounded->help;
        continue;
      }
      entry["sensitivity"] = to_json(merge.change);
      entry["bound"] = place_json(sources, "from", plan.program.graph[merge.from.front()].span);
    }
    if (round.bounded()) rounds[i]["sensitivity"] = to_json(round.change);
  }
}

std::string sensitivity_text(const Plan& plan, const SourceMap& sources,
                             const Sensitivities& found) {
  if (found.rounds.empty()) return "";
  std::string text = title(found);
  const std::vector<const Round*> rounds = rounds_of(plan);
  for (std::size_t i = 0; i < found.rounds.size(); ++i) {
    const RoundSensitivity& round = found.rounds[i];
    text += fmt::format("\nround {}{}\n", i + 1,
                        rounds[i]->loop_depth > 0 ? " (in every iteration)" : "");
    std::vector<std::vector<std::string>> rows = {{"", "L1", "L2", "Linf", "bounded by"}};
    for (std::size_t j = 0; j < round.merges.size(); ++j) {
      const MergeSensitivity& merge = round.merges[j];
      std::string name = describe_fold(plan, rounds[i]->merges[j].fold);
      if (merge.unbounded)
        rows.push_back({std::move(name), "no bound"});
      else
        rows.push_back(row(std::move(name), merge.change, origin_text(plan, sources, merge)));
    }
    if (round.bounded() && round.merges.size() > 1)
      rows.push_back(row("all together", round.change, ""));
    text += table(rows);
  }
  return text;
}

}  // namespace starfold::privacy

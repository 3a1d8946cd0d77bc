#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "starfold/merge/monoid.h"
#include "starfold/plan/disclosure.h"
#include "starfold/plan/explain.h"

namespace starfold {
namespace {

std::vector<std::string> shape_strings(const Type& type) {
  std::vector<std::string> shape;
  for (const Dim& dim : type.dims) shape.push_back(dim.to_string());
  return shape;
}

std::uint32_t line_of(const Plan& plan, const SourceMap& sources, ir::NodeId id) {
  const Span span = plan.program.graph[id].span;
  return sources[span.file].position(span.begin).line;
}

std::string size_string(const std::optional<Size>& size) {
  return size ? size->to_string() : "many";
}

// "line 3"; with the file's name for what is written in a module.
std::string line_text(const Plan& plan, const SourceMap& sources, ir::NodeId id) {
  const std::uint32_t file = plan.program.graph[id].span.file;
  const std::string line = fmt::format("line {}", line_of(plan, sources, id));
  return file == 0 ? line : fmt::format("{} of {}", line, sources[file].name());
}

// The results that stay at each client in a round.
std::vector<const ir::Output*> kept_in(const Plan& plan, const Round& round) {
  std::vector<const ir::Output*> kept;
  for (const Store& store : round.stores) {
    if (store.what == Store::What::keep) kept.push_back(&plan.program.keeps[store.index]);
  }
  return kept;
}

// Columns as wide as their widest entry.
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t indent) {
  std::vector<std::size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{:<{}}", row[i], i + 1 < row.size() ? width[i] + 2 : 0);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace

bool is_split(const ir::Program& program) {
  for (ir::NodeId id = 0; id < program.graph.size(); ++id) {
    const ir::Node& node = program.graph[id];
    if (node.block || (node.federated() && node.kind == ir::Kind::loop_param)) return true;
  }
  return false;
}

nlohmann::json exposure_json(const Plan& plan, const SourceMap& sources) {
  const std::vector<std::vector<Disclosure>> shown = disclosures(plan);
  const std::vector<bool> split = ir::find_split(plan.program);
  nlohmann::json rounds = nlohmann::json::array();
  for (const Round* round : rounds_of(plan)) {
    nlohmann::json entry = {{"loop", round->loop_depth},
                            {"numbers", message_numbers(plan, *round)},
                            {"receives", nlohmann::json::array()},
                            {"merges", nlohmann::json::array()}};
    for (const ir::NodeId id : round->receives) {
      entry["receives"].push_back(
          {{"name", describe(plan, id)}, {"shape", shape_strings(plan.program.graph[id].type())}});
    }
    for (std::size_t i = 0; i < round->merges.size(); ++i) {
      const Merge& merge = round->merges[i];
      const Disclosure& disclosure = shown[static_cast<std::size_t>(round->number)][i];
      entry["merges"].push_back({{"expr", describe_fold(plan, merge.fold)},
                                 {"shape", shape_strings(plan.program.graph[merge.fold].type())},
                                 {"merge", merge.monoid->name},
                                 {"line", line_of(plan, sources, merge.fold)},
                                 {"numbers", size_string(state_size(plan, merge))},
                                 {"shows", to_string(disclosure.shows)},
                                 {"reason", disclosure.reason}});
      if (plan.exact) entry["merges"].back()["bytes"] = size_string(state_bytes(plan, merge));
      if (split[merge.fold]) entry["merges"].back()["split"] = true;
    }
    for (const ir::Output* kept : kept_in(plan, *round))
      entry["keeps"].push_back(
          {{"name", kept->name}, {"shape", shape_strings(plan.program.graph[kept->node].type())}});
    rounds.push_back(std::move(entry));
  }
  return rounds;
}

namespace {

// What all parts of a state make together; each of its numbers counts as often as `each` says.
template <typename Each>
std::optional<Size> state_total(const Plan& plan, const Merge& merge, Each each) {
  std::vector<Size> result;
  for (const Dim& dim : plan.program.graph[merge.fold].type().dims) result.push_back(dim.size);
  std::optional<Size> total = Size(0);
  for (const Part& part : merge.monoid->parts) {
    std::optional<Size> count = Size(each(part));
    for (const Size& size : extents(part, result)) {
      if (count) count = multiply(*count, size);
    }
    total = total && count ? add(*total, *count) : std::nullopt;
  }
  return total;
}

}  // namespace

std::optional<Size> state_size(const Plan& plan, const Merge& merge) {
  return state_total(plan, merge, [](const Part&) { return std::int64_t{1}; });
}

std::optional<Size> state_bytes(const Plan& plan, const Merge& merge) {
  return state_total(plan, merge, [](const Part& part) {
    return static_cast<std::int64_t>(8 * std::max<std::size_t>(part.words, 1));
  });
}

std::optional<Size> message_size(const Plan& plan, const Round& round) {
  std::optional<Size> total = Size(0);
  for (const Merge& merge : round.merges) {
    const std::optional<Size> count = state_size(plan, merge);
    total = total && count ? add(*total, *count) : std::nullopt;
  }
  return total;
}

std::string message_numbers(const Plan& plan, const Round& round) {
  return size_string(message_size(plan, round));
}

std::string exposure_text(const Plan& plan, const SourceMap& sources) {
  const std::vector<const Round*> rounds = rounds_of(plan);
  if (rounds.empty()) return "No value leaves the clients: the program folds no records.\n";
  const std::vector<std::vector<Disclosure>> shown = disclosures(plan);
  const std::vector<bool> split = ir::find_split(plan.program);
  std::string text;
  if (is_split(plan.program))
    text += "The answer depends on how the records are split over the clients.\n\n";
  text += "What leaves each client, what it shows, and what the client is sent:\n";
  if (plan.exact)
    text += "The run is exact: a number that rounding could change travels as an integer.\n";
  std::vector<std::vector<std::string>> reasons;
  for (const Round* round : rounds) {
    text += fmt::format("\nround {}{}: {} {}\n", round->number + 1,
                        round->loop_depth > 0
                            ? fmt::format(" (in every iteration, loop depth {})", round->loop_depth)
                            : "",
                        message_numbers(plan, *round),
                        message_numbers(plan, *round) == "1" ? "number" : "numbers");
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < round->merges.size(); ++i) {
      const Merge& merge = round->merges[i];
      const Disclosure& disclosure = shown[static_cast<std::size_t>(round->number)][i];
      const std::string line = line_text(plan, sources, merge.fold);
      rows.push_back({"leaves", describe_fold(plan, merge.fold),
                      plan.program.graph[merge.fold].type().to_string(),
                      plan.exact ? fmt::format("merge {}, {} bytes", merge.monoid->name,
                                               size_string(state_bytes(plan, merge)))
                                 : fmt::format("merge {}", merge.monoid->name),
                      line,
                      std::string(plain_shows(disclosure.shows)) +
                          (split[merge.fold] ? ", depends on the split" : "")});
      if (disclosure.shows >= Shows::group)
        reasons.push_back({line, describe_fold(plan, merge.fold), disclosure.reason});
    }
    for (const ir::NodeId id : round->receives) {
      rows.push_back({"is sent", describe(plan, id), plan.program.graph[id].type().to_string()});
    }
    for (const ir::Output* kept : kept_in(plan, *round))
      rows.push_back({"stays", kept->name, plan.program.graph[kept->node].type().to_string(),
                      "kept by each client", line_text(plan, sources, kept->node)});
    text += table(rows, 2);
  }
  if (!reasons.empty()) text += "\nWhat can show single records:\n" + table(reasons, 2);
  return text;
}

}  // namespace starfold

#include "starfold/node/description.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "starfold/base/error.h"
#include "starfold/base/json.h"
#include "starfold/base/version.h"
#include "starfold/data/memory.h"
#include "starfold/ir/ir.h"

namespace starfold {
namespace {

using nlohmann::json;

constexpr std::pair<ColumnKind, const char*> kinds[] = {{ColumnKind::number, "number"},
                                                        {ColumnKind::date, "date"},
                                                        {ColumnKind::text, "text"},
                                                        {ColumnKind::unknown, "unknown"},
                                                        {ColumnKind::other, "other"}};

const char* kind_word(ColumnKind kind) {
  return std::find_if(std::begin(kinds), std::end(kinds),
                      [&](const auto& row) { return row.first == kind; })
      ->second;
}

ColumnKind kind_of(const std::string& word) {
  const auto* found = std::find_if(std::begin(kinds), std::end(kinds),
                                   [&](const auto& row) { return row.second == word; });
  return found == std::end(kinds) ? ColumnKind::other : found->first;
}

// Levels that the owner lets be told: those that enough records have.
json told_levels(const Table& table, std::size_t column, double least) {
  json levels = json::array();
  try {
    for (const auto& [level, count] : table.levels(column, most_levels)) {
      if (static_cast<double>(count) >= least) levels.push_back(level);
    }
  } catch (const RunError&) {  // too many, or they cannot be read: then a run cannot either
    return json::array();
  }
  return levels;
}

// Only what the owner lists; whether it is there was asked when the source was opened.
json columns_json(const NodeSource& source, const DataSource& data, const Policy& policy) {
  json columns = json::array();
  for (const std::string& name : source.columns) {
    json column = {{"name", name}, {"kind", "number"}, {"type", "number"}};
    if (data.table) {
      const std::vector<ColumnInfo>& all = data.table->columns();
      const auto found = std::find_if(all.begin(), all.end(),
                                      [&](const ColumnInfo& info) { return info.name == name; });
      if (found == all.end()) continue;
      column["kind"] = kind_word(found->kind);
      column["type"] = found->type;
      if (std::find(source.levels.begin(), source.levels.end(), name) != source.levels.end())
        column["levels"] = told_levels(*data.table, static_cast<std::size_t>(found - all.begin()),
                                       policy.min_support);
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

std::string describe_node(const NodeConfig& config, const std::optional<secure::Key>& key) {
  const MemoryPlan memory = plan_memory(0);
  Tables tables({memory.reader, memory.records});
  json sources = json::object();
  for (const NodeSource& source : config.sources)
    sources[source.name] = {
        {"columns", columns_json(source, open_node_source(config, source, tables), config.policy)}};
  json description = {{"name", config.name},
                      {"version", version()},
                      {"sources", std::move(sources)},
                      {"policy", parse_json(canonical(config.policy))}};
  if (key) description["key"] = secure::key_text(*key);
  return json_line(description);
}

NodeDescription parse_description(std::string_view text) {
  try {
    const json written = parse_json(text, 10);
    NodeDescription description;
    description.name = written.at("name").get<std::string>();
    for (const auto& [name, source] : written.at("sources").items()) {
      std::vector<ColumnInfo>& columns = description.sources[name];
      for (const json& column : source.at("columns")) {
        columns.push_back({column.at("name").get<std::string>(),
                           kind_of(column.at("kind").get<std::string>()),
                           column.at("type").get<std::string>()});
        if (const auto levels = column.find("levels"); levels != column.end())
          description.levels[name][columns.back().name] = levels->get<std::vector<std::string>>();
      }
    }
    if (written.contains("key"))
      description.key = secure::parse_key(written.at("key").get<std::string>());
    return description;
  } catch (const json::exception&) {
    throw RunError("a node's description of itself cannot be read");
  }
}

}  // namespace starfold

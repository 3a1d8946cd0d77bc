#include "starfold/node/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "starfold/base/error.h"
#include "starfold/base/json.h"
#include "starfold/base/utf8.h"
#include "starfold/data/binding/identifiers.h"
#include "starfold/data/memory.h"
#include "starfold/data/records.h"
#include "starfold/merge/monoid.h"
#include "starfold/node/identity.h"

namespace starfold {
namespace {

struct SourceFacts {
  const NodeSource* source = nullptr;
  std::optional<std::int64_t> records;  // none: no column of numbers was read
  std::vector<std::string> kinds;       // by column: "integer", "text"
  std::vector<std::string> warnings;
};

// Reads the columns of numbers once, for what their values say about them.
void read_values(const DataSource& opened, const std::vector<std::string>& columns,
                 std::vector<ColumnEvidence>& evidence) {
  if (!opened.table) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Tensor& array = opened.arrays.at(columns[i]);
      if (array.rank() == 1) evidence[i].add(array.data.data(), array.data.size());
    }
    return;
  }
  std::vector<ColumnUse> uses;
  std::vector<ColumnEvidence*> targets;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto at = std::find(opened.order.begin(), opened.order.end(), columns[i]);
    const auto place = static_cast<std::size_t>(at - opened.order.begin());
    const ColumnKind kind = opened.table->columns()[place].kind;
    if (kind != ColumnKind::number && kind != ColumnKind::unknown) continue;
    uses.push_back({place, nullptr});
    targets.push_back(&evidence[i]);
  }
  if (uses.empty()) return;
  RecordReader reader(opened.table, uses, Missing::nan);
  while (reader.next()) {
    for (std::size_t i = 0; i < targets.size(); ++i)
      targets[i]->add(reader.columns()[i], reader.records());
  }
}

SourceFacts look_at(const NodeConfig& config, const NodeSource& source, Tables& tables) {
  const DataSource opened = open_node_source(config, source, tables);
  SourceFacts facts;
  facts.source = &source;
  std::vector<ColumnEvidence> evidence(source.columns.size());
  try {
    read_values(opened, source.columns, evidence);
  } catch (const RunError& error) {
    throw RunError(fmt::format("data.{}: {}", source.name, error.what()));
  }
  for (std::size_t i = 0; i < source.columns.size(); ++i) {
    const std::string& column = source.columns[i];
    const auto at = std::find(opened.order.begin(), opened.order.end(), column);
    facts.kinds.push_back(
        opened.table
            ? opened.table->columns()[static_cast<std::size_t>(at - opened.order.begin())].type
            : "array");
    if (evidence[i].records() > 0) facts.records = evidence[i].records();
    const std::string by_name = objection_to_name(column);
    const std::string objection = by_name.empty() ? evidence[i].objection() : by_name;
    if (!objection.empty())
      facts.warnings.push_back(fmt::format(
          "{}:{}: data.{}: column {} {}{}", config.file, source.line, source.name, column,
          objection,
          objection.starts_with("looks") ? "; a program could use it to pick out single records"
                                         : ""));
  }
  if (facts.records && *facts.records < config.policy.min_records)
    facts.warnings.push_back(fmt::format(
        "data.{} has {} records, fewer than min_records = {}: every study of it is refused",
        source.name, *facts.records, config.policy.min_records));
  return facts;
}

std::vector<SourceFacts> look_at_all(const NodeConfig& config) {
  const MemoryPlan memory = plan_memory(0);
  Tables tables({memory.reader, memory.records});
  std::vector<SourceFacts> all;
  for (const NodeSource& source : config.sources) all.push_back(look_at(config, source, tables));
  return all;
}

std::vector<std::string> all_warnings(const NodeConfig& config,
                                      const std::vector<SourceFacts>& facts) {
  std::vector<std::string> warnings = config.warnings;
  for (const SourceFacts& one : facts)
    warnings.insert(warnings.end(), one.warnings.begin(), one.warnings.end());
  for (const Monoid* row : all_monoids()) {
    const auto& merges = config.policy.merges;
    if (std::find(merges.begin(), merges.end(), row->name) == merges.end()) continue;
    // One record is enough to make a product 0, any of them true, all of them false.
    const bool decided_by_one = row->name == "prod" || row->name == "any" || row->name == "all";
    if (row->shows_single || decided_by_one)
      warnings.push_back(fmt::format("policy.merges has {}, {}", row->name,
                                     decided_by_one ? "which one record can decide"
                                                    : "whose messages hold a value of one record"));
  }
  if (config.policy.min_support < 2)
    warnings.emplace_back("policy.min_support below 2 lets out numbers that rest on one record");
  return warnings;
}

std::string source_text(const SourceFacts& facts) {
  const NodeSource& source = *facts.source;
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < source.columns.size(); ++i)
    columns.push_back(fmt::format("{} ({})", source.columns[i], facts.kinds[i]));
  const std::string from = source.location.query.empty()  ? source.location.path
                           : source.location.path.empty() ? "a query"
                                                          : "a query over " + source.location.path;
  return fmt::format(
      "  {}: {}{}\n    columns {}\n{}", source.name, from,
      facts.records ? fmt::format(", {} records", *facts.records) : "", fmt::join(columns, ", "),
      source.levels.empty()
          ? ""
          : fmt::format("    everyone who asks is told which values {} has, where at least "
                        "min_support records have them\n",
                        fmt::join(source.levels, ", ")));
}

// One sentence for each rule, with the key that sets it.
std::vector<std::string> rules(const Policy& policy) {
  std::vector<std::string> lines;
  const auto rule = [&](const char* key, std::string text) {
    lines.push_back(fmt::format("{:<20}{}", key, text));
  };
  rule("min_records", fmt::format("at least {} usable records, or no study", policy.min_records));
  rule("min_support", fmt::format("every number that leaves rests on at least {} records, none of "
                                  "which dominates it, or on none",
                                  policy.min_support));
  rule("max_ratio",
       fmt::format("at most {} number(s) for each usable record in one round", policy.max_ratio));
  rule("max_total_ratio",
       fmt::format("and at most {} over a whole study, reruns included", policy.max_total_ratio));
  rule("merges",
       fmt::format("records are only put together by {}", fmt::join(policy.merges, ", ")));
  rule("max_numbers", fmt::format("at most {} numbers for each study", policy.max_numbers));
  rule("max_rounds", fmt::format("at most {} rounds for each study", policy.max_rounds));
  rule("max_refusals", fmt::format("after {} refusal(s) that depend on records a study stops until "
                                   "you approve it again",
                                   policy.max_refusals));
  switch (policy.programs) {
    case Policy::Programs::any:
      rule("programs", "any program may run within these rules");
      break;
    case Policy::Programs::approved:
      rule("programs", "a program that was not seen before waits until you approve it");
      break;
    case Policy::Programs::listed:
      rule("programs", fmt::format("only the {} listed plan(s) may run", policy.plans.size()));
      break;
  }
  rule("local_blocks", policy.local_blocks
                           ? "results of `each client` may be put together and leave; on how many "
                             "records they rest inside is not looked at"
                           : "results of `each client` do not leave");
  rule("privacy", policy.privacy_required ? "only studies that add noise for differential privacy"
                                          : "noise for differential privacy is not asked for");
  if (policy.budget)
    rule("budget", fmt::format("over all studies at most epsilon = {} at delta = {}",
                               policy.budget->epsilon, policy.budget->delta));
  rule("secure_aggregation", policy.secure_aggregation_required
                                 ? "only messages that are masked until they are merged"
                                 : "messages need not be masked");
  rule("minimum_clients", fmt::format("masked messages are merged with those of at least {} others",
                                      policy.minimum_clients - 1));
  if (!policy.peers.empty())
    rule("peers", fmt::format("and only with those of the {} listed node(s)", policy.peers.size()));
  return lines;
}

}  // namespace

std::string describe_policy(const NodeConfig& config) {
  const std::vector<SourceFacts> facts = look_at_all(config);
  std::string text = fmt::format("Node {}: programs may compute with\n", config.name);
  for (const SourceFacts& one : facts) text += source_text(one);
  text += "\nWhat leaves are numbers that these records were folded into, under these rules:\n";
  for (const std::string& line : rules(config.policy)) text += "  " + line + "\n";
  text += fmt::format(
      "\nWhatever else is refused, and all of it is written into {}. The hash of this policy "
      "is\n{}\n",
      config.ledger, policy_hash(config.policy));
  const std::optional<secure::Key> key = known_key(config);
  text += key ? fmt::format("The key of this node, for studies that mask, is\n{}\n",
                            secure::key_text(*key))
              : "This node has no key yet; `starfold node key` makes one, and so does serving.\n";
  const std::vector<std::string> warnings = all_warnings(config, facts);
  for (const std::string& warning : warnings)
    text += fmt::format("{}warning: {}\n", &warning == &warnings.front() ? "\n" : "", warning);
  return printable_lines(text);
}

std::string describe_policy_json(const NodeConfig& config) {
  const std::vector<SourceFacts> facts = look_at_all(config);
  nlohmann::json sources = nlohmann::json::array();
  for (const SourceFacts& one : facts) {
    nlohmann::json columns = nlohmann::json::array();
    for (std::size_t i = 0; i < one.kinds.size(); ++i)
      columns.push_back({{"name", one.source->columns[i]}, {"type", one.kinds[i]}});
    nlohmann::json source = {{"name", one.source->name}, {"columns", std::move(columns)}};
    if (one.records) source["records"] = *one.records;
    sources.push_back(std::move(source));
  }
  const std::optional<secure::Key> key = known_key(config);
  return json_ordered_line(
      {{"ok", true},
       {"node", config.name},
       {"key", key ? nlohmann::json(secure::key_text(*key)) : nlohmann::json()},
       {"sources", std::move(sources)},
       {"policy", parse_json(canonical(config.policy))},
       {"policy_hash", policy_hash(config.policy)},
       {"warnings", all_warnings(config, facts)}});
}

}  // namespace starfold

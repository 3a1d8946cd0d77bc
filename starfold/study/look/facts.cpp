#include "starfold/study/look/facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "starfold/base/utf8.h"
#include "starfold/data/memory.h"
#include "starfold/plan/explain.h"
#include "starfold/study/load.h"
#include "starfold/study/nodes/node_table.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

// A table of which only the columns are known.
class TableHead : public RecordTable {
 public:
  explicit TableHead(const ColumnPlan& plan) {
    for (const auto& [input, names] : input_names(plan)) {
      inputs_.emplace(input, Place{columns_, names.size()});
      columns_ += names.size();
    }
  }
  const double* kept(std::size_t /*block*/) const override { return nullptr; }
  bool seekable() const override { return true; }
  std::unique_ptr<RecordCursor> read(std::int64_t /*first*/, std::size_t /*block*/,
                                     std::size_t /*stride*/) const override {
    class Nothing : public RecordCursor {
      std::size_t next(double* /*to*/) override { return 0; }
    };
    return std::make_unique<Nothing>();
  }
};

// Adds what the clients' data says. Arrays are read whole; they are in memory anyway.
void add_data(const Study& study, const ir::Program& program, StudyFacts& facts) {
  const MemoryPlan memory = plan_memory(study.memory);
  Tables tables({memory.reader, memory.records});
  std::vector<DataSource> sources;
  for (const StudyClient& client : study.clients)
    sources.push_back(open_source(program, client.name, client.data, tables));
  const ColumnPlan plan =
      plan_columns(program, sources, study.bindings, study.categoricals, study_formula(study));
  facts.columns = input_names(plan);
  facts.references = reference_levels(plan);
  for (const DataSource& source : sources) {
    Client client{source.client, {}, nullptr};
    if (!source.table) {
      client = load_client(program, source, plan, {Missing::nan, 1}, tables.room()).client;
    } else if (!plan.empty()) {
      client.table = std::make_shared<TableHead>(plan);
    }
    facts.sizes = bind_client(program, client, facts.sizes);
  }
}

// Adds what a study says of the columns of nodes: they are not asked. Nothing where it takes all columns that they have.
void add_named_columns(const Study& study, const ir::Program& program, StudyFacts& facts) {
  std::vector<ColumnInfo> columns;
  const auto add = [&](const std::string& name) {
    const bool text = study.categoricals.count(name) != 0;
    columns.push_back({name, text ? ColumnKind::text : ColumnKind::number, ""});
  };
  if (!study.formula.empty()) {
    const formula::Formula formula = formula::parse_formula(study.formula);
    if (has_dot(formula)) return;
    std::vector<std::string> names = names_in(formula.right);
    if (formula.response) {
      for (const std::string& name : names_in(*formula.response)) names.push_back(name);
    }
    for (const std::string& name : names) {
      if (name != "site") add(name);
    }
  }
  for (const ir::Input& input : program.inputs) {
    const auto bound = study.bindings.find(input.name);
    if (bound == study.bindings.end() && input.type.federated()) add(input.name);
    if (bound == study.bindings.end()) continue;
    if (bound->second.rest) return;
    for (const std::string& name : bound->second.columns) add(name);
  }
  const ColumnPlan plan = plan_columns(program, {node_source("a node", std::move(columns))},
                                       study.bindings, study.categoricals, study_formula(study));
  facts.columns = input_names(plan);
  facts.references = reference_levels(plan);
  if (plan.empty()) return;
  Client client{"a node", {}, std::make_shared<TableHead>(plan)};
  facts.sizes = bind_client(program, client, facts.sizes);
}

// The numbers in a message; nullopt while a size is unknown.
std::optional<std::int64_t> numbers_in(const Plan& plan, const Round& round,
                                       const SizeValues& sizes) {
  const std::optional<Size> size = message_size(plan, round);
  return size ? size->evaluate(sizes) : std::nullopt;
}

// Names of columns of one input, not all when there are many.
std::string some_names(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() < most) shown.push_back(printable(name));
  }
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
}

std::string clients_text(const StudyFacts& facts) {
  if (!facts.simulation.empty()) return fmt::format("  made-up clients: {}\n", facts.simulation);
  constexpr std::size_t most = 20;
  std::string text;
  for (const StudyFacts::Client& client : facts.clients) {
    if (&client == &facts.clients.front() + most) break;
    text += fmt::format("  client {}: {}{}{}\n", printable(client.name), printable(client.data),
                        client.data.empty() || client.query.empty() ? "" : ", ",
                        client.query.empty() ? "" : "query " + printable(client.query));
  }
  if (facts.clients.size() > most)
    text += fmt::format("  and {} more clients\n", facts.clients.size() - most);
  return text;
}

}  // namespace

StudyFacts study_facts(const Study& study, const ir::Program& program) {
  check_study(study, program);
  StudyFacts facts;
  facts.file = fs::path(study.file).filename().string();
  facts.simulation = study.simulation;
  facts.missing = missing_word(study.missing);
  facts.privacy = study.privacy;
  facts.formula = study.formula;
  for (const StudyClient& client : study.clients)
    facts.clients.push_back({client.name,
                             client.source.empty()
                                 ? fs::path(client.data.path).filename().string()
                                 : fmt::format("a node, its source {}", client.source),
                             client.data.query, !client.source.empty()});
  if (study.secure) {
    facts.group = secure::Group{study.secure->threshold, study.secure->minimum_clients, {}};
    for (const StudyClient& client : study.clients)
      facts.group->members.push_back(
          {client.name, secure::parse_key(client.key).value_or(secure::Key{})});
  }
  facts.sizes = bind_settings(program, study_settings(study, program));
  if (study.federation.via != Federation::Via::files) {
    add_named_columns(study, program, facts);
  } else if (!study.clients.empty()) {
    add_data(study, program, facts);
  }
  return facts;
}

std::string facts_text(const StudyFacts& facts, const Plan& plan) {
  std::string text = fmt::format("The study {}:\n{}", printable(facts.file), clients_text(facts));
  if (!facts.formula.empty()) text += fmt::format("  formula {}\n", printable(facts.formula));
  for (const ir::Input& input : plan.program.inputs) {
    if (!input.type.federated() || !facts.simulation.empty()) continue;
    const auto columns = facts.columns.find(input.name);
    text += fmt::format(
        "  input {} {}: {}\n", input.name, input.type.to_string(),
        columns == facts.columns.end() ? "the array of its name" : some_names(columns->second));
  }
  for (const auto& [name, value] : facts.sizes)
    text += fmt::format("  size {} = {}\n", name, value);
  text += fmt::format("  records with a missing value: {}\n", facts.missing);
  if (facts.privacy) {
    text += fmt::format("  privacy: epsilon {:g}, delta {:g}, noise at the {}\n",
                        facts.privacy->epsilon, facts.privacy->delta, to_string(facts.privacy->at));
    for (const std::string& sentence : privacy::guarantees(*facts.privacy))
      text += fmt::format("    {}\n", sentence);
  }
  for (const Round* round : rounds_of(plan)) {
    const std::optional<std::int64_t> count = numbers_in(plan, *round, facts.sizes);
    if (count)
      text += fmt::format("  round {}: a client sends {} {}\n", round->number + 1, *count,
                          *count == 1 ? "number" : "numbers");
  }
  if (facts.group)
    text += fmt::format(
        "  what clients send is masked: the server sees sums over at least {} of {} clients, and "
        "no "
        "number of a single one\n",
        facts.group->inputs(), facts.group->members.size());
  return text;
}

nlohmann::json facts_json(const StudyFacts& facts, const Plan& plan) {
  nlohmann::json clients = nlohmann::json::array();
  for (const StudyFacts::Client& client : facts.clients) {
    nlohmann::json entry = {{"name", client.name}};
    if (!client.data.empty()) entry["data"] = client.data;
    if (!client.query.empty()) entry["query"] = client.query;
    clients.push_back(std::move(entry));
  }
  nlohmann::json numbers = nlohmann::json::array();
  for (const Round* round : rounds_of(plan)) {
    const std::optional<std::int64_t> count = numbers_in(plan, *round, facts.sizes);
    numbers.push_back(count ? nlohmann::json(*count) : nlohmann::json());
  }
  nlohmann::json json = {{"file", facts.file},       {"clients", std::move(clients)},
                         {"columns", facts.columns}, {"sizes", facts.sizes},
                         {"missing", facts.missing}, {"round_numbers", std::move(numbers)}};
  if (!facts.simulation.empty()) json["simulation"] = facts.simulation;
  if (facts.group)
    json["secure_aggregation"] = {{"clients", facts.group->members.size()},
                                  {"threshold", facts.group->answers()},
                                  {"minimum_clients", facts.group->inputs()}};
  if (!facts.formula.empty()) json["formula"] = facts.formula;
  return json;
}

}  // namespace starfold

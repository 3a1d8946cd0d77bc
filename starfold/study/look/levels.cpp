#include "starfold/study/look/levels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/memory.h"
#include "starfold/data/text/values.h"
#include "starfold/node/description.h"
#include "starfold/study/nodes/over_nodes.h"
#include "starfold/toml/text.h"

namespace starfold {
namespace {

// What a client has, and how to ask it for levels.
struct Asked {
  std::string client;
  std::vector<ColumnInfo> columns;
  std::function<std::vector<std::string>(const std::string& column)> levels;

  const ColumnInfo* find(const std::string& name) const {
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const ColumnInfo& info) { return info.name == name; });
    return found == columns.end() ? nullptr : &*found;
  }
};

std::vector<Asked> ask_files(const Study& study) {
  static const ir::Program no_program;
  const MemoryPlan memory = plan_memory(study.memory);
  Tables tables({memory.reader, memory.records});
  std::vector<Asked> clients;
  for (const StudyClient& client : study.clients) {
    const DataSource source = open_source(no_program, client.name, client.data, tables);
    if (!source.table)
      throw RunError(fmt::format("client {} has arrays, which have no levels", client.name));
    clients.push_back(
        {client.name, source.table->columns(), [table = source.table](const auto& name) {
           const auto& columns = table->columns();
           const auto at = std::find_if(columns.begin(), columns.end(),
                                        [&](const auto& info) { return info.name == name; });
           std::vector<std::string> levels;
           for (const auto& [level, count] :
                table->levels(static_cast<std::size_t>(at - columns.begin()), most_levels))
             levels.push_back(level);
           return levels;
         }});
  }
  return clients;
}

std::vector<Asked> ask_nodes(const Study& study, const std::atomic<bool>* stop) {
  const std::vector<NodeDescription> described = describe_nodes(study, stop);
  std::vector<Asked> clients;
  for (std::size_t i = 0; i < described.size(); ++i) {
    const std::string source = study.clients[i].source;
    const auto levels = described[i].levels.find(source);
    const auto told = levels == described[i].levels.end()
                          ? std::map<std::string, std::vector<std::string>>()
                          : levels->second;
    clients.push_back(
        {study.clients[i].name, described[i].sources.at(source),
         [told, source](const std::string& column) {
           const auto found = told.find(column);
           if (found == told.end())
             throw RunError(fmt::format(
                 "it does not tell the levels of {0}; its owner can let it, with levels "
                 "= [\"{0}\"] in [data.{1}], or tell you what to declare",
                 printable(column), printable(source)));
           return found->second;
         }});
  }
  return clients;
}

// The columns that a study uses; those that a formula makes factors of are among `factors`.
std::vector<std::string> used_columns(const Study& study) {
  std::vector<std::string> names;
  if (!study.formula.empty()) names = names_in(formula::parse_formula(study.formula));
  for (const auto& [input, choice] : study.bindings)
    names.insert(names.end(), choice.columns.begin(), choice.columns.end());
  return names;
}

// Names inside C(...), which are factors whatever the column holds.
void factor_names(const formula::Expr& expr, std::set<std::string>& names) {
  const bool factor = expr.is_call("C") || expr.is_call("factor") || expr.is_call("as.factor") ||
                      expr.is_call("relevel");
  if (factor && !expr.args.empty() && expr.args[0].kind == formula::Expr::Kind::name)
    names.insert(expr.args[0].text);
  for (const formula::Expr& arg : expr.args) factor_names(arg, names);
}

bool is_text(const std::vector<Asked>& clients, const std::string& name) {
  return std::any_of(clients.begin(), clients.end(), [&](const Asked& client) {
    const ColumnInfo* info = client.find(name);
    return info != nullptr && info->kind == ColumnKind::text && info->note.empty();
  });
}

std::vector<std::string> choose_columns(const Study& study, const std::vector<Asked>& clients) {
  std::vector<std::string> names = used_columns(study);
  std::set<std::string> factors;
  if (!study.formula.empty()) factor_names(formula::parse_formula(study.formula).right, factors);
  const bool everything =
      names.empty() || std::find(names.begin(), names.end(), ".") != names.end();
  if (everything) {
    for (const ColumnInfo& info : clients.front().columns) names.push_back(info.name);
  }
  std::erase_if(names, [&](const std::string& name) {
    const bool all = std::all_of(clients.begin(), clients.end(),
                                 [&](const Asked& client) { return client.find(name) != nullptr; });
    return !all || study.categoricals.count(name) != 0 ||
           (factors.count(name) == 0 && !is_text(clients, name));
  });
  std::vector<std::string> once;
  for (const std::string& name : names) {
    if (std::find(once.begin(), once.end(), name) == once.end()) once.push_back(name);
  }
  return once;
}

ColumnLevels levels_of(const Study& study, const std::vector<Asked>& clients,
                       const std::string& column) {
  std::set<std::string> all;
  for (const Asked& client : clients) {
    try {
      if (client.find(column) == nullptr)
        throw RunError(fmt::format("it has no column {}", printable(column)));
      for (const std::string& level : client.levels(column)) all.insert(level);
    } catch (const RunError& error) {
      throw RunError(
          fmt::format("client {}: column {}: {}", client.client, printable(column), error.what()));
    }
  }
  ColumnLevels result{column, in_order({all.begin(), all.end()}), false, {}};
  const auto declared = study.categoricals.find(column);
  if (declared == study.categoricals.end()) return result;
  result.declared = true;
  const std::vector<std::string>& known = declared->second->levels;
  for (const std::string& level : result.levels) {
    if (std::find(known.begin(), known.end(), level) == known.end())
      result.lacking.push_back(level);
  }
  return result;
}

}  // namespace

std::vector<std::string> in_order(const std::vector<std::string>& levels) {
  std::vector<std::string> sorted = levels;
  double ignored = 0;
  const bool numbers = std::all_of(levels.begin(), levels.end(), [&](const std::string& level) {
    return parse_number(level, ignored) == NumberFault::none;
  });
  std::sort(sorted.begin(), sorted.end(), [&](const std::string& a, const std::string& b) {
    double first = 0;
    double second = 0;
    if (numbers) {
      parse_number(a, first);
      parse_number(b, second);
    }
    return first != second ? first < second : a < b;
  });
  return sorted;
}

std::vector<ColumnLevels> find_levels(const Study& study, const std::vector<std::string>& columns,
                                      const std::atomic<bool>* stop) {
  if (study.clients.empty()) throw StudyError("the study has no client to ask");
  const std::vector<Asked> clients =
      study.federation.via == Federation::Via::files ? ask_files(study) : ask_nodes(study, stop);
  const std::vector<std::string> names = columns.empty() ? choose_columns(study, clients) : columns;
  std::vector<ColumnLevels> found;
  for (const std::string& name : names) found.push_back(levels_of(study, clients, name));
  return found;
}

std::string levels_sections(const std::vector<ColumnLevels>& found) {
  std::string text;
  for (const ColumnLevels& one : found) {
    if (one.declared) continue;
    text += fmt::format("\n[categorical.{}]\nlevels = {}\n", toml_key(one.column),
                        toml_list(one.levels));
  }
  return text;
}

std::string with_levels(const std::string& text, const std::string& file,
                        const std::vector<ColumnLevels>& found) {
  std::string result = text;
  if (!result.empty() && result.back() != '\n') result += '\n';
  result += levels_sections(found);
  parse_study(result, file);
  return result;
}

}  // namespace starfold

#include "starfold/data/binding/bind_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "starfold/base/error.h"
#include "starfold/base/suggest.h"
#include "starfold/data/arrays/memory_table.h"
#include "starfold/data/binding/agree.h"
#include "starfold/data/binding/shown_names.h"

namespace starfold {
namespace {

// The levels that clients' tables declare for a column themselves: all of them, in the order in which they are met. Null when none
// does.
std::shared_ptr<const Categorical> own_levels(const std::vector<DataSource>& sources,
                                              const std::string& name) {
  std::shared_ptr<Categorical> all;
  for (const DataSource& source : sources) {
    const auto* table = dynamic_cast<const InMemoryTable*>(source.table.get());
    for (std::size_t c = 0; table != nullptr && c < table->columns().size(); ++c) {
      const auto own = table->columns()[c].name == name ? table->own_levels(c) : nullptr;
      if (!own) continue;
      if (!all) all = std::make_shared<Categorical>();
      for (const std::string& level : own->levels) {
        if (std::find(all->levels.begin(), all->levels.end(), level) == all->levels.end())
          all->levels.push_back(level);
      }
    }
  }
  return all;
}

class Planner {
 public:
  Planner(const ir::Program& program, const std::vector<DataSource>& sources,
          const ColumnBindings& bindings, const Categoricals& categoricals,
          const FormulaRequest& formula)
      : program_(program),
        sources_(sources),
        bindings_(bindings),
        categoricals_(categoricals),
        formula_(formula) {}

  ColumnPlan plan() {
    check_binding_names();
    ColumnPlan plan;
    if (!formula_.text.empty())
      plan.formula = plan_formula(program_, sources_, formula_, all_levels(), other_inputs());
    for (const ir::Input& input : program_.inputs) {
      if (!input.type.federated()) continue;
      if (plan.formula && plan.formula->inputs.count(input.name) != 0) continue;
      std::vector<BoundColumn> columns = columns_of(input);
      if (columns.empty()) continue;
      check_width(input, columns);
      plan.columns.emplace(input.name, std::move(columns));
    }
    check_categoricals(plan);
    return plan;
  }

 private:
  void check_binding_names() const {
    const std::vector<std::string> inputs = federated_inputs(program_);
    for (const auto& [name, choice] : bindings_) {
      if (std::find(inputs.begin(), inputs.end(), name) != inputs.end()) continue;
      const std::string suggestion = nearest(name, inputs);
      throw RunError(
          fmt::format("the program has no federated input {} to bind{}", name,
                      suggestion.empty() ? "" : fmt::format("; did you mean {}?", suggestion)));
    }
  }

  // A level that is declared for a column that no input uses is most likely a slip.
  void check_categoricals(const ColumnPlan& plan) const {
    std::vector<std::string> used;
    for (const auto& [input, columns] : plan.columns) {
      for (const BoundColumn& column : columns) used.push_back(column.name);
    }
    if (plan.formula) {
      for (const std::string& name : plan.formula->columns()) used.push_back(name);
    }
    for (const auto& [name, categorical] : categoricals_) {
      if (std::find(used.begin(), used.end(), name) != used.end()) continue;
      // Formulas are tried one after the other; their levels stay.
      const std::string& column = name;
      const auto has = [&](const DataSource& source) { return source.has_column(column); };
      if (plan.formula && std::any_of(sources_.begin(), sources_.end(), has)) continue;
      const std::string suggestion = nearest(name, used);
      throw RunError(
          fmt::format("column {} is declared categorical, but no input uses it{}", name,
                      suggestion.empty() ? "" : fmt::format("; did you mean {}?", suggestion)));
    }
  }

  // Those that are declared, and those that tables bring.
  Categoricals all_levels() const {
    Categoricals all = categoricals_;
    for (const DataSource& source : sources_) {
      for (const std::string& name : source.order) {
        if (all.count(name) != 0) continue;
        if (auto own = own_levels(sources_, name)) all.emplace(name, std::move(own));
      }
    }
    return all;
  }

  OtherInputs other_inputs() const {
    OtherInputs others;
    for (const auto& [name, choice] : bindings_) {
      others.inputs.insert(name);
      others.columns.insert(choice.columns.begin(), choice.columns.end());
      if (choice.rest)
        throw RunError(
            fmt::format("input {} takes every column that is left, and the formula some of "
                        "them: name its columns",
                        name));
    }
    // Those that take the column of their name.
    for (const std::string& name : federated_inputs(program_)) {
      if (name != "x" && name != "y") others.columns.insert(name);
    }
    return others;
  }

  std::vector<BoundColumn> columns_of(const ir::Input& input) const {
    const auto choice = bindings_.find(input.name);
    if (choice != bindings_.end() && choice->second.rest) return bound(rest_columns(input));
    if (choice != bindings_.end()) return bound(choice->second.columns);
    const bool tables = std::any_of(sources_.begin(), sources_.end(),
                                    [](const auto& s) { return s.table != nullptr; });
    if (!tables) return {};
    if (input.type.rank() == 1) return bound({input.name});
    throw RunError(
        fmt::format("input {} is {} and needs to know its columns: bind it with --bind {}=a,b,c or "
                    "--bind '{}=*', or write a --formula",
                    input.name, input.type.to_string(), input.name, input.name));
  }

  std::vector<BoundColumn> bound(const std::vector<std::string>& names) const {
    std::vector<BoundColumn> columns;
    for (const std::string& name : names) {
      const auto declared = categoricals_.find(name);
      columns.push_back(
          {name, declared == categoricals_.end() ? own_levels(sources_, name) : declared->second});
    }
    return columns;
  }

  // The columns that no input takes by name, in the order of the first client.
  std::vector<std::string> rest_columns(const ir::Input& input) const {
    std::set<std::string> taken;
    for (const auto& [name, choice] : bindings_)
      taken.insert(choice.columns.begin(), choice.columns.end());
    for (const std::string& name : federated_inputs(program_)) {
      if (bindings_.count(name) == 0) taken.insert(name);
    }
    check_same_columns(sources_, taken);
    std::vector<std::string> rest;
    const DataSource& first = sources_.front();
    for (const std::string& name : first.order) {
      if (taken.count(name) != 0 || !first.has_column(name)) continue;
      if (name.empty()) {
        throw RunError(fmt::format(
            "client {} has a column without a name; name the columns of input {} instead of *",
            first.client, input.name));
      }
      rest.push_back(name);
    }
    if (rest.empty())
      throw RunError(
          fmt::format("client {}: no column is left for input {}", first.client, input.name));
    return rest;
  }

  static void check_width(const ir::Input& input, const std::vector<BoundColumn>& columns) {
    if (input.type.rank() > 2) {
      throw RunError(
          fmt::format("input {} is {} and cannot be bound to columns; give it an array of its name",
                      input.name, input.type.to_string()));
    }
    const std::size_t width = column_names(columns).size();
    if (input.type.rank() == 1 && width != 1) {
      throw RunError(fmt::format("input {} is {} and takes one column, not {}", input.name,
                                 input.type.to_string(), width));
    }
  }

  const ir::Program& program_;
  const std::vector<DataSource>& sources_;
  const ColumnBindings& bindings_;
  const Categoricals& categoricals_;
  const FormulaRequest& formula_;
};

// Columns that some input needs must be there, and numbers unless they are declared categorical.
void check_columns(const ir::Program& program, const std::vector<DataSource>& sources,
                   const ColumnPlan& plan) {
  std::vector<BoundColumn> needed;
  for (const ir::Input& input : program.inputs) {
    const auto found = plan.columns.find(input.name);
    if (found == plan.columns.end()) continue;
    for (const BoundColumn& column : found->second) {
      const bool known = std::any_of(needed.begin(), needed.end(),
                                     [&](const auto& other) { return other.name == column.name; });
      if (!known) needed.push_back(column);
      const auto has = [&](const DataSource& source) { return source.has_column(column.name); };
      if (std::any_of(sources.begin(), sources.end(), has)) continue;
      const DataSource& first = sources.front();
      const bool safe = !first.table || first.table->names_are_safe();
      std::string suggestion = safe ? nearest(column.name, first.order) : "";
      if (!looks_like_name(suggestion)) suggestion.clear();
      throw RunError(fmt::format(
          "client {} has no column {} for input {}{}", first.client, shown(column.name), input.name,
          suggestion.empty() ? fmt::format("; it has {}", first.shown_columns())
                             : fmt::format("; did you mean {}?", suggestion)));
    }
  }
  if (plan.formula) {
    for (const std::string& name : plan.formula->columns()) {
      const auto factor = plan.formula->factors.find(name);
      needed.push_back({name, factor == plan.formula->factors.end() ? nullptr : factor->second});
    }
  }
  check_agreement(sources, needed);
  for (const BoundColumn& column : needed) check_kind(sources, column);
}

}  // namespace

std::vector<std::string> column_names(const std::vector<BoundColumn>& columns) {
  std::vector<std::string> names;
  for (const BoundColumn& column : columns) {
    if (!column.categorical || column.categorical->coding == Categorical::Coding::codes) {
      names.push_back(column.name);
      continue;
    }
    for (std::size_t i = 0; i < column.categorical->levels.size(); ++i) {
      if (i != column.categorical->reference)
        names.push_back(column.name + "=" + column.categorical->levels[i]);
    }
  }
  return names;
}

std::map<std::string, std::vector<std::string>> input_names(const ColumnPlan& plan) {
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& [input, columns] : plan.columns) names[input] = column_names(columns);
  if (!plan.formula) return names;
  for (const auto& [input, columns] : plan.formula->inputs) {
    for (const std::size_t column : columns)
      names[input].push_back(plan.formula->design.columns()[column].name);
  }
  return names;
}

std::map<std::string, std::string> reference_levels(const ColumnPlan& plan) {
  std::map<std::string, std::string> references;
  if (plan.formula) references = plan.formula->design.references();
  for (const auto& [input, columns] : plan.columns) {
    for (const BoundColumn& column : columns) {
      if (!column.categorical || column.categorical->coding == Categorical::Coding::codes) continue;
      const Categorical& declared = *column.categorical;
      references[column.name] =
          declared.reference < declared.levels.size() ? declared.levels[declared.reference] : "";
    }
  }
  return references;
}

ColumnPlan plan_columns(const ir::Program& program, const std::vector<DataSource>& sources,
                        const ColumnBindings& bindings, const Categoricals& categoricals,
                        const FormulaRequest& formula) {
  ColumnPlan plan = Planner(program, sources, bindings, categoricals, formula).plan();
  check_columns(program, sources, plan);
  return plan;
}

}  // namespace starfold

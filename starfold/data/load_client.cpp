// A client's records, read and bound.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "starfold/base/error.h"
#include "starfold/data/arrays/memory_table.h"
#include "starfold/data/binding/bind_columns.h"
#include "starfold/data/binding/levels.h"
#include "starfold/data/loaded_table.h"
#include "starfold/tensor/axis_view.h"

namespace starfold {
namespace {

// Columns side by side, as the input's type has them: records along its star.
Tensor stack(const ir::Input& input, const std::vector<const std::vector<double>*>& columns) {
  const auto records = static_cast<std::int64_t>(columns.front()->size());
  if (input.type.rank() == 1) return Tensor({records}, *columns.front());
  const auto width = static_cast<std::int64_t>(columns.size());
  const bool star_first = *input.type.record_axis() == 0;
  Tensor matrix(star_first ? Shape{records, width} : Shape{width, records});
  for (std::int64_t c = 0; c < width; ++c) {
    const double* from = columns[static_cast<std::size_t>(c)]->data();
    double* to = matrix.data.data() + (star_first ? c : c * records);
    const std::int64_t step = star_first ? width : 1;
    for (std::int64_t r = 0; r < records; ++r) to[r * step] = from[r];
  }
  return matrix;
}

std::size_t place_of(const Table& table, const std::string& column) {
  const auto at = std::find_if(table.columns().begin(), table.columns().end(),
                               [&](const ColumnInfo& info) { return info.name == column; });
  return static_cast<std::size_t>(at - table.columns().begin());
}

// The client's number among the sites of a formula, from 1. It goes by its own name, and that of its table.
double site_of(const FormulaPlan& formula, const DataSource& source) {
  const std::vector<Site>& sites = formula.request.sites;
  for (std::size_t i = 0; i < sites.size() && formula.site; ++i) {
    const std::string& own = source.node.empty() ? source.client : source.node;
    if (sites[i].node == own && (source.node.empty() || sites[i].source == source.client))
      return static_cast<double>(i + 1);
  }
  if (formula.site) throw RunError("it is none of the sites that the formula knows");
  return 0;
}

// A formula takes the numbers of levels; which of them become columns is its own business.
std::shared_ptr<const Categorical> as_codes(const FormulaPlan& formula, const std::string& column) {
  const auto factor = formula.factors.find(column);
  if (factor == formula.factors.end()) return nullptr;
  auto codes = std::make_shared<Categorical>(*factor->second);
  codes->coding = Categorical::Coding::codes;
  return codes;
}

// Adds what a formula needs of a table. `total` is how many columns the uses become.
void add_formula(const DataSource& source, const std::shared_ptr<const FormulaPlan>& formula,
                 std::size_t total, TableUse& result) {
  result.design.design = {formula, &formula->design};
  result.design.site = site_of(*formula, source);
  for (const std::string& name : formula->design.sources()) {
    if (formula->site && !source.has_column(name)) {
      result.design.uses.push_back(DesignUse::client);
      continue;
    }
    result.design.uses.push_back(result.uses.size());
    result.uses.push_back({place_of(*source.table, name), as_codes(*formula, name)});
    ++total;
  }
  for (const auto& [input, columns] : formula->inputs) {
    for (const std::size_t column : columns) result.inputs[input].push_back(total + column);
  }
}

// What a plan needs of a table.
TableUse use_of(const DataSource& source, const ColumnPlan& plan) {
  const Table& table = *source.table;
  TableUse result;
  std::map<std::string, std::size_t> first_of;  // by column: the first that it becomes
  std::size_t total = 0;
  for (const auto& [input, columns] : plan.columns) {
    for (const BoundColumn& column : columns) {
      const std::size_t width = column.categorical ? column.categorical->width() : 1;
      const auto [found, fresh] = first_of.emplace(column.name, total);
      if (fresh) {
        result.uses.push_back({place_of(table, column.name), column.categorical});
        total += width;
      }
      for (std::size_t i = 0; i < width; ++i) result.inputs[input].push_back(found->second + i);
    }
  }
  if (plan.formula) add_formula(source, plan.formula, total, result);
  return result;
}

// Missing values by column, and where the formula has none.
std::map<std::string, std::int64_t> missing_by_column(const Flaws& flaws, const Table& table,
                                                      const TableUse& use) {
  std::map<std::string, std::int64_t> counts;
  for (std::size_t u = 0; u < flaws.missing.size(); ++u) {
    if (flaws.missing[u] > 0) counts[table.columns()[use.uses[u].column].name] = flaws.missing[u];
  }
  for (std::size_t v = 0; v < flaws.design.undefined.size(); ++v) {
    if (flaws.design.undefined[v] > 0)
      counts[use.design.design->variables()[v]] = flaws.design.undefined[v];
  }
  return counts;
}

Tensor stack_arrays(const ir::Input& input, const DataSource& source,
                    const std::vector<BoundColumn>& columns) {
  std::vector<const std::vector<double>*> parts;
  for (const BoundColumn& column : columns) {
    if (column.categorical) {
      throw RunError(
          fmt::format("column {} is declared categorical, but comes from an array", column.name));
    }
    const auto found = source.arrays.find(column.name);
    if (found == source.arrays.end() || found->second.rank() != 1) {
      throw RunError(fmt::format("{} is no column for input {}", column.name, input.name));
    }
    if (!parts.empty() && found->second.data.size() != parts.front()->size()) {
      throw RunError(fmt::format("columns {} and {} of input {} have {} and {} records",
                                 columns.front().name, column.name, input.name,
                                 parts.front()->size(), found->second.data.size()));
    }
    parts.push_back(&found->second.data);
  }
  return stack(input, parts);
}

const std::vector<double>& column_array(const DataSource& source, const std::string& name,
                                        std::size_t records) {
  const Tensor& array = source.arrays.at(name);
  if (array.data.size() != records)
    throw RunError(
        fmt::format("columns of the formula have {} and {} records", records, array.data.size()));
  return array.data;
}

// What a formula makes of arrays with one axis.
std::vector<std::vector<double>> design_of_arrays(const DataSource& source,
                                                  const FormulaPlan& formula, Missing missing) {
  const std::vector<std::string> columns = formula.columns();
  const std::size_t records = columns.empty() ? 0 : source.arrays.at(columns.front()).data.size();
  std::vector<std::vector<double>> values;  // of sources that are not the arrays themselves
  values.reserve(formula.design.sources().size());
  std::vector<const double*> sources;
  for (const std::string& name : formula.design.sources()) {
    if (formula.site && !source.has_column(name)) {
      values.emplace_back(records, site_of(formula, source));
      sources.push_back(values.back().data());
      continue;
    }
    const std::vector<double>& array = column_array(source, name, records);
    sources.push_back(array.data());
    const auto factor = formula.factors.find(name);
    if (factor == formula.factors.end()) continue;
    const LevelNumbers levels(*factor->second, true);
    values.emplace_back(array);
    for (double& value : values.back()) {
      if (value != value) continue;
      value = levels.by_number() ? levels.of(value) : 0;
      if (value == 0)
        throw RunError(fmt::format("column {} has values that are no declared level", name));
    }
    sources.back() = values.back().data();
  }
  std::vector<std::vector<double>> result(formula.design.columns().size(),
                                          std::vector<double>(records));
  std::vector<double*> to;
  for (std::vector<double>& column : result) to.push_back(column.data());
  Flaws flaws(0, formula.design.variables().size());
  formula.design.compute(sources, records, nullptr, to, flaws.design, nullptr);
  for (std::size_t v = 0; v < flaws.design.infinite.size() && missing != Missing::nan; ++v) {
    if (flaws.design.infinite[v] > 0)
      throw RunError(fmt::format("{} of the formula is infinite for {} record(s)",
                                 formula.design.variables()[v], flaws.design.infinite[v]));
  }
  return result;
}

Client load_arrays(const ir::Program& program, const DataSource& source, const ColumnPlan& plan,
                   Missing missing) {
  Client client;
  client.name = source.client;
  std::vector<std::vector<double>> design;
  if (plan.formula) design = design_of_arrays(source, *plan.formula, missing);
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated()) continue;
    const auto columns = plan.columns.find(input.name);
    const auto array = source.arrays.find(input.name);
    if (plan.formula && plan.formula->inputs.count(input.name) != 0) {
      std::vector<const std::vector<double>*> parts;
      for (const std::size_t column : plan.formula->inputs.at(input.name))
        parts.push_back(&design[column]);
      client.arrays.emplace(input.name, stack(input, parts));
    } else if (columns != plan.columns.end()) {
      client.arrays.emplace(input.name, stack_arrays(input, source, columns->second));
    } else if (array != source.arrays.end()) {
      client.arrays.emplace(input.name, array->second);
    } else {
      throw RunError(fmt::format("it has no array for input {} ({}); it has {}", input.name,
                                 input.type.to_string(), source.shown_columns()));
    }
  }
  return client;
}

// In arrays nan is a number like others; only who asks to drop missing values loses records that have one.
// How many records that were.
std::int64_t drop_nan(const ir::Program& program, Client& client) {
  std::map<std::string, std::vector<char>> dropped;  // by record set
  for (const auto& [set, count] : record_counts(program, client))
    dropped[set].resize(static_cast<std::size_t>(count), 0);
  for (const ir::Input& input : program.inputs) {
    const auto array = client.arrays.find(input.name);
    if (array == client.arrays.end() || array->second.rank() != input.type.rank()) continue;
    const AxisView view(array->second.shape, *input.type.record_axis());
    std::vector<char>& marks = dropped.at(input.type.record_set());
    for (std::size_t i = 0; i < array->second.data.size(); ++i) {
      if (std::isnan(array->second.data[i])) marks[view.slice_of(i)] = 1;
    }
  }
  for (const ir::Input& input : program.inputs) {
    const auto array = client.arrays.find(input.name);
    if (array == client.arrays.end() || array->second.rank() != input.type.rank()) continue;
    array->second =
        keep_slices(array->second, *input.type.record_axis(), dropped.at(input.type.record_set()));
  }
  std::int64_t total = 0;
  for (const auto& [set, marks] : dropped) total += std::count(marks.begin(), marks.end(), 1);
  return total;
}

// ---- arrays that stay where they are

// The views that an input is made of: one with all its axes, or one with one axis for each of its columns.
std::vector<const ArrayView*> views_of(const ir::Input& input, const GivenArrays& given,
                                       const ColumnPlan& plan) {
  const auto columns = plan.columns.find(input.name);
  std::vector<const ArrayView*> views;
  if (columns == plan.columns.end()) {
    const auto view = given.arrays().find(input.name);
    if (view == given.arrays().end())
      throw RunError(
          fmt::format("it has no array for input {} ({})", input.name, input.type.to_string()));
    return {&view->second};
  }
  for (const BoundColumn& column : columns->second) {
    if (column.categorical)
      throw RunError(
          fmt::format("column {} is declared categorical, but comes from an array", column.name));
    const auto view = given.arrays().find(column.name);
    if (view == given.arrays().end() || view->second.shape.size() != 1)
      throw RunError(fmt::format("{} is no column for input {}", column.name, input.name));
    views.push_back(&view->second);
    if (views.back()->shape[0] != views.front()->shape[0])
      throw RunError(fmt::format("columns {} and {} of input {} have {} and {} records",
                                 columns->second.front().name, column.name, input.name,
                                 views.front()->shape[0], views.back()->shape[0]));
  }
  return views;
}

// Whether arrays can be read as one table: one record set, vectors and matrices of equal length.
bool is_tabular(const ir::Program& program,
                const std::map<std::string, std::vector<const ArrayView*>>& views) {
  const ir::Input* first = nullptr;
  std::int64_t records = 0;
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated()) continue;
    const std::vector<const ArrayView*>& own = views.at(input.name);
    const Shape& shape = own.front()->shape;
    const bool columns = shape.size() == 1;
    if (input.type.rank() > 2 || (!columns && shape.size() != input.type.rank()) ||
        (columns && own.size() == 1 && input.type.rank() != 1))
      return false;
    const std::int64_t count = shape[columns ? 0 : *input.type.record_axis()];
    if (first == nullptr) {
      first = &input;
      records = count;
    }
    if (count != records || input.type.record_set() != first->type.record_set()) return false;
    if (!columns && shape[1 - *input.type.record_axis()] < 1) return false;
  }
  return first != nullptr;
}

TableLoad tabular(const ir::Program& program,
                  const std::map<std::string, std::vector<const ArrayView*>>& views) {
  std::vector<MemoryColumn> columns;
  TableLoad load;
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated()) continue;
    for (const ArrayView* view : views.at(input.name)) {
      const std::size_t axis = view->shape.size() == 1 ? 0 : *input.type.record_axis();
      const auto width =
          static_cast<std::size_t>(view->shape.size() == 1 ? 1 : view->shape[1 - axis]);
      for (std::size_t place = 0; place < width; ++place) {
        load.use.inputs[input.name].push_back(columns.size());
        load.use.uses.push_back({columns.size(), nullptr});
        columns.push_back(
            {{fmt::format("{}[{}]", input.name, columns.size()), ColumnKind::number, "number"},
             {column_of(*view, axis, place)}});
      }
    }
  }
  load.table = memory_table(std::move(columns));
  return load;
}

LoadedClient load_views(const ir::Program& program, const DataSource& source,
                        const GivenArrays& given, const ColumnPlan& plan,
                        const LoadOptions& options, std::int64_t& room) {
  std::map<std::string, std::vector<const ArrayView*>> views;
  for (const ir::Input& input : program.inputs) {
    if (input.type.federated()) views.emplace(input.name, views_of(input, given, plan));
  }
  LoadedClient loaded;
  loaded.client.name = source.client;
  if (is_tabular(program, views)) {
    TableLoad load = tabular(program, views);
    load.client = source.client;
    // In arrays nan is a number like others, unless dropping is asked for.
    load.missing = options.missing == Missing::drop ? Missing::drop : Missing::nan;
    load.threads = options.threads;
    LoadedRecords records = load_table(load, room);
    loaded.client.table = std::move(records.table);
    loaded.dropped = records.dropped;
    return loaded;
  }
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated()) continue;
    const std::vector<const ArrayView*>& own = views.at(input.name);
    if (plan.columns.count(input.name) == 0) {
      loaded.client.arrays.emplace(input.name, copy_of(*own.front()));
      continue;
    }
    std::vector<Tensor> parts;
    std::vector<const std::vector<double>*> columns;
    parts.reserve(own.size());
    for (const ArrayView* view : own) columns.push_back(&parts.emplace_back(copy_of(*view)).data);
    loaded.client.arrays.emplace(input.name, stack(input, columns));
  }
  if (options.missing == Missing::drop) loaded.dropped = drop_nan(program, loaded.client);
  return loaded;
}

}  // namespace

LoadedClient load_client(const ir::Program& program, const DataSource& source,
                         const ColumnPlan& plan, const LoadOptions& options, std::int64_t& room) {
  try {
    LoadedClient loaded;
    if (const auto* given = dynamic_cast<const GivenArrays*>(source.table.get()))
      return load_views(program, source, *given, plan, options, room);
    if (!source.table) {
      loaded.client = load_arrays(program, source, plan, options.missing);
      if (options.missing == Missing::drop) loaded.dropped = drop_nan(program, loaded.client);
      return loaded;
    }
    loaded.client.name = source.client;
    if (plan.empty()) return loaded;
    const TableUse use = use_of(source, plan);
    LoadedRecords records =
        load_table({source.client, source.table, use, options.missing, options.threads}, room);
    loaded.client.table = std::move(records.table);
    loaded.dropped = records.dropped;
    loaded.missing = missing_by_column(records.flaws, *source.table, use);
    return loaded;
  } catch (const RunError& error) {
    throw RunError(fmt::format("client {}: {}", source.client, error.what()));
  }
}

}  // namespace starfold

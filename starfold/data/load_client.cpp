// A client's records, read and bound.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "starfold/base/error.h"
#include "starfold/data/bind_columns.h"
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

// What a plan needs of a table.
TableUse use_of(const Table& table, const ColumnPlan& plan) {
  TableUse result;
  std::map<std::string, std::size_t> first_of;  // by column: the first that it becomes
  std::size_t total = 0;
  for (const auto& [input, columns] : plan) {
    for (const BoundColumn& column : columns) {
      const std::size_t width = column.categorical ? column.categorical->width() : 1;
      const auto [found, fresh] = first_of.emplace(column.name, total);
      if (fresh) {
        const auto at =
            std::find_if(table.columns().begin(), table.columns().end(),
                         [&](const ColumnInfo& info) { return info.name == column.name; });
        result.uses.push_back(
            {static_cast<std::size_t>(at - table.columns().begin()), column.categorical});
        total += width;
      }
      for (std::size_t i = 0; i < width; ++i) result.inputs[input].push_back(found->second + i);
    }
  }
  return result;
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

Client load_arrays(const ir::Program& program, const DataSource& source, const ColumnPlan& plan) {
  Client client;
  client.name = source.client;
  for (const ir::Input& input : program.inputs) {
    if (!input.type.federated()) continue;
    const auto columns = plan.find(input.name);
    const auto array = source.arrays.find(input.name);
    if (columns != plan.end()) {
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

}  // namespace

LoadedClient load_client(const ir::Program& program, const DataSource& source,
                         const ColumnPlan& plan, const LoadOptions& options, std::int64_t& room) {
  try {
    LoadedClient loaded;
    if (!source.table) {
      loaded.client = load_arrays(program, source, plan);
      if (options.missing == Missing::drop) loaded.dropped = drop_nan(program, loaded.client);
      return loaded;
    }
    loaded.client.name = source.client;
    if (plan.empty()) return loaded;
    LoadedRecords records = load_table({source.client, source.table, use_of(*source.table, plan),
                                        options.missing, options.threads},
                                       room);
    loaded.client.table = std::move(records.table);
    loaded.dropped = records.dropped;
    return loaded;
  } catch (const RunError& error) {
    throw RunError(fmt::format("client {}: {}", source.client, error.what()));
  }
}

}  // namespace starfold

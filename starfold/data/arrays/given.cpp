#include "starfold/data/arrays/given.h"

#include <algorithm>

namespace starfold {

DataSource given_source(const std::string& client, std::shared_ptr<const Table> table) {
  DataSource source;
  source.client = client;
  source.table = std::move(table);
  for (const ColumnInfo& column : source.table->columns()) source.order.push_back(column.name);
  return source;
}

bool brings_inputs(const ir::Program& program, const DataSource& source,
                   const ColumnBindings& bindings) {
  const auto* given = dynamic_cast<const GivenArrays*>(source.table.get());
  const auto has_input = [&](const ir::Input& input) {
    if (!input.type.federated()) return true;
    if (given == nullptr) {
      const auto array = source.arrays.find(input.name);
      return array != source.arrays.end() && array->second.rank() == input.type.rank();
    }
    const auto view = given->arrays().find(input.name);
    return view != given->arrays().end() && view->second.shape.size() == input.type.rank();
  };
  if (source.table && given == nullptr) return false;
  // Without bindings arrays go by their names; those of files do so anyway.
  if (bindings.empty()) return given != nullptr;
  if (!std::all_of(program.inputs.begin(), program.inputs.end(), has_input)) return false;
  // A matrix for which nothing is bound can only be the array of its name.
  if (std::any_of(program.inputs.begin(), program.inputs.end(), [&](const ir::Input& input) {
        return input.type.federated() && input.type.rank() > 1 && bindings.count(input.name) == 0;
      }))
    return true;
  const auto has_columns = [&](const auto& binding) {
    const ColumnChoice& choice = binding.second;
    return !choice.rest && std::all_of(choice.columns.begin(), choice.columns.end(),
                                       [&](const std::string& c) { return source.has_column(c); });
  };
  return !std::all_of(bindings.begin(), bindings.end(), has_columns);
}

}  // namespace starfold

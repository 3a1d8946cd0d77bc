// Data that the program we are part of hands over, as a client's source.
#pragma once

#include "starfold/data/arrays/memory_table.h"
#include "starfold/data/binding/bind_columns.h"

namespace starfold {

// A source that is this table, or these arrays (GivenArrays).
DataSource given_source(const std::string& client, std::shared_ptr<const Table> table);

// Whether a client brings arrays for all inputs, named like them, and not the columns that others are bound by: it is taken as it
// comes, and columns are no matter for it.
bool brings_inputs(const ir::Program& program, const DataSource& source,
                   const ColumnBindings& bindings);

}  // namespace starfold

// Clients must have the same columns, of the same kinds. Private to starfold/data.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "starfold/data/binding/bind_columns.h"

namespace starfold {

// RunError with a table of who has what, unless all clients have the same columns apart from `taken`.
void check_same_columns(const std::vector<DataSource>& sources, const std::set<std::string>& taken);
// The same for these columns and their kinds.
void check_agreement(const std::vector<DataSource>& sources,
                     const std::vector<BoundColumn>& needed);
// RunError when a column that all have cannot become numbers.
void check_kind(const std::vector<DataSource>& sources, const BoundColumn& column);

}  // namespace starfold

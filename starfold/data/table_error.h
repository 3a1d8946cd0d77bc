// From DuckDB's words to ours. DuckDB quotes lines and values of files in its errors; ours never hold
// more than line numbers and names of columns. Private to starfold/data.
#pragma once

#include <string>
#include <vector>

#include "starfold/base/error.h"
#include "starfold/data/columns.h"

namespace starfold {

// What reading a file failed for. `where` is what the user calls it; `columns` are its columns, whose
// names in the query are c0, c1, ... for CSV files.
RunError file_error(const std::string& message, const std::string& where,
                    const std::vector<ColumnInfo>& columns);

// What a query failed for. The user wrote it, so its own words may be shown, values of records not.
RunError query_error(const std::string& message);

}  // namespace starfold

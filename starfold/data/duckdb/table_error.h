// From DuckDB's words to ours. DuckDB quotes lines and values of files in its errors; ours are
// fixed sentences. Private to starfold/data.
#pragma once

#include <string>

#include "starfold/base/error.h"

namespace starfold {

// What reading a file failed for. `where` is what the user calls it.
RunError file_error(const std::string& message, const std::string& where);

// What a query failed for. The user wrote it, so its own words may be shown, values of records not.
RunError query_error(const std::string& message);

}  // namespace starfold

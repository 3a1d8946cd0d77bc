// What a query may be, and what it sees. Private to starfold/data.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/data/duckdb/database.h"

namespace starfold {

// The files that a query names. RunError unless it is one SELECT that reads only tables and such files. Nothing
// of it is run, or even looked up, for that.
std::vector<std::string> check_query(const Database& database, const std::string& sql);

// Functions in FROM that are other words for the name of a file: read_parquet('visits.parquet').
std::span<const std::string_view> file_functions();

}  // namespace starfold

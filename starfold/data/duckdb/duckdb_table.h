// Tables whose types DuckDB knows: Parquet, database files, results of queries. Private to starfold/data.
#pragma once

#include <memory>
#include <optional>

#include "starfold/data/duckdb/database.h"
#include "starfold/data/file.h"
#include "starfold/data/table.h"

namespace starfold {

// What stands after FROM, and the files behind it, which must not change.
struct DuckdbSource {
  Database database;
  std::string from;
  std::vector<std::shared_ptr<const OpenFile>> files;
  std::string where;  // what the user calls it; empty for a query
};

// RunError when its columns cannot be told.
std::shared_ptr<const Table> duckdb_table(DuckdbSource source);
// A Parquet file, which can be read in parts.
std::shared_ptr<const Table> parquet_table(const Database& database, const DataFile& file);

// How a Parquet file is read: all of it and nothing else.
std::string parquet_sql(const OpenFile& file, bool numbered = false);
// RunError when two columns of a Parquet file have one name, also in letters of another size: DuckDB renames the
// second. `all` selects all columns.
void check_parquet_names(const Database& database, const OpenFile& file, const Statement& all);

}  // namespace starfold

// What differs between kinds of tables. Private to starfold/data.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starfold/data/columns.h"
#include "starfold/data/database.h"

namespace starfold {

class TableFormat {
 public:
  virtual ~TableFormat() = default;
  // What stands after FROM to read these columns.
  virtual std::string from(const std::vector<ColumnUse>& uses) const = 0;
  // What a column is called there.
  virtual std::string name(std::size_t column) const = 0;

  std::vector<ColumnInfo> columns;
  bool names_are_safe = true;
  // Where any part can be read: the number of records, and what stands after FROM to have the number of
  // each as the column file_row_number.
  std::optional<std::int64_t> records;
  std::string numbered_from;
};

// Opens a CSV file: `delimiter` separates its fields.
std::unique_ptr<TableFormat> open_csv(const Database& database, const std::string& path,
                                      char delimiter);
// Opens JSON: one object per line, or one array of objects.
std::unique_ptr<TableFormat> open_json(const Database& database, const std::string& path);
std::unique_ptr<TableFormat> open_parquet(const Database& database, const std::string& path);
// Anything that DuckDB knows the types of: what stands after FROM.
std::unique_ptr<TableFormat> open_typed(const Database& database, const std::string& from);

// RunError when two columns of a result have one name.
void check_names(const Statement& statement);

// Kind and words for a type of DuckDB's.
ColumnInfo describe_type(duckdb_type type);

}  // namespace starfold

// A client's table. CSV and JSON are read here, Parquet and database files through DuckDB, which also runs
// queries. A table is read as it is written, whole, from exactly the file that was named, or there is an error;
// no error that comes from here holds a record's value.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starfold/data/columns.h"
#include "starfold/data/text/dialect.h"

namespace starfold {

struct TableLocation {
  std::string path;    // a file; "hospital.duckdb#visits" names one of several tables in it
  std::string query;   // or one SELECT; a file given with it is called `data` there
  std::string folder;  // where relative paths in the query are looked for; empty: where we run
  std::map<std::string, std::string> columns;  // names that programs use, for names in the table
  Dialect dialect = {};                        // of files of text
};

// What reading may take, in bytes.
struct TableLimits {
  std::int64_t reader =
      0;  // what DuckDB, or a single record of a text, may take; 0: no limit of ours
  std::int64_t records = std::numeric_limits<std::int64_t>::max();  // kept ones
};

// Records on their way: a few thousand at a time, in the order of the table.
class TableScan {
 public:
  virtual ~TableScan() = default;
  // Moves to the next records; false at the end.
  virtual bool next() = 0;
  virtual std::size_t records() const = 0;
  // A column's numbers; for a categorical one the number of its level, 0 when it has no such level.
  virtual const double* column(std::size_t index) const = 0;
  // One bit per record, set where there is a value; null when there is one everywhere.
  virtual const std::uint64_t* valid(std::size_t index) const = 0;
};

using LevelCounts = std::map<std::string, std::int64_t>;

// Records first, first + 1, ..., last - 1.
struct RecordRange {
  std::int64_t first = 0;
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
};

class Table {
 public:
  virtual ~Table() = default;
  virtual const std::vector<ColumnInfo>& columns() const = 0;
  // False when the names may themselves be a record (a CSV file without a header): then no message
  // shows them.
  virtual bool names_are_safe() const { return true; }
  // Starts reading columns. Of a table that knows its number of records any part can be read, and several
  // at once; others are read from the beginning, one scan at a time.
  virtual std::unique_ptr<TableScan> scan(const std::vector<ColumnUse>& uses,
                                          RecordRange range = {}) const = 0;
  virtual std::optional<std::int64_t> known_records() const { return std::nullopt; }
  // What a column holds, as levels are written, and how often; RunError when there are more than `most` of them.
  virtual LevelCounts levels(std::size_t column, std::size_t most) const = 0;
};

// The version of the DuckDB that reads tables; empty when none was opened.
std::string loaded_duckdb_version();

// The file of such a path: "hospital.duckdb" of "hospital.duckdb#visits".
std::string table_file(const std::string& path);

// Whether files of this name are tables.
bool is_table_path(const std::string& path);

// Opens tables; the Parquet files among them share one DuckDB, started with the first.
class Tables {
 public:
  explicit Tables(TableLimits limits);
  ~Tables();
  // Reads what a table's columns are. RunError when that cannot be done.
  std::shared_ptr<const Table> open(const TableLocation& location);
  // How many bytes are left for records that are kept. Arrays take theirs when they are opened.
  std::int64_t& room() { return limits_.records; }

 private:
  struct Shared;
  const Shared& shared();

  TableLimits limits_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace starfold

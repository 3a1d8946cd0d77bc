#include "starfold/data/table_format.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"

namespace starfold {
namespace {

struct TypeWords {
  ColumnKind kind;
  const char* words;
};

const std::map<duckdb_type, TypeWords>& types() {
  static const std::map<duckdb_type, TypeWords> table = {
      {DUCKDB_TYPE_BOOLEAN, {ColumnKind::number, "true/false"}},
      {DUCKDB_TYPE_TINYINT, {ColumnKind::number, "integer"}},
      {DUCKDB_TYPE_SMALLINT, {ColumnKind::number, "integer"}},
      {DUCKDB_TYPE_INTEGER, {ColumnKind::number, "integer"}},
      {DUCKDB_TYPE_BIGINT, {ColumnKind::number, "integer"}},
      {DUCKDB_TYPE_HUGEINT, {ColumnKind::number, "integer"}},
      {DUCKDB_TYPE_UTINYINT, {ColumnKind::number, "integer"}},
      {DUCKDB_TYPE_USMALLINT, {ColumnKind::number, "integer"}},
      {DUCKDB_TYPE_UINTEGER, {ColumnKind::number, "integer"}},
      {DUCKDB_TYPE_UBIGINT, {ColumnKind::number, "integer"}},
      {DUCKDB_TYPE_UHUGEINT, {ColumnKind::number, "integer"}},
      {DUCKDB_TYPE_FLOAT, {ColumnKind::number, "number"}},
      {DUCKDB_TYPE_DOUBLE, {ColumnKind::number, "number"}},
      {DUCKDB_TYPE_DECIMAL, {ColumnKind::number, "number"}},
      {DUCKDB_TYPE_DATE, {ColumnKind::date, "date"}},
      {DUCKDB_TYPE_TIMESTAMP, {ColumnKind::date, "date and time"}},
      {DUCKDB_TYPE_TIMESTAMP_S, {ColumnKind::date, "date and time"}},
      {DUCKDB_TYPE_TIMESTAMP_MS, {ColumnKind::date, "date and time"}},
      {DUCKDB_TYPE_TIMESTAMP_NS, {ColumnKind::date, "date and time"}},
      {DUCKDB_TYPE_TIMESTAMP_TZ, {ColumnKind::date, "date and time"}},
      {DUCKDB_TYPE_VARCHAR, {ColumnKind::text, "text"}},
      {DUCKDB_TYPE_ENUM, {ColumnKind::text, "text"}},
      {DUCKDB_TYPE_UUID, {ColumnKind::text, "text"}},
      {DUCKDB_TYPE_SQLNULL, {ColumnKind::unknown, "empty"}},
      {DUCKDB_TYPE_TIME, {ColumnKind::other, "time of day"}},
      {DUCKDB_TYPE_INTERVAL, {ColumnKind::other, "interval"}},
      {DUCKDB_TYPE_BLOB, {ColumnKind::other, "bytes"}},
      {DUCKDB_TYPE_LIST, {ColumnKind::other, "list"}},
      {DUCKDB_TYPE_ARRAY, {ColumnKind::other, "list"}},
      {DUCKDB_TYPE_STRUCT, {ColumnKind::other, "nested record"}},
      {DUCKDB_TYPE_MAP, {ColumnKind::other, "nested record"}},
  };
  return table;
}

std::vector<ColumnInfo> columns_of(const Statement& statement) {
  std::vector<ColumnInfo> columns;
  for (std::size_t i = 0; i < statement.columns(); ++i) {
    columns.push_back(describe_type(statement.column_type(i)));
    columns.back().name = statement.column_name(i);
  }
  return columns;
}

// Columns go by the names they have in the file, whatever they are called later.
class NamedFormat : public TableFormat {
 public:
  std::string name(std::size_t column) const override { return sql_name(names_[column]); }

 protected:
  void set_columns(const Statement& statement) {
    columns = columns_of(statement);
    for (const ColumnInfo& column : columns) names_.push_back(column.name);
  }
  std::vector<std::string> names_;
};

class TypedFormat : public NamedFormat {
 public:
  TypedFormat(const Database& database, std::string from) : from_(std::move(from)) {
    set_columns(database.prepare(fmt::format("SELECT * FROM {}", from_)));
  }
  std::string from(const std::vector<ColumnUse>& /*uses*/) const override { return from_; }

 private:
  std::string from_;
};

class JsonFormat : public NamedFormat {
 public:
  JsonFormat(const Database& database, std::string path) : path_(std::move(path)) {
    const Statement all =
        database.prepare(fmt::format("SELECT * FROM read_json({})", sql_text(path_)));
    set_columns(all);
    for (std::size_t i = 0; i < columns.size(); ++i) types_.push_back(all.column_type(i));
    // DuckDB's way of saying that there is no object in the file.
    if (columns.size() == 1 && columns[0].name == "json")
      throw RunError(path_ + " holds no records as JSON objects");
  }

  // The types were guessed from the first lines; numbers are all read alike, so that 1 may become 1.5 later.
  std::string from(const std::vector<ColumnUse>& uses) const override {
    std::string list;
    for (const ColumnUse& use : uses) {
      list += fmt::format("{}{}: '{}'", list.empty() ? "" : ", ", sql_text(names_[use.column]),
                          type(use));
    }
    return fmt::format("read_json({}, columns = {{{}}})", sql_text(path_), list);
  }

 private:
  const char* type(const ColumnUse& use) const {
    const ColumnKind kind = columns[use.column].kind;
    if (use.categorical || kind == ColumnKind::text) return "VARCHAR";
    if (kind == ColumnKind::other) return "JSON";
    if (kind == ColumnKind::date) {
      return types_[use.column] == DUCKDB_TYPE_DATE ? "DATE" : "TIMESTAMP";
    }
    return types_[use.column] == DUCKDB_TYPE_BOOLEAN ? "BOOLEAN" : "DOUBLE";
  }

  std::string path_;
  std::vector<duckdb_type> types_;
};

// A file by its name, also when that looks like a pattern for several.
std::string sql_file(const std::string& path) {
  std::string exact;
  for (const char c : path)
    exact += c == '*' || c == '?' || c == '[' ? fmt::format("[{}]", c) : std::string(1, c);
  return sql_text(exact);
}

}  // namespace

void check_names(const Statement& statement) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < statement.columns(); ++i) {
    const std::string name = statement.column_name(i);
    if (!seen.insert(name).second)
      throw RunError(fmt::format("two columns of the query are named {}", printable(name)));
  }
}

ColumnInfo describe_type(duckdb_type type) {
  const auto found = types().find(type);
  if (found == types().end()) return {{}, ColumnKind::other, "unknown type"};
  return {{}, found->second.kind, found->second.words};
}

std::unique_ptr<TableFormat> open_typed(const Database& database, const std::string& from) {
  return std::make_unique<TypedFormat>(database, from);
}

std::unique_ptr<TableFormat> open_parquet(const Database& database, const std::string& path) {
  auto format =
      std::make_unique<TypedFormat>(database, fmt::format("read_parquet({})", sql_file(path)));
  for (const ColumnInfo& column : format->columns) {
    if (column.name == "file_row_number") return format;
  }
  const Statement count =
      database.prepare(fmt::format("SELECT count(*) FROM read_parquet({})", sql_file(path)));
  const std::unique_ptr<Rows> rows = count.stream();
  if (rows->next()) format->records = rows->column<std::int64_t>(0)[0];
  format->numbered_from = fmt::format("read_parquet({}, file_row_number = true)", sql_file(path));
  return format;
}

std::unique_ptr<TableFormat> open_json(const Database& database, const std::string& path) {
  return std::make_unique<JsonFormat>(database, path);
}

}  // namespace starfold

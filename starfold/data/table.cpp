#include "starfold/data/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/file.h"
#include "starfold/data/table_error.h"
#include "starfold/data/table_format.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

enum class FileKind { none, csv, tsv, parquet, json, duckdb, sqlite, database };

// What a file is by its name; `database` may be DuckDB's or SQLite's.
FileKind kind_of(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  static constexpr std::pair<std::string_view, FileKind> endings[] = {
      {".csv", FileKind::csv},         {".csv.gz", FileKind::csv},    {".tsv", FileKind::tsv},
      {".parquet", FileKind::parquet}, {".json", FileKind::json},     {".jsonl", FileKind::json},
      {".ndjson", FileKind::json},     {".duckdb", FileKind::duckdb}, {".sqlite", FileKind::sqlite},
      {".sqlite3", FileKind::sqlite},  {".db", FileKind::database},
  };
  for (const auto& [ending, kind] : endings) {
    if (name.size() > ending.size() && name.ends_with(ending)) return kind;
  }
  return FileKind::none;
}

// "hospital.duckdb#visits" is the table visits of hospital.duckdb.
std::pair<std::string, std::string> split_table(const std::string& path) {
  const std::size_t at = path.rfind('#');
  std::error_code ignored;
  if (at == std::string::npos || at == 0 || fs::exists(path, ignored)) return {path, ""};
  return {path.substr(0, at), path.substr(at + 1)};
}

bool is_sqlite(const std::string& path) {
  constexpr std::string_view magic("SQLite format 3\0", 16);
  std::string begin(magic.size(), '\0');
  std::ifstream(path, std::ios::binary)
      .read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == magic;
}

// DuckDB's extension for SQLite lies beside the library, or was installed by the user.
void load_sqlite(const Database& database) {
  const std::string beside =
      (fs::path(duckdb_folder()) / "sqlite_scanner.duckdb_extension").string();
  std::error_code ignored;
  try {
    database.execute(fs::exists(beside, ignored) ? "LOAD " + sql_text(beside) : "LOAD sqlite");
  } catch (const DuckdbError&) {
    throw RunError(
        "SQLite files need DuckDB's extension for them, which does not come with the DuckDB found "
        "here; "
        "export the table to CSV or Parquet");
  }
}

std::vector<std::string> table_names(const Database& database, const std::string& catalog) {
  const std::string sql = fmt::format(
      "SELECT name FROM (SELECT table_name AS name, database_name, internal FROM duckdb_tables() "
      "UNION ALL "
      "SELECT view_name, database_name, internal FROM duckdb_views()) WHERE NOT internal AND "
      "database_name {} ORDER BY name",
      catalog.empty() ? "= current_database()" : "= " + sql_text(catalog));
  std::vector<std::string> names;
  const Statement statement = database.prepare(sql);
  const std::unique_ptr<Rows> rows = statement.stream();
  while (rows->next()) {
    for (std::size_t i = 0; i < rows->size(); ++i)
      names.emplace_back(text_of(rows->column<duckdb_string_t>(0)[i]));
  }
  return names;
}

// The table that is meant in a database with these.
std::string choose_table(const std::string& path, const std::string& wanted,
                         const std::vector<std::string>& names) {
  if (names.empty()) throw RunError(fmt::format("{} holds no table", path));
  if (wanted.empty() && names.size() == 1) return names.front();
  if (std::find(names.begin(), names.end(), wanted) != names.end()) return wanted;
  std::vector<std::string> shown;
  for (const std::string& name : names) shown.push_back(printable(name));
  if (wanted.empty()) {
    throw RunError(fmt::format("{} holds several tables; name one, for example {}#{} (it has {})",
                               path, path, shown.front(), fmt::join(shown, ", ")));
  }
  throw RunError(fmt::format("{} holds no table {}; it has {}", path, printable(wanted),
                             fmt::join(shown, ", ")));
}

bool is_number(const std::string& text) {
  double ignored = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ignored);
  return error == std::errc() && end == text.data() + text.size();
}

// The number of a column's level, 0 when it has none. Levels that are numbers are compared as numbers, so
// that 1 and 1.0 are one level.
std::string level_number(const std::string& name, const ColumnInfo& info,
                         const Categorical& categorical) {
  const std::vector<std::string>& levels = categorical.levels;
  const bool numbers =
      info.kind == ColumnKind::number && std::all_of(levels.begin(), levels.end(), is_number);
  std::vector<std::string> list;
  for (const std::string& level : levels) list.push_back(sql_text(level));
  const char* type = numbers ? "DOUBLE" : "VARCHAR";
  return fmt::format(
      "CASE WHEN {0} IS NULL THEN NULL ELSE "
      "CAST(coalesce(list_position(CAST([{1}] AS {2}[]), TRY_CAST({0} AS {2})), 0) AS DOUBLE) END",
      name, fmt::join(list, ", "), type);
}

std::string expression(const TableFormat& format, const ColumnUse& use) {
  const std::string name = format.name(use.column);
  const ColumnInfo& info = format.columns[use.column];
  if (use.categorical) return level_number(name, info, *use.categorical);
  if (info.kind != ColumnKind::date) return fmt::format("CAST({} AS DOUBLE)", name);
  if (info.type == "date") return fmt::format("CAST({} - DATE '1970-01-01' AS DOUBLE)", name);
  return fmt::format("epoch_us(CAST({} AS TIMESTAMP)) / 86400000000.0", name);
}

// A table of any kind, once it is open.
class OpenTable : public Table {
 public:
  OpenTable(Database database, std::unique_ptr<TableFormat> format, std::string where)
      : database_(std::move(database)), format_(std::move(format)), where_(std::move(where)) {}

  const std::vector<ColumnInfo>& columns() const override { return format_->columns; }
  bool names_are_safe() const override { return format_->names_are_safe; }
  std::unique_ptr<TableScan> scan(const std::vector<ColumnUse>& uses,
                                  RecordRange range) const override;
  std::optional<std::int64_t> known_records() const override { return format_->records; }

  RunError error(const DuckdbError& failure) const {
    return where_.empty() ? query_error(failure.what())
                          : file_error(failure.what(), where_, format_->columns);
  }

 private:
  Database database_;
  std::unique_ptr<TableFormat> format_;
  std::string where_;  // the path; empty for a query
};

class OpenScan : public TableScan {
 public:
  OpenScan(const OpenTable& table, std::unique_ptr<Rows> rows)
      : table_(table), rows_(std::move(rows)) {}

  bool next() override {
    try {
      return rows_->next();
    } catch (const DuckdbError& failure) {
      throw table_.error(failure);
    }
  }
  std::size_t records() const override { return rows_->size(); }
  const double* column(std::size_t index) const override { return rows_->column<double>(index); }
  const std::uint64_t* valid(std::size_t index) const override { return rows_->valid(index); }

 private:
  const OpenTable& table_;
  std::unique_ptr<Rows> rows_;
};

std::unique_ptr<TableScan> OpenTable::scan(const std::vector<ColumnUse>& uses,
                                           RecordRange range) const {
  std::vector<std::string> list;
  for (const ColumnUse& use : uses) list.push_back(expression(*format_, use));
  std::string sql = fmt::format("SELECT {} FROM ", fmt::join(list, ", "));
  // DuckDB takes a while to filter, even by what holds for every record.
  std::vector<std::string> bounds;
  if (range.first > 0) bounds.push_back(fmt::format("file_row_number >= {}", range.first));
  if (format_->records && range.last < *format_->records)
    bounds.push_back(fmt::format("file_row_number < {}", range.last));
  sql += bounds.empty()
             ? format_->from(uses)
             : fmt::format("{} WHERE {}", format_->numbered_from, fmt::join(bounds, " AND "));
  try {
    const Statement statement = (format_->records ? database_.connect() : database_).prepare(sql);
    return std::make_unique<OpenScan>(*this, statement.stream());
  } catch (const DuckdbError& failure) {
    throw error(failure);
  }
}

std::unique_ptr<TableFormat> open_file(const Database& database, const std::string& path,
                                       const std::string& table, FileKind kind) {
  switch (kind) {
    case FileKind::csv:
      return open_csv(database, path, ',');
    case FileKind::tsv:
      return open_csv(database, path, '\t');
    case FileKind::json:
      return open_json(database, path);
    case FileKind::parquet:
      return open_parquet(database, path);
    case FileKind::sqlite:
      load_sqlite(database);
      database.execute(fmt::format("ATTACH {} AS source (TYPE sqlite, READ_ONLY)", sql_text(path)));
      return open_typed(database, "source." + sql_name(choose_table(
                                                  path, table, table_names(database, "source"))));
    default:
      return open_typed(database, sql_name(choose_table(path, table, table_names(database, ""))));
  }
}

// A query sees the tables of a database file, or any other file as `data`.
std::unique_ptr<TableFormat> open_query(const Database& database, const TableLocation& location,
                                        const std::string& path, const std::string& table,
                                        FileKind kind) {
  if (kind == FileKind::sqlite) {
    load_sqlite(database);
    database.execute(fmt::format("ATTACH {} AS source (TYPE sqlite, READ_ONLY)", sql_text(path)));
    database.execute("USE source");
  } else if (!path.empty() && kind != FileKind::duckdb) {
    try {
      const std::unique_ptr<TableFormat> file = open_file(database, path, table, kind);
      std::vector<ColumnUse> all;
      std::string list;
      for (std::size_t i = 0; i < file->columns.size(); ++i) {
        all.push_back({i, nullptr});
        list += fmt::format("{}{} AS {}", i == 0 ? "" : ", ", file->name(i),
                            sql_name(file->columns[i].name));
      }
      database.execute(
          fmt::format("CREATE TEMP VIEW data AS SELECT {} FROM {}", list, file->from(all)));
    } catch (const DuckdbError& failure) {
      throw file_error(failure.what(), path, {});
    }
  }
  database.lock();
  const auto [count, statement] = database.prepare_first(location.query);
  if (count != 1 || !statement.is_select())
    throw RunError("the query must be one SELECT: it may read, not write");
  check_names(statement);
  // As a view, whatever the text ends with.
  database.execute("CREATE TEMP VIEW query AS " + location.query);
  return open_typed(database, "query");
}

// Gives columns the names that programs use.
void rename_columns(std::vector<ColumnInfo>& columns,
                    const std::map<std::string, std::string>& names) {
  std::vector<ColumnInfo> renamed = columns;
  for (const auto& [name, before] : names) {
    const std::string& old = before;  // clang captures no structured binding
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const ColumnInfo& c) { return c.name == old; });
    if (found == columns.end())
      throw RunError(fmt::format("it has no column {} that could be called {}", old, name));
    renamed[static_cast<std::size_t>(found - columns.begin())].name = name;
  }
  for (const auto& entry : names) {
    if (std::count_if(renamed.begin(), renamed.end(),
                      [&](const ColumnInfo& c) { return c.name == entry.first; }) > 1) {
      throw RunError(fmt::format("two columns would be called {}", entry.first));
    }
  }
  columns = std::move(renamed);
}

}  // namespace

bool is_table_path(const std::string& path) {
  return kind_of(split_table(path).first) != FileKind::none;
}

struct Tables::Shared {
  Database database;
};

Tables::Tables(TableLimits limits) : limits_(limits) {}
Tables::~Tables() = default;

const Tables::Shared& Tables::shared(int threads) {
  std::unique_ptr<Shared>& slot = shared_[threads];
  if (!slot) {
    DatabaseOptions options;
    options.threads = threads;
    options.memory = limits_.memory;
    slot = std::make_unique<Shared>(Shared{Database(options)});
    slot->database.lock();
  }
  return *slot;
}

std::shared_ptr<const Table> Tables::open(const TableLocation& location) {
  const auto [path, table] = split_table(location.path);
  if (!path.empty()) require_readable(path);
  FileKind kind = path.empty() ? FileKind::none : kind_of(path);
  if (kind == FileKind::database) kind = is_sqlite(path) ? FileKind::sqlite : FileKind::duckdb;
  const bool query = !location.query.empty();
  const bool own = query || kind == FileKind::duckdb || kind == FileKind::sqlite;
  try {
    DatabaseOptions options;
    options.threads = limits_.threads;
    options.memory = limits_.memory;
    options.folder = location.folder;
    if (kind == FileKind::duckdb) options.file = path;
    // Parts of a Parquet file are read by threads of our own.
    const int threads = kind == FileKind::parquet ? 1 : limits_.threads;
    const Database database = own ? Database(options) : shared(threads).database.connect();
    std::unique_ptr<TableFormat> format = query ? open_query(database, location, path, table, kind)
                                                : open_file(database, path, table, kind);
    rename_columns(format->columns, location.columns);
    return std::make_shared<OpenTable>(database, std::move(format), query ? "" : path);
  } catch (const DuckdbError& failure) {
    throw query ? query_error(failure.what()) : file_error(failure.what(), path, {});
  }
}

}  // namespace starfold

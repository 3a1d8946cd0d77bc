#include "starfold/data/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/binding/shown_names.h"
#include "starfold/data/duckdb/duckdb_table.h"
#include "starfold/data/duckdb/query.h"
#include "starfold/data/duckdb/table_error.h"
#include "starfold/data/text/sql_function.h"
#include "starfold/data/text/text_table.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

enum class FileKind { none, csv, packed_csv, tsv, parquet, json, excel, duckdb, sqlite, database };

// What a file is by its name; `database` may be DuckDB's or SQLite's.
FileKind kind_of(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  static constexpr std::pair<std::string_view, FileKind> endings[] = {
      {".csv", FileKind::csv},       {".csv.gz", FileKind::packed_csv},
      {".tsv", FileKind::tsv},       {".parquet", FileKind::parquet},
      {".json", FileKind::json},     {".jsonl", FileKind::json},
      {".ndjson", FileKind::json},   {".duckdb", FileKind::duckdb},
      {".sqlite", FileKind::sqlite}, {".sqlite3", FileKind::sqlite},
      {".db", FileKind::database},   {".xlsx", FileKind::excel},
  };
  for (const auto& [ending, kind] : endings) {
    if (name.size() > ending.size() && name.ends_with(ending)) return kind;
  }
  return FileKind::none;
}

bool is_text(FileKind kind) {
  return kind == FileKind::csv || kind == FileKind::packed_csv || kind == FileKind::tsv ||
         kind == FileKind::json;
}

bool is_database(FileKind kind) {
  return kind == FileKind::duckdb || kind == FileKind::sqlite || kind == FileKind::database;
}

// "hospital.duckdb#visits" is the table visits of hospital.duckdb.
std::pair<std::string, std::string> split_table(const std::string& path) {
  const std::size_t at = path.rfind('#');
  std::error_code ignored;
  if (at == std::string::npos || fs::exists(path, ignored)) return {path, ""};
  std::string file = path.substr(0, at);
  if (!is_database(kind_of(file))) return {path, ""};
  return {std::move(file), path.substr(at + 1)};
}

bool is_sqlite(const DataFile& file) {
  constexpr std::string_view magic("SQLite format 3\0", 16);
  std::string begin(magic.size(), '\0');
  return file.open().read_at(0, begin.data(), begin.size()) == begin.size() && begin == magic;
}

// DuckDB's extensions lie beside the library, or were installed by the user.
void load_extension(const Database& database, const char* file, const char* name,
                    const char* what) {
  const std::string beside =
      (fs::path(duckdb_folder()) / fmt::format("{}.duckdb_extension", file)).string();
  std::error_code ignored;
  try {
    database.execute("LOAD " + (fs::exists(beside, ignored) ? sql_text(beside) : name));
  } catch (const DuckdbError&) {
    throw RunError(fmt::format(
        "{} files need DuckDB's extension for them, which does not come with the DuckDB "
        "found here; export the table to CSV or Parquet",
        what));
  }
}
void load_sqlite(const Database& database) {
  load_extension(database, "sqlite_scanner", "sqlite", "SQLite");
}
void load_excel(const Database& database) { load_extension(database, "excel", "excel", "Excel"); }

// A sheet with a line of names above its records.
std::string excel_sql(const OpenFile& file, const Dialect& dialect) {
  return fmt::format("read_xlsx({}, header = true{})", sql_text(file.exact_path()),
                     dialect.sheet.empty() ? "" : ", sheet = " + sql_text(dialect.sheet));
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
  if (wanted.empty()) {
    throw RunError(fmt::format("{} holds several tables; name one, for example {}#{} (it has {})",
                               path, path, shown(names.front()), shown_list(names)));
  }
  throw RunError(
      fmt::format("{} holds no table {}; it has {}", path, shown(wanted), shown_list(names)));
}

TextSource open_text(const DataFile& file, FileKind kind, const Dialect& dialect,
                     const TableLimits& limits) {
  TextFile text = text_file(file, kind == FileKind::packed_csv ? Packing::gzip : Packing::none,
                            dialect.encoding);
  if (limits.reader > 0)
    text.longest_record = std::min(text.longest_record, static_cast<std::size_t>(limits.reader));
  return kind == FileKind::json ? open_json(text, dialect)
                                : open_csv(text, kind == FileKind::tsv ? '\t' : ',', dialect);
}

// A path without links, which DuckDB takes for what it is: a database has files beside it that belong to it.
std::string database_path(const DataFile& file) {
  std::error_code error;
  const fs::path path = fs::canonical(file.path(), error);
  return error ? file.path() : path.string();
}

// RunError when two columns of a result have one name: which of them is meant?
void check_names(const Statement& statement) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < statement.columns(); ++i) {
    const std::string name = statement.column_name(i);
    if (!seen.insert(name).second)
      throw RunError(fmt::format("two columns of the query are named {}", shown(name)));
  }
}

// A DuckDB of its own: one that sees a database file, or in which a query runs.
class OwnDatabase {
 public:
  OwnDatabase(const std::optional<DataFile>& file, FileKind kind, const Dialect& dialect,
              const TableLimits& limits)
      : file_(file), kind_(kind), dialect_(dialect), limits_(limits), database_(open()) {
    if (!file_ || (kind_ != FileKind::duckdb && kind_ != FileKind::sqlite)) return;
    held_.push_back(std::make_shared<const OpenFile>(file_->open()));
    if (kind_ != FileKind::sqlite) return;
    load_sqlite(database_);
    database_.execute(fmt::format("ATTACH {} AS source (TYPE sqlite, READ_ONLY)",
                                  sql_text(database_path(*file_))));
    database_.execute("USE source");
  }

  std::shared_ptr<const Table> table(const std::string& wanted) {
    database_.enclose({});
    const std::string path = printable(file_->path());
    const std::string catalog = kind_ == FileKind::sqlite ? "source" : "";
    const std::string name = choose_table(path, wanted, table_names(database_, catalog));
    return duckdb_table({database_, sql_name(name), held_, path});
  }

  // A sheet of an Excel file.
  std::shared_ptr<const Table> sheet() {
    load_excel(database_);
    held_.push_back(std::make_shared<const OpenFile>(file_->open()));
    database_.enclose({held_.back()->exact_path()});
    const std::string path = printable(file_->path());
    const auto unreadable = [&] {
      return RunError(dialect_.sheet.empty()
                          ? fmt::format("{} cannot be read as an Excel file", path)
                          : fmt::format("{} has no sheet {}, or cannot be read as an Excel file",
                                        path, shown(dialect_.sheet)));
    };
    try {
      return duckdb_table({database_, excel_sql(*held_.back(), dialect_), held_, path});
    } catch (const RunError&) {
      throw unreadable();
    } catch (const DuckdbError&) {
      throw unreadable();
    }
  }

  // A query sees the tables of a database file, or any other file as `data`.
  std::shared_ptr<const Table> query(const std::string& sql, const std::string& folder) {
    std::vector<std::string> names = check_query(database_, sql);
    std::map<std::string, std::pair<DataFile, FileKind>> files;
    if (file_ && held_.empty()) files.emplace("data", std::pair(*file_, kind_));
    for (const std::string& name : names) files.emplace(name, beside(name, folder));
    check_files(files);
    add_files(files);
    for (const std::string_view reader : file_functions()) {
      // In quotation marks: a point in a name would make two of it.
      database_.execute(
          fmt::format("CREATE TEMP MACRO {}(file) AS TABLE SELECT * FROM "
                      "query_table('\"' || replace(file, '\"', '\"\"') || '\"')",
                      reader));
    }
    const Statement statement = database_.prepare(sql);
    if (!statement.is_select()) throw Bug("a query that was checked is not a SELECT");
    check_names(statement);
    constexpr const char* view = "\"starfold query\"";
    database_.execute(fmt::format("CREATE TEMP VIEW {} AS {}", view, sql));
    return duckdb_table({database_, view, held_, ""});
  }

 private:
  Database open() const {
    DatabaseOptions options;
    options.memory = limits_.reader;
    if (file_ && kind_ == FileKind::duckdb) options.file = database_path(*file_);
    return Database(options);
  }

  // A file that a query names: it lies in the folder of the study, or below.
  static std::pair<DataFile, FileKind> beside(const std::string& name, const std::string& folder) {
    const fs::path base = fs::absolute(folder.empty() ? "." : folder).lexically_normal();
    const fs::path path = (base / name).lexically_normal();
    const fs::path relative = path.lexically_relative(base);
    if (relative.empty() || *relative.begin() == "..") {
      throw RunError(
          fmt::format("the query names {}, which is not in the folder of the study; give a file "
                      "elsewhere as data",
                      shown(name)));
    }
    const FileKind kind = kind_of(name);
    if (!is_text(kind) && kind != FileKind::parquet) {
      throw RunError(
          fmt::format("the query names {}; a database file is given as data", shown(name)));
    }
    try {
      DataFile file(path.string());
      file.settle();
      return {std::move(file), kind};
    } catch (const RunError& error) {
      throw RunError(fmt::format("a file of the query: {}", error.what()));
    }
  }

  // In SQL the size of letters does not matter; in names of files it does.
  static void check_files(const std::map<std::string, std::pair<DataFile, FileKind>>& files) {
    std::vector<std::string> names;
    for (const auto& [name, entry] : files) names.push_back(name);
    if (sql_ambiguous(names))
      throw RunError(
          "two files of the query have names that differ only in the size of letters, which SQL "
          "cannot tell apart");
  }

  // Makes each file a view of its name. No other file can be opened after this.
  void add_files(const std::map<std::string, std::pair<DataFile, FileKind>>& files) {
    std::vector<std::string> allowed;
    std::vector<std::shared_ptr<const OpenFile>> parquet;
    std::vector<std::pair<std::string, std::string>> views;
    for (const auto& [name, entry] : files) {
      const auto& [file, kind] = entry;
      std::string sql;
      if (kind == FileKind::excel) {
        load_excel(database_);
        held_.push_back(std::make_shared<const OpenFile>(file.open()));
        allowed.push_back(held_.back()->exact_path());
        sql = "SELECT * FROM " + excel_sql(*held_.back(), dialect_);
      } else if (is_text(kind)) {
        sql = text_view(open_text(file, kind, dialect_, limits_), views.size(),
                        printable(file.path()));
      } else {
        parquet.push_back(std::make_shared<const OpenFile>(file.open()));
        held_.push_back(parquet.back());
        allowed.push_back(parquet.back()->exact_path());
        sql = "SELECT * FROM " + parquet_sql(*parquet.back());
      }
      views.emplace_back(name, std::move(sql));
    }
    if (kind_ == FileKind::duckdb && file_) allowed.push_back(database_path(*file_));
    database_.enclose(allowed);
    for (const auto& file : parquet)
      check_parquet_names(database_, *file,
                          database_.prepare("SELECT * FROM " + parquet_sql(*file)));
    for (const auto& [name, sql] : views)
      database_.execute(fmt::format("CREATE TEMP VIEW {} AS {}", sql_name(name), sql));
  }

  std::string text_view(TextSource source, std::size_t number, const std::string& path) const {
    if (sql_ambiguous(source.names))
      throw RunError(path +
                     ": two of its columns have names that differ only in the size of letters, "
                     "which SQL cannot tell apart");
    const std::string function = fmt::format("starfold_file_{}", number);
    std::string list;
    for (std::size_t c = 0; c < source.names.size(); ++c) {
      if (!source.names[c].empty())
        list += fmt::format("{}c{} AS {}", list.empty() ? "" : ", ", c, sql_name(source.names[c]));
    }
    add_text_function(database_, function, std::move(source));
    return fmt::format("SELECT {} FROM {}()", list.empty() ? "*" : list, function);
  }

  const std::optional<DataFile>& file_;
  FileKind kind_;
  const Dialect& dialect_;
  TableLimits limits_;
  Database database_;
  std::vector<std::shared_ptr<const OpenFile>> held_;
};

// A table with columns under the names that programs use.
class RenamedTable : public Table {
 public:
  RenamedTable(std::shared_ptr<const Table> table, const std::map<std::string, std::string>& names)
      : table_(std::move(table)), columns_(table_->columns()) {
    std::vector<ColumnInfo> renamed = columns_;
    for (const auto& [name, before] : names) {
      const std::string& old = before;  // clang captures no structured binding
      const auto found = std::find_if(columns_.begin(), columns_.end(),
                                      [&](const ColumnInfo& c) { return c.name == old; });
      if (found == columns_.end()) {
        throw RunError(
            fmt::format("it has no column {} that could be called {}", shown(old), shown(name)));
      }
      renamed[static_cast<std::size_t>(found - columns_.begin())].name = name;
    }
    for (const auto& entry : names) {
      if (std::count_if(renamed.begin(), renamed.end(),
                        [&](const ColumnInfo& c) { return c.name == entry.first; }) > 1)
        throw RunError(fmt::format("two columns would be called {}", shown(entry.first)));
    }
    columns_ = std::move(renamed);
  }

  const std::vector<ColumnInfo>& columns() const override { return columns_; }
  bool names_are_safe() const override { return table_->names_are_safe(); }
  std::optional<std::int64_t> known_records() const override { return table_->known_records(); }
  LevelCounts levels(std::size_t column, std::size_t most) const override {
    return table_->levels(column, most);
  }
  std::unique_ptr<TableScan> scan(const std::vector<ColumnUse>& uses,
                                  RecordRange range) const override {
    return table_->scan(uses, range);
  }

 private:
  std::shared_ptr<const Table> table_;
  std::vector<ColumnInfo> columns_;
};

}  // namespace

std::string table_file(const std::string& path) { return split_table(path).first; }

bool is_table_path(const std::string& path) { return kind_of(table_file(path)) != FileKind::none; }

struct Tables::Shared {
  Database database;
};

Tables::Tables(TableLimits limits) : limits_(limits) {}
Tables::~Tables() = default;

// Nothing that a user wrote runs in it, only our own reading of files that were named: it need not be enclosed.
const Tables::Shared& Tables::shared() {
  if (!shared_) {
    DatabaseOptions options;
    options.memory = limits_.reader;
    shared_ = std::make_unique<Shared>(Shared{Database(options)});
    shared_->database.lock();
  }
  return *shared_;
}

std::shared_ptr<const Table> Tables::open(const TableLocation& location) {
  const auto [path, table] = split_table(location.path);
  std::optional<DataFile> file;
  if (!path.empty()) file.emplace(path).settle();
  FileKind kind = path.empty() ? FileKind::none : kind_of(path);
  if (kind == FileKind::database) kind = is_sqlite(*file) ? FileKind::sqlite : FileKind::duckdb;
  std::shared_ptr<const Table> opened;
  try {
    if (!location.query.empty()) {
      opened =
          OwnDatabase(file, kind, location.dialect, limits_).query(location.query, location.folder);
    } else if (is_text(kind)) {
      opened = text_table(open_text(*file, kind, location.dialect, limits_));
    } else if (kind == FileKind::parquet) {
      opened = parquet_table(shared().database, *file);
    } else if (kind == FileKind::excel) {
      opened = OwnDatabase(file, kind, location.dialect, limits_).sheet();
    } else {
      opened = OwnDatabase(file, kind, location.dialect, limits_).table(table);
    }
  } catch (const DuckdbError& failure) {
    throw location.query.empty() ? file_error(failure.what(), printable(path))
                                 : query_error(failure.what());
  }
  if (location.columns.empty()) return opened;
  return std::make_shared<RenamedTable>(std::move(opened), location.columns);
}

}  // namespace starfold

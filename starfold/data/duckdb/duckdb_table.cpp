#include "starfold/data/duckdb/duckdb_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/binding/levels.h"
#include "starfold/data/binding/shown_names.h"
#include "starfold/data/duckdb/table_error.h"
#include "starfold/data/text/values.h"

namespace starfold {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

// How values of a type arrive here and become numbers.
enum class Arrival { number, integer, decimal, day, moment, text, none };

struct TypeWords {
  ColumnKind kind;
  const char* words;
  Arrival arrival;
};

TypeWords words_of(duckdb_type type) {
  static const std::map<duckdb_type, TypeWords> table = {
      {DUCKDB_TYPE_BOOLEAN, {ColumnKind::number, "true/false", Arrival::number}},
      {DUCKDB_TYPE_TINYINT, {ColumnKind::number, "integer", Arrival::number}},
      {DUCKDB_TYPE_SMALLINT, {ColumnKind::number, "integer", Arrival::number}},
      {DUCKDB_TYPE_INTEGER, {ColumnKind::number, "integer", Arrival::number}},
      {DUCKDB_TYPE_BIGINT, {ColumnKind::number, "integer", Arrival::integer}},
      {DUCKDB_TYPE_HUGEINT, {ColumnKind::number, "integer", Arrival::integer}},
      {DUCKDB_TYPE_UTINYINT, {ColumnKind::number, "integer", Arrival::number}},
      {DUCKDB_TYPE_USMALLINT, {ColumnKind::number, "integer", Arrival::number}},
      {DUCKDB_TYPE_UINTEGER, {ColumnKind::number, "integer", Arrival::number}},
      {DUCKDB_TYPE_UBIGINT, {ColumnKind::number, "integer", Arrival::integer}},
      {DUCKDB_TYPE_UHUGEINT, {ColumnKind::number, "integer", Arrival::integer}},
      {DUCKDB_TYPE_FLOAT, {ColumnKind::number, "number", Arrival::number}},
      {DUCKDB_TYPE_DOUBLE, {ColumnKind::number, "number", Arrival::number}},
      {DUCKDB_TYPE_DECIMAL, {ColumnKind::number, "number", Arrival::number}},
      {DUCKDB_TYPE_DATE, {ColumnKind::date, "date", Arrival::day}},
      {DUCKDB_TYPE_TIMESTAMP, {ColumnKind::date, "date and time", Arrival::moment}},
      {DUCKDB_TYPE_TIMESTAMP_S, {ColumnKind::date, "date and time", Arrival::moment}},
      {DUCKDB_TYPE_TIMESTAMP_MS, {ColumnKind::date, "date and time", Arrival::moment}},
      {DUCKDB_TYPE_TIMESTAMP_NS, {ColumnKind::date, "date and time", Arrival::moment}},
      {DUCKDB_TYPE_TIMESTAMP_TZ, {ColumnKind::date, "date and time", Arrival::moment}},
      {DUCKDB_TYPE_VARCHAR, {ColumnKind::text, "text", Arrival::text}},
      {DUCKDB_TYPE_ENUM, {ColumnKind::text, "text", Arrival::text}},
      {DUCKDB_TYPE_UUID, {ColumnKind::text, "text", Arrival::text}},
      {DUCKDB_TYPE_SQLNULL, {ColumnKind::unknown, "empty", Arrival::number}},
      {DUCKDB_TYPE_TIME, {ColumnKind::other, "time of day", Arrival::none}},
      {DUCKDB_TYPE_INTERVAL, {ColumnKind::other, "interval", Arrival::none}},
      {DUCKDB_TYPE_BLOB, {ColumnKind::other, "bytes", Arrival::none}},
      {DUCKDB_TYPE_LIST, {ColumnKind::other, "list", Arrival::none}},
      {DUCKDB_TYPE_ARRAY, {ColumnKind::other, "list", Arrival::none}},
      {DUCKDB_TYPE_STRUCT, {ColumnKind::other, "nested record", Arrival::none}},
      {DUCKDB_TYPE_MAP, {ColumnKind::other, "nested record", Arrival::none}},
  };
  const auto found = table.find(type);
  return found == table.end() ? TypeWords{ColumnKind::other, "unknown type", Arrival::none}
                              : found->second;
}

struct DuckdbColumn {
  std::string name;  // in the file, whatever it is called later
  Arrival arrival = Arrival::none;
  bool microseconds = false;  // since 1970 in UTC; no clock of this machine matters
  int after_point = 0;        // digits of a decimal
};

class DuckdbTable : public Table {
 public:
  DuckdbTable(DuckdbSource source, std::optional<DataFile> parquet)
      : source_(std::move(source)), parquet_(std::move(parquet)) {
    read_columns();
    if (parquet_) count_records();
  }

  const std::vector<ColumnInfo>& columns() const override { return columns_; }
  std::optional<std::int64_t> known_records() const override { return records_; }
  std::unique_ptr<TableScan> scan(const std::vector<ColumnUse>& uses,
                                  RecordRange range) const override;
  LevelCounts levels(std::size_t column, std::size_t most) const override;

  // How a column of a scan becomes numbers.
  Arrival arrival(const ColumnUse& use, const LevelNumbers* levels) const {
    if (levels != nullptr) return levels->by_number() ? Arrival::number : Arrival::text;
    return names_[use.column].arrival;
  }
  RunError error(const DuckdbError& failure) const {
    return source_.where.empty() ? query_error(failure.what())
                                 : file_error(failure.what(), source_.where);
  }
  int after_point(std::size_t column) const { return names_[column].after_point; }
  [[noreturn]] void fail_value(std::size_t column, const char* what) const {
    throw RunError(fmt::format("{}{} holds {}", source_.where.empty() ? "" : source_.where + ": ",
                               shown_column(*this, column), what));
  }
  void require_unchanged() const {
    for (const auto& file : source_.files) file->require_unchanged();
  }

 private:
  void read_columns() {
    std::optional<OpenFile> file;
    if (parquet_) file.emplace(parquet_->open());
    const Statement all = source_.database.prepare(
        fmt::format("SELECT * FROM {}", file ? parquet_sql(*file) : source_.from));
    if (file) check_parquet_names(source_.database, *file, all);
    for (std::size_t i = 0; i < all.columns(); ++i) {
      const duckdb_type type = all.column_type(i);
      const TypeWords words = words_of(type);
      names_.push_back({all.column_name(i), words.arrival,
                        type == DUCKDB_TYPE_TIMESTAMP || type == DUCKDB_TYPE_TIMESTAMP_TZ});
      set_decimal(names_.back(), all.decimal(i));
      columns_.push_back({names_.back().name, words.kind, words.words});
    }
  }

  // Up to 15 digits and as many powers of ten are exact, so that DuckDB's division is rounded once.
  static void set_decimal(DuckdbColumn& column, const std::optional<Statement::Digits>& digits) {
    if (!digits) return;
    constexpr int exact = 15;
    column.after_point = digits->after_point;
    if (digits->after_point == 0) {
      column.arrival = Arrival::integer;
    } else if (digits->all > exact) {
      column.arrival = Arrival::decimal;
    }
  }

  // Any part can be read where each record has its number.
  void count_records() {
    if (std::any_of(names_.begin(), names_.end(),
                    [](const DuckdbColumn& c) { return c.name == row_number; }))
      return;
    const OpenFile file = parquet_->open();
    const Statement count =
        source_.database.prepare(fmt::format("SELECT count(*) FROM {}", parquet_sql(file)));
    const std::unique_ptr<Rows> rows = count.stream();
    if (rows->next()) records_ = rows->column<std::int64_t>(0)[0];
    file.require_unchanged();
  }

  std::string expression(const ColumnUse& use, const LevelNumbers* levels) const {
    const std::string name = sql_name(names_[use.column].name);
    switch (arrival(use, levels)) {
      case Arrival::integer:
        return fmt::format("CAST({} AS BIGINT)", name);
      case Arrival::decimal:
        return fmt::format("CAST({} AS DECIMAL(38, {}))", name, names_[use.column].after_point);
      case Arrival::day:
        return name;
      case Arrival::moment:
        return names_[use.column].microseconds ? name : fmt::format("CAST({} AS TIMESTAMP)", name);
      case Arrival::text:
        return fmt::format("CAST({} AS VARCHAR)", name);
      default:
        return fmt::format("CAST({} AS DOUBLE)", name);
    }
  }

  static constexpr const char* row_number = "file_row_number";
  DuckdbSource source_;
  std::optional<DataFile> parquet_;
  std::vector<DuckdbColumn> names_;
  std::vector<ColumnInfo> columns_;
  std::optional<std::int64_t> records_;
};

class DuckdbScan : public TableScan {
 public:
  struct Column {
    std::size_t index = 0;  // in the table
    Arrival arrival = Arrival::number;
    std::unique_ptr<LevelNumbers> levels;
    std::vector<double> numbers;  // where they are not those that DuckDB holds
  };

  DuckdbScan(const DuckdbTable& table, std::optional<OpenFile> file, std::vector<Column> columns,
             std::unique_ptr<Rows> rows)
      : table_(table),
        file_(std::move(file)),
        columns_(std::move(columns)),
        rows_(std::move(rows)) {}

  bool next() override {
    bool more = false;
    try {
      more = rows_->next();
    } catch (const DuckdbError& failure) {
      throw table_.error(failure);
    }
    table_.require_unchanged();
    if (file_) file_->require_unchanged();
    for (std::size_t c = 0; more && c < columns_.size(); ++c) convert(c);
    return more;
  }
  std::size_t records() const override { return rows_->size(); }
  const double* column(std::size_t index) const override {
    return is_direct(columns_[index]) ? rows_->column<double>(index)
                                      : columns_[index].numbers.data();
  }
  const std::uint64_t* valid(std::size_t index) const override {
    return is_direct(columns_[index]) ? rows_->valid(index) : nullptr;
  }

 private:
  static bool is_direct(const Column& column) {
    return column.arrival == Arrival::number && !column.levels;
  }

  void convert(std::size_t index) {
    Column& column = columns_[index];
    if (is_direct(column)) return;
    if (column.arrival == Arrival::integer) {
      fill<std::int64_t>(index, [&](std::int64_t value) { return whole(column, value); });
    } else if (column.arrival == Arrival::decimal) {
      const int after_point = table_.after_point(column.index);
      fill<duckdb_hugeint>(index, [&](const duckdb_hugeint& value) {
        return decimal_number(value.upper, value.lower, after_point);
      });
    } else if (column.arrival == Arrival::day) {
      fill<std::int32_t>(index, [&](std::int32_t value) { return day(column, value); });
    } else if (column.arrival == Arrival::moment) {
      fill<std::int64_t>(index, [&](std::int64_t value) { return moment(column, value); });
    } else if (column.arrival == Arrival::text) {
      fill<duckdb_string_t>(
          index, [&](const duckdb_string_t& value) { return column.levels->of(text_of(value)); });
    } else {
      fill<double>(index, [&](double value) { return column.levels->of(value); });
    }
  }

  template <typename From, typename Convert>
  void fill(std::size_t index, Convert convert) {
    std::vector<double>& numbers = columns_[index].numbers;
    const std::size_t count = rows_->size();
    if (numbers.size() < count) numbers.resize(count);
    const From* values = rows_->column<From>(index);
    const std::uint64_t* valid = rows_->valid(index);
    for (std::size_t i = 0; i < count; ++i)
      numbers[i] = is_valid(valid, i) ? convert(values[i]) : nan_value;
  }

  double whole(const Column& column, std::int64_t value) const {
    constexpr std::int64_t exact = std::int64_t{1} << 53U;
    const auto number = static_cast<double>(value);
    if (value >= -exact && value <= exact) return number;
    constexpr double limit = 9223372036854775808.0;
    if (number < limit && static_cast<std::int64_t>(number) == value) return number;
    table_.fail_value(column.index,
                      "a whole number that no double is equal to; numbers are doubles, which hold "
                      "whole numbers up to 2^53");
  }
  // The ends of DuckDB's types stand for infinity.
  double day(const Column& column, std::int32_t value) const {
    constexpr std::int32_t end = std::numeric_limits<std::int32_t>::max();
    if (value >= end || value <= -end) table_.fail_value(column.index, "an infinite date");
    return value;
  }
  double moment(const Column& column, std::int64_t value) const {
    constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
    if (value >= end || value <= -end) table_.fail_value(column.index, "an infinite time");
    return static_cast<double>(value) / 86400000000.0;
  }

  const DuckdbTable& table_;
  std::optional<OpenFile> file_;
  std::vector<Column> columns_;
  std::unique_ptr<Rows> rows_;
};

std::unique_ptr<TableScan> DuckdbTable::scan(const std::vector<ColumnUse>& uses,
                                             RecordRange range) const {
  std::vector<DuckdbScan::Column> scanned;
  std::vector<std::string> list;
  for (const ColumnUse& use : uses) {
    DuckdbScan::Column column;
    column.index = use.column;
    const bool number = columns_[use.column].kind == ColumnKind::number;
    if (use.categorical) column.levels = std::make_unique<LevelNumbers>(*use.categorical, number);
    column.arrival = arrival(use, column.levels.get());
    list.push_back(expression(use, column.levels.get()));
    scanned.push_back(std::move(column));
  }
  std::optional<OpenFile> file;
  if (parquet_) file.emplace(parquet_->open());
  std::string sql = fmt::format("SELECT {} FROM ", fmt::join(list, ", "));
  // DuckDB takes a while to filter, even by what holds for every record.
  std::vector<std::string> bounds;
  if (range.first > 0) bounds.push_back(fmt::format("{} >= {}", row_number, range.first));
  if (records_ && range.last < *records_)
    bounds.push_back(fmt::format("{} < {}", row_number, range.last));
  sql += file ? parquet_sql(*file, !bounds.empty()) : source_.from;
  if (!bounds.empty()) sql += fmt::format(" WHERE {}", fmt::join(bounds, " AND "));
  try {
    const Statement statement =
        (parquet_ ? source_.database.connect() : source_.database).prepare(sql);
    return std::make_unique<DuckdbScan>(*this, std::move(file), std::move(scanned),
                                        statement.stream());
  } catch (const DuckdbError& failure) {
    throw error(failure);
  }
}

LevelCounts DuckdbTable::levels(std::size_t column, std::size_t most) const {
  const bool number = columns_[column].kind == ColumnKind::number;
  std::optional<OpenFile> file;
  if (parquet_) file.emplace(parquet_->open());
  const std::string name = sql_name(names_[column].name);
  const std::string sql = fmt::format(
      "SELECT CAST({0} AS {1}), count(*) FROM {2} WHERE {0} IS NOT NULL GROUP BY 1 LIMIT {3}", name,
      number ? "DOUBLE" : "VARCHAR", file ? parquet_sql(*file) : source_.from, most + 1);
  LevelCounts counts;
  try {
    const Statement statement =
        (parquet_ ? source_.database.connect() : source_.database).prepare(sql);
    const std::unique_ptr<Rows> rows = statement.stream();
    while (rows->next()) {
      for (std::size_t i = 0; i < rows->size(); ++i) {
        const std::string level = number
                                      ? level_text(rows->column<double>(0)[i])
                                      : std::string(text_of(rows->column<duckdb_string_t>(0)[i]));
        counts[level] += rows->column<std::int64_t>(1)[i];
      }
    }
  } catch (const DuckdbError& failure) {
    throw error(failure);
  }
  if (counts.size() > most) throw too_many_levels(most);
  return counts;
}

// DuckDB calls the second of two columns y and Y "Y_1".
bool may_be_renamed(const Statement& all) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < all.columns(); ++i) names.insert(sql_folded(all.column_name(i)));
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const std::size_t end = name.rfind('_');
    return end != std::string::npos && names.contains(name.substr(0, end));
  });
}

// The names as the file has them. Its schema lists every node before those inside it.
std::vector<std::string> parquet_names(const Database& database, const OpenFile& file) {
  const Statement schema = database.prepare(fmt::format(
      "SELECT name, coalesce(num_children, 0)::BIGINT FROM system.main.parquet_schema({})",
      sql_text(file.exact_path())));
  std::vector<std::string> names;
  std::int64_t inside = -1;  // nodes to come below a column; the first node is the root
  const std::unique_ptr<Rows> rows = schema.stream();
  while (rows->next()) {
    for (std::size_t i = 0; i < rows->size(); ++i) {
      const std::int64_t children = rows->column<std::int64_t>(1)[i];
      if (inside == 0) names.emplace_back(text_of(rows->column<duckdb_string_t>(0)[i]));
      inside = inside < 0 ? 0 : std::max<std::int64_t>(inside - 1, 0) + children;
    }
  }
  return names;
}

}  // namespace

void check_parquet_names(const Database& database, const OpenFile& file, const Statement& all) {
  if (may_be_renamed(all) && sql_ambiguous(parquet_names(database, file)))
    throw RunError(
        fmt::format("{}: two of its columns have the same name, or names that differ "
                    "only in the size of letters",
                    printable(file.path())));
}

std::string parquet_sql(const OpenFile& file, bool numbered) {
  // By its full name: for queries the short one means something else.
  return fmt::format(
      "system.main.read_parquet({}, hive_partitioning = false, file_row_number = {})",
      sql_text(file.exact_path()), numbered);
}

std::shared_ptr<const Table> duckdb_table(DuckdbSource source) {
  return std::make_shared<DuckdbTable>(std::move(source), std::nullopt);
}

std::shared_ptr<const Table> parquet_table(const Database& database, const DataFile& file) {
  return std::make_shared<DuckdbTable>(DuckdbSource{database, "", {}, printable(file.path())},
                                       file);
}

}  // namespace starfold

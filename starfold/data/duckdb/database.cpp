#include "starfold/data/duckdb/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <set>

namespace starfold {
namespace {

std::string quoted(const std::string& text, char quote) {
  std::string result(1, quote);
  for (const char c : text) {
    result += c;
    if (c == quote) result += c;
  }
  return result + quote;
}

constexpr const char* failed_before = "this DuckDB has failed before";

std::string or_unknown(const char* message) { return message == nullptr ? "unknown" : message; }

}  // namespace

std::string sql_name(const std::string& name) { return quoted(name, '"'); }
std::string sql_text(const std::string& text) { return quoted(text, '\''); }

std::string sql_folded(std::string name) {
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

bool sql_ambiguous(const std::vector<std::string>& names) {
  std::set<std::string> seen;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return !name.empty() && !seen.insert(sql_folded(name)).second;
  });
}

struct Database::Instance {
  duckdb_database database = nullptr;
  std::atomic<bool> failed = false;
  ~Instance() {
    if (database != nullptr) duckdb().close(&database);
  }
};

struct Database::Handle {
  std::shared_ptr<Instance> instance;
  duckdb_connection connection = nullptr;
  ~Handle() {
    if (connection != nullptr) duckdb().disconnect(&connection);
  }
};

struct StatementHandle {
  std::shared_ptr<void> connection;
  std::atomic<bool>* failed = nullptr;  // of the instance
  duckdb_prepared_statement statement = nullptr;
  ~StatementHandle() {
    if (statement != nullptr) duckdb().destroy_prepare(&statement);
  }
};

Rows::~Rows() {
  if (chunk_ != nullptr) duckdb().destroy_data_chunk(&chunk_);
  duckdb().destroy_result(&result_);
}

void Rows::fail(const char* message) {
  *statement_->failed = true;
  throw DuckdbError(or_unknown(message));
}

bool Rows::next() {
  if (chunk_ != nullptr) duckdb().destroy_data_chunk(&chunk_);
  if (ended_) return false;
  if (*statement_->failed) throw DuckdbError(failed_before);
  chunk_ = duckdb().fetch_chunk(result_);
  if (chunk_ == nullptr) {
    const char* message = duckdb().result_error(&result_);
    if (message != nullptr && *message != '\0') fail(message);
  }
  size_ = chunk_ == nullptr ? 0 : duckdb().data_chunk_get_size(chunk_);
  ended_ = size_ == 0;  // what comes after the end is an error to DuckDB
  return !ended_;
}

bool Statement::is_select() const {
  return duckdb().prepared_statement_type(handle_->statement) == DUCKDB_STATEMENT_TYPE_SELECT;
}

std::size_t Statement::columns() const {
  return duckdb().prepared_statement_column_count(handle_->statement);
}

std::string Statement::column_name(std::size_t index) const {
  const char* name = duckdb().prepared_statement_column_name(handle_->statement, index);
  std::string result = name == nullptr ? "" : name;
  duckdb().free(const_cast<char*>(name));
  return result;
}

duckdb_type Statement::column_type(std::size_t index) const {
  return duckdb().prepared_statement_column_type(handle_->statement, index);
}

std::optional<Statement::Digits> Statement::decimal(std::size_t index) const {
  if (column_type(index) != DUCKDB_TYPE_DECIMAL) return std::nullopt;
  duckdb_logical_type type =
      duckdb().prepared_statement_column_logical_type(handle_->statement, index);
  const Digits digits = {duckdb().decimal_width(type), duckdb().decimal_scale(type)};
  duckdb().destroy_logical_type(&type);
  return digits;
}

std::unique_ptr<Rows> Statement::stream() const {
  std::unique_ptr<Rows> rows(new Rows());
  rows->statement_ = handle_;
  if (*handle_->failed) throw DuckdbError(failed_before);
  if (duckdb().execute_prepared_streaming(handle_->statement, &rows->result_) == DuckDBError)
    rows->fail(duckdb().result_error(&rows->result_));
  return rows;
}

Database::Database(const DatabaseOptions& options) {
  duckdb_config config = nullptr;
  if (duckdb().create_config(&config) == DuckDBError) throw DuckdbError("no configuration");
  const auto set = [config](const char* name, const std::string& value) {
    duckdb().set_config(config, name, value.c_str());
  };
  set("threads", std::to_string(options.threads));
  if (options.memory > 0) set("memory_limit", fmt::format("{}KiB", options.memory / 1024));
  set("autoinstall_known_extensions", "false");
  set("autoload_known_extensions", "false");
  set("allow_community_extensions", "false");
  set("temp_directory", "");
  set("enable_external_file_cache", "false");  // the system caches files already
  set("enable_logging", "false");
  if (!options.file.empty()) set("access_mode", "READ_ONLY");
  char* message = nullptr;
  const char* file = options.file.empty() ? nullptr : options.file.c_str();
  duckdb_database instance = nullptr;
  const duckdb_state state = duckdb().open_ext(file, &instance, config, &message);
  duckdb().destroy_config(&config);
  if (state == DuckDBError) {
    const std::string text = or_unknown(message);
    duckdb().free(message);
    throw DuckdbError(text);
  }
  handle_ = std::make_shared<Handle>();
  handle_->instance = std::make_shared<Instance>();
  handle_->instance->database = instance;
  *this = connect();
  try {
    execute("SET GLOBAL TimeZone = 'UTC'");
  } catch (const DuckdbError&) {
    // A DuckDB without its extension for time zones knows no other.
    handle_->instance->failed = false;
  }
}

Database Database::connect() const {
  Database other;
  other.handle_ = std::make_shared<Handle>();
  other.handle_->instance = handle_->instance;
  if (handle_->instance->failed) throw DuckdbError(failed_before);
  if (duckdb().connect(handle_->instance->database, &other.handle_->connection) == DuckDBError) {
    throw DuckdbError("no connection");
  }
  return other;
}

duckdb_connection Database::connection() const { return handle_->connection; }

void Database::execute(const std::string& sql) const {
  if (handle_->instance->failed) throw DuckdbError(failed_before);
  duckdb_result result = {};
  const duckdb_state state = duckdb().query(handle_->connection, sql.c_str(), &result);
  const std::string message =
      state == DuckDBError ? or_unknown(duckdb().result_error(&result)) : "";
  duckdb().destroy_result(&result);
  if (state == DuckDBSuccess) return;
  handle_->instance->failed = true;
  throw DuckdbError(message);
}

void Database::lock() const { execute("SET lock_configuration = true"); }

void Database::enclose(const std::vector<std::string>& files) const {
  std::string list;
  for (const std::string& file : files)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", sql_text(file));
  execute(fmt::format("SET allowed_paths = [{}]", list));
  execute("SET enable_external_access = false");
  lock();
}

Statement Database::prepare(const std::string& sql) const {
  if (handle_->instance->failed) throw DuckdbError(failed_before);
  Statement statement;
  statement.handle_ = std::make_shared<StatementHandle>();
  statement.handle_->connection = handle_;
  statement.handle_->failed = &handle_->instance->failed;
  duckdb_extracted_statements extracted = nullptr;
  const std::size_t count = duckdb().extract_statements(connection(), sql.c_str(), &extracted);
  std::string message;
  if (count == 0) {
    message = or_unknown(duckdb().extract_statements_error(extracted));
  } else if (duckdb().prepare_extracted_statement(connection(), extracted, 0,
                                                  &statement.handle_->statement) == DuckDBError) {
    message = or_unknown(duckdb().prepare_error(statement.handle_->statement));
  }
  duckdb().destroy_extracted(&extracted);
  if (!message.empty()) throw DuckdbError(message);
  return statement;
}

}  // namespace starfold

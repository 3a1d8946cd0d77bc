#include "starfold/data/database.h"

#include <fmt/format.h>

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

std::string or_unknown(const char* message) { return message == nullptr ? "unknown" : message; }

}  // namespace

std::string sql_name(const std::string& name) { return quoted(name, '"'); }
std::string sql_text(const std::string& text) { return quoted(text, '\''); }

struct Database::Handle {
  std::shared_ptr<_duckdb_database> instance;
  duckdb_connection connection = nullptr;
  ~Handle() {
    if (connection != nullptr) duckdb().disconnect(&connection);
  }
};

struct Statement::Handle {
  std::shared_ptr<Database::Handle> database;
  duckdb_prepared_statement statement = nullptr;
  ~Handle() {
    if (statement != nullptr) duckdb().destroy_prepare(&statement);
  }
};

Rows::~Rows() {
  if (chunk_ != nullptr) duckdb().destroy_data_chunk(&chunk_);
  duckdb().destroy_result(&result_);
}

bool Rows::next() {
  if (chunk_ != nullptr) duckdb().destroy_data_chunk(&chunk_);
  chunk_ = duckdb().fetch_chunk(result_);
  if (chunk_ == nullptr) {
    const char* message = duckdb().result_error(&result_);
    if (message != nullptr && *message != '\0') throw DuckdbError(message);
    size_ = 0;
    return false;
  }
  size_ = duckdb().data_chunk_get_size(chunk_);
  return size_ > 0;
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

std::unique_ptr<Rows> Statement::stream() const {
  std::unique_ptr<Rows> rows(new Rows());
  rows->alive_ = handle_;
  if (duckdb().execute_prepared_streaming(handle_->statement, &rows->result_) == DuckDBError) {
    throw DuckdbError(or_unknown(duckdb().result_error(&rows->result_)));
  }
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
  if (!options.folder.empty()) set("file_search_path", options.folder);
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
  handle_->instance.reset(instance, [](duckdb_database last) { duckdb().close(&last); });
  *this = connect();
}

Database Database::connect() const {
  Database other;
  other.handle_ = std::make_shared<Handle>();
  other.handle_->instance = handle_->instance;
  if (duckdb().connect(handle_->instance.get(), &other.handle_->connection) == DuckDBError) {
    throw DuckdbError("no connection");
  }
  return other;
}

void Database::execute(const std::string& sql) const {
  duckdb_result result = {};
  const duckdb_state state = duckdb().query(handle_->connection, sql.c_str(), &result);
  const std::string message =
      state == DuckDBError ? or_unknown(duckdb().result_error(&result)) : "";
  duckdb().destroy_result(&result);
  if (state == DuckDBError) throw DuckdbError(message);
}

void Database::lock() const { execute("SET lock_configuration = true"); }

std::pair<std::size_t, Statement> Database::prepare_first(const std::string& sql) const {
  Statement statement;
  statement.handle_ = std::make_shared<Statement::Handle>();
  statement.handle_->database = handle_;
  duckdb_connection connection = handle_->connection;
  duckdb_extracted_statements extracted = nullptr;
  const std::size_t count = duckdb().extract_statements(connection, sql.c_str(), &extracted);
  std::string message;
  if (count == 0) {
    message = or_unknown(duckdb().extract_statements_error(extracted));
  } else if (duckdb().prepare_extracted_statement(connection, extracted, 0,
                                                  &statement.handle_->statement) == DuckDBError) {
    message = or_unknown(duckdb().prepare_error(statement.handle_->statement));
  }
  duckdb().destroy_extracted(&extracted);
  if (!message.empty()) throw DuckdbError(message);
  return {count, statement};
}

Statement Database::prepare(const std::string& sql) const { return prepare_first(sql).second; }

}  // namespace starfold

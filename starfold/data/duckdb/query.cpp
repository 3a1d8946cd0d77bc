#include "starfold/data/duckdb/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/binding/shown_names.h"
#include "starfold/data/duckdb/table_error.h"
#include "starfold/data/table.h"

namespace starfold {
namespace {

using nlohmann::json;

constexpr std::size_t longest_query = std::size_t{1} << 20U;

// Functions in FROM that make rows of their arguments, and touch nothing else.
constexpr std::string_view row_functions[] = {"range", "generate_series", "unnest"};
constexpr std::string_view readers[] = {"read_parquet",    "read_csv",       "read_csv_auto",
                                        "read_json",       "read_json_auto", "read_ndjson",
                                        "read_ndjson_auto"};
// Functions of values that tell about the machine or the database, wait, or leave something behind.
constexpr std::string_view refused_functions[] = {
    "getenv",       "getvariable", "write_log",      "parse_duckdb_log_message",
    "nextval",      "currval",     "txid_current",   "in_search_path",
    "session_user", "user",        "version",        "sleep_ms",
    "stats",        "vector_type", "get_block_size", "json_serialize_plan"};
constexpr std::string_view refused_beginnings[] = {"current_", "pg_", "inet_"};
constexpr std::string_view clocks[] = {"current_date", "current_time", "current_timestamp",
                                       "current_localtime", "current_localtimestamp"};

template <std::size_t size>
bool is_one_of(const std::string& name, const std::string_view (&list)[size]) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool is_refused_function(const std::string& name) {
  if (is_one_of(name, clocks)) return false;
  const bool begins =
      std::any_of(std::begin(refused_beginnings), std::end(refused_beginnings),
                  [&](std::string_view beginning) { return name.starts_with(beginning); });
  return begins || name.ends_with("_privilege") || is_one_of(name, refused_functions);
}

// The tables in which DuckDB describes itself, by their names alone: they are found without their schema.
std::set<std::string> internal_tables(const Database& database) {
  const Statement statement = database.prepare(
      "SELECT lower(view_name) FROM duckdb_views() WHERE internal UNION "
      "SELECT lower(table_name) FROM duckdb_tables() WHERE internal");
  std::set<std::string> names;
  const std::unique_ptr<Rows> rows = statement.stream();
  while (rows->next()) {
    for (std::size_t i = 0; i < rows->size(); ++i)
      names.emplace(text_of(rows->column<duckdb_string_t>(0)[i]));
  }
  return names;
}

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

[[noreturn]] void refuse_function(const std::string& name) {
  throw RunError(
      fmt::format("the query may not use {}: it sees only the tables of its data and "
                  "files beside the study, whose names are written in quotes",
                  shown(name)));
}

// Goes through the tree of a statement.
class Inspector {
 public:
  explicit Inspector(const Database& database) : database_(database) {}

  std::vector<std::string> inspect(const json& root) {
    // A list of our own: the tree may be deep.
    std::vector<const json*> open = {&root};
    while (!open.empty()) {
      const json& node = *open.back();
      open.pop_back();
      if (node.is_object()) look_at(node);
      if (node.is_structured()) {
        for (const json& child : node) open.push_back(&child);
      }
    }
    return std::move(files_);
  }

 private:
  void look_at(const json& node) {
    const std::string type = text_at(node, "type");
    if (type == "SHOW_REF") throw RunError(not_a_select);
    if (type == "BASE_TABLE") table(node);
    if (type == "TABLE_FUNCTION") table_function(node);
    const std::string function = sql_folded(text_at(node, "function_name"));
    if (type == "FUNCTION" && is_refused_function(function)) refuse_function(function);
  }

  void table(const json& node) {
    const std::string name = text_at(node, "table_name");
    const std::string schema = sql_folded(text_at(node, "schema_name"));
    const std::string catalog = sql_folded(text_at(node, "catalog_name"));
    if (schema == "information_schema" || schema == "pg_catalog" || catalog == "system" ||
        schema == "system" || is_internal(sql_folded(name)))
      refuse_function(name);
    if (schema.empty() && catalog.empty() && is_table_path(name)) files_.push_back(name);
  }

  void table_function(const json& node) {
    const json function = node.value("function", json::object());
    const std::string name = sql_folded(text_at(function, "function_name"));
    if (!text_at(function, "schema").empty() || !text_at(function, "catalog").empty())
      refuse_function(name);
    if (is_one_of(name, row_functions)) return;
    const json arguments = function.value("children", json::array());
    const json value =
        arguments.size() == 1 ? arguments[0].value("value", json::object()) : json::object();
    const std::string file = value.is_object() ? text_at(value, "value") : "";
    if (!is_one_of(name, readers) || file.empty()) refuse_function(name);
    files_.push_back(file);
  }

  bool is_internal(const std::string& name) {
    if (internal_.empty()) internal_ = internal_tables(database_);
    return internal_.contains(name);
  }

  const Database& database_;
  std::set<std::string> internal_;
  std::vector<std::string> files_;

 public:
  static constexpr const char* not_a_select =
      "the query must be one SELECT: it may read, not write";
};

}  // namespace

std::span<const std::string_view> file_functions() { return readers; }

std::vector<std::string> check_query(const Database& database, const std::string& sql) {
  if (sql.size() > longest_query) throw RunError("the query is too long");
  if (find_invalid_text(sql) != std::string::npos) throw RunError("the query is not UTF-8 text");
  const Statement parse = database.prepare(fmt::format(
      "SELECT json_serialize_sql({}, skip_null := true, skip_empty := true)", sql_text(sql)));
  json tree;
  // To its end: what is done while a result is open is undone when it is given up.
  const std::unique_ptr<Rows> rows = parse.stream();
  while (rows->next())
    tree = json::parse(text_of(rows->column<duckdb_string_t>(0)[0]), nullptr, false);
  if (!tree.is_object() || tree.value("error", true)) {
    if (text_at(tree, "error_type") == "parser")
      throw query_error("Parser Error: " + text_at(tree, "error_message"));
    throw RunError(Inspector::not_a_select);
  }
  const json statements = tree.value("statements", json::array());
  if (statements.size() != 1) throw RunError(Inspector::not_a_select);
  return Inspector(database).inspect(statements);
}

}  // namespace starfold

#include "starfold/data/query.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/shown_names.h"
#include "starfold/data/table.h"
#include "starfold/data/table_error.h"

namespace starfold {
namespace {

using nlohmann::json;

constexpr std::size_t longest_query = std::size_t{1} << 20U;

// Functions in FROM that make rows of their arguments, and touch nothing else.
constexpr std::string_view row_functions[] = {"range", "generate_series", "unnest"};
constexpr std::string_view readers[] = {"read_parquet",    "read_csv",       "read_csv_auto",
                                        "read_json",       "read_json_auto", "read_ndjson",
                                        "read_ndjson_auto"};
// Functions of values that tell about the machine, or leave something behind.
constexpr std::string_view refused_functions[] = {
    "getenv",  "current_setting",  "getvariable",   "write_log",   "nextval",
    "currval", "current_database", "current_query", "txid_current"};

template <std::size_t size>
bool is_one_of(const std::string& name, const std::string_view (&list)[size]) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
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
    if (type == "FUNCTION" && is_one_of(text_at(node, "function_name"), refused_functions))
      refuse_function(text_at(node, "function_name"));
  }

  void table(const json& node) {
    const std::string name = text_at(node, "table_name");
    const std::string schema = text_at(node, "schema_name");
    const std::string catalog = text_at(node, "catalog_name");
    if (schema == "information_schema" || schema == "pg_catalog" || catalog == "system" ||
        schema == "system" || name.starts_with("duckdb_") || name.starts_with("pragma_") ||
        name.starts_with("sqlite_"))
      refuse_function(name);
    if (schema.empty() && catalog.empty() && is_table_path(name)) files_.push_back(name);
  }

  void table_function(const json& node) {
    const json function = node.value("function", json::object());
    const std::string name = text_at(function, "function_name");
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
  return Inspector().inspect(statements);
}

}  // namespace starfold

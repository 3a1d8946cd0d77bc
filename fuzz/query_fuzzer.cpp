// Queries: what may not be said is refused however it is dressed up, and whatever passes is a SELECT.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "starfold/base/error.h"
#include "starfold/data/duckdb/database.h"
#include "starfold/data/duckdb/query.h"

namespace {

using starfold::Database;

// What no query may read from.
constexpr std::array sources = {"read_text('/etc/hostname')",
                                "read_blob('x')",
                                "glob('*')",
                                "enable_logging(storage='file')",
                                "query('select 1')",
                                "query_table('t')",
                                "duckdb_settings()",
                                "duckdb_secrets()",
                                "duckdb_logs",
                                "pragma_version()",
                                "json_execute_serialized_sql('{}')",
                                "sniff_csv('x')",
                                "arrow_scan(1, 2, 3)",
                                "parquet_scan('x.parquet')",
                                "read_csv('a.csv', header=true)",
                                "read_csv(['a.csv'])",
                                "system.main.read_text('x')",
                                "sqlite_scan('a', 'b')",
                                "information_schema.tables",
                                "sqlite_master",
                                "pg_class",
                                "pg_catalog.pg_settings",
                                "duckdb_columns",
                                "starfold_file_0()",
                                "checkpoint()",
                                "(describe select 1)",
                                "(show tables)"};
// Where it may stand.
constexpr std::array places = {
    "select * from @",
    "select 1 where exists (from @)",
    "with c as (select * from @) select * from c",
    "select (select count(*) from @) as y",
    "select * from range(3) r, lateral (select * from @) l",
    "(select 1 as y) union all (select 1 from @)",
    "select * from (values (1)) v(y) join @ on true",
    "from @",
    "select y from (select 1 as y) where y in (select 1 from @)",
    "with recursive c(y) as (select 1 union all select 1 from @, c) select * from c",
    "select list_transform([1], x -> (select count(*) from @)) as y"};
// What no query may compute.
constexpr std::array functions = {"getenv('x')",
                                  "current_setting('threads')",
                                  "write_log('x')",
                                  "nextval('s')",
                                  "version()",
                                  "pg_sleep(1)",
                                  "sleep_ms(1)",
                                  "current_schema()",
                                  "inet_client_addr()",
                                  "has_table_privilege('a', 'b')",
                                  "json_serialize_plan('select 1')",
                                  "list_transform(['x'], x -> getenv(x))"};
// What is no SELECT.
constexpr std::array statements = {"copy (select 1) to 'x'",
                                   "export database 'x'",
                                   "import database 'x'",
                                   "attach 'x'",
                                   "detach x",
                                   "pragma database_list",
                                   "set threads = 1",
                                   "reset threads",
                                   "call pragma_version()",
                                   "checkpoint",
                                   "create table t as select 1",
                                   "create secret s (type s3)",
                                   "install x",
                                   "load x",
                                   "prepare p as select 1",
                                   "execute p",
                                   "explain select 1",
                                   "vacuum",
                                   "begin",
                                   "insert into t values (1)",
                                   "delete from t",
                                   "update t set a = 1",
                                   "drop table t",
                                   "alter table t add column x int",
                                   "use x",
                                   "create macro f(x) as x"};

// The text with letters of other sizes and blanks and comments for blanks, as the bytes say.
std::string dressed(std::string_view text, const std::uint8_t* data, std::size_t size) {
  constexpr std::array blanks = {" ", "\n", "\t ", "/**/", " /* ; */ ", " -- x\n", "\r\n"};
  std::string out;
  bool quoted = false;
  std::size_t at = 0;
  for (const char c : text) {
    const std::uint8_t byte = size == 0 ? 0 : data[at++ % size];
    if (c == '\'') quoted = !quoted;
    if (c == ' ' && !quoted) {
      out += blanks[byte % blanks.size()];
    } else {
      out += !quoted && (byte & 1U) != 0 && c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    }
  }
  return out;
}

bool passes(const Database& database, const std::string& sql) {
  try {
    starfold::check_query(database, sql);
    return true;
  } catch (const starfold::RunError&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Database database = [] {
    Database opened{starfold::DatabaseOptions()};
    opened.enclose({});
    return opened;
  }();
  if (size < 3) return 0;
  std::string source = places[data[0] % places.size()];
  source.replace(source.find('@'), 1, sources[data[1] % sources.size()]);
  if (passes(database, dressed(source, data + 2, size - 2))) std::abort();
  const std::string function = functions[data[1] % functions.size()];
  if (passes(database, dressed("select " + function + " as y", data + 2, size - 2))) std::abort();
  const std::string statement =
      dressed(statements[data[1] % statements.size()], data + 2, size - 2);
  if (passes(database, statement) || passes(database, "select 1 as y; " + statement) ||
      passes(database, statement + "; select 1 as y"))
    std::abort();
  // Anything at all.
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (!passes(database, text)) return 0;
  try {
    if (!database.connect().prepare(text).is_select()) std::abort();
  } catch (const starfold::DuckdbError&) {
  }
  return 0;
}

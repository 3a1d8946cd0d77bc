// DuckDB with values and exceptions instead of handles and codes. Private to starfold/data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "starfold/data/duckdb/library.h"

namespace starfold {

// What DuckDB itself says. It may quote records: it never leaves starfold/data (see table_error.h).
class DuckdbError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct StatementHandle;

// The rows of a running query, one chunk of a few thousand after the other.
class Rows {
 public:
  // Moves to the next chunk; false at the end.
  bool next();
  std::size_t size() const { return size_; }
  template <typename T>
  const T* column(std::size_t index) const {
    return static_cast<const T*>(duckdb().vector_get_data(vector(index)));
  }
  // One bit per row, set where there is a value; null when there is one everywhere.
  const std::uint64_t* valid(std::size_t index) const {
    return duckdb().vector_get_validity(vector(index));
  }

  ~Rows();
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

 private:
  friend class Statement;
  Rows() = default;
  duckdb_vector vector(std::size_t index) const {
    return duckdb().data_chunk_get_vector(chunk_, index);
  }

  [[noreturn]] void fail(const char* message);

  std::shared_ptr<StatementHandle> statement_;  // with its connection and database
  duckdb_result result_ = {};
  duckdb_data_chunk chunk_ = nullptr;
  std::size_t size_ = 0;
  bool ended_ = false;
};

// A text in a chunk's column.
inline std::string_view text_of(const duckdb_string_t& value) {
  const auto length = value.value.inlined.length;
  return {length <= sizeof value.value.inlined.inlined ? value.value.inlined.inlined
                                                       : value.value.pointer.ptr,
          length};
}
inline bool is_valid(const std::uint64_t* mask, std::size_t row) {
  return mask == nullptr || (mask[row / 64] >> (row % 64) & 1U) != 0;
}

// A prepared statement.
class Statement {
 public:
  bool is_select() const;
  std::size_t columns() const;
  std::string column_name(std::size_t index) const;
  duckdb_type column_type(std::size_t index) const;
  // How many digits a DECIMAL has, and how many of them after the point; nothing for other types.
  struct Digits {
    int all = 0;
    int after_point = 0;
  };
  std::optional<Digits> decimal(std::size_t index) const;
  // Starts it.
  std::unique_ptr<Rows> stream() const;

 private:
  friend class Database;
  std::shared_ptr<StatementHandle> handle_;
};

struct DatabaseOptions {
  std::string file;  // a DuckDB file, opened for reading; empty: nothing but memory
  // One thread computes the same bits every time; where several read, each has a connection of its own.
  int threads = 1;
  std::int64_t memory = 0;  // bytes; 0: DuckDB's own limit
};

// A connection to a DuckDB instance that reads and does not write: no extension is installed or loaded
// behind the user's back, nothing is spilled to disk, times are those of UTC. One statement streams at a
// time. Once anything that ran has failed, the instance is not used again.
class Database {
 public:
  explicit Database(const DatabaseOptions& options);
  // Another connection to the same instance.
  Database connect() const;

  void execute(const std::string& sql) const;
  // The first statement of a text. Of statements that are none of ours, only those that check_query let pass.
  Statement prepare(const std::string& sql) const;
  // After this, no setting can be changed.
  void lock() const;
  // After this, also no file can be opened, but these.
  void enclose(const std::vector<std::string>& files) const;
  duckdb_connection connection() const;

 private:
  friend class Rows;
  friend class Statement;
  struct Instance;
  struct Handle;
  Database() = default;
  std::shared_ptr<Handle> handle_;
};

// A name or a text as SQL writes it.
std::string sql_name(const std::string& name);
std::string sql_text(const std::string& text);
// A name as DuckDB compares names: letters of any size are the same.
std::string sql_folded(std::string name);
// Whether two of the names are one to DuckDB.
bool sql_ambiguous(const std::vector<std::string>& names);

}  // namespace starfold

#include "starfold/data/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "starfold/base/error.h"
#include "starfold/base/utf8.h"
#include "starfold/data/arrays/npy.h"
#include "starfold/data/binding/shown_names.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

// Arrays lie in memory twice when a client has them: as they were read, and as its inputs.
void take(std::int64_t& room, const DataSource& source) {
  for (const auto& [name, array] : source.arrays)
    room -= 2 * array.count() * static_cast<std::int64_t>(sizeof(double));
}

DataSource read_folder(const std::string& path, std::int64_t& room) {
  DataSource source;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".npy") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    source.order.push_back(file.stem().string());
    DataSource one;
    one.arrays.emplace(source.order.back(), read_npy(file.string(), room));
    take(room, one);
    source.arrays.merge(one.arrays);
  }
  return source;
}

DataSource read_archive(const std::string& path, std::int64_t& room) {
  DataSource source;
  source.arrays = read_npz(path, room);
  take(room, source);
  for (const auto& [name, array] : source.arrays) source.order.push_back(name);
  return source;
}

DataSource read_single(const ir::Program& program, const std::string& path, std::int64_t& room) {
  const std::vector<std::string> inputs = federated_inputs(program);
  if (inputs.size() != 1) {
    throw RunError(
        fmt::format("{} holds one array, but the program has {} federated inputs; use .npz or a "
                    "folder of .npy files",
                    printable(path), inputs.size()));
  }
  DataSource source;
  source.arrays.emplace(inputs.front(), read_npy(path, room));
  take(room, source);
  source.order = inputs;
  return source;
}

DataSource read_table(const TableLocation& location, Tables& tables) {
  DataSource source;
  source.table = tables.open(location);
  for (const ColumnInfo& column : source.table->columns()) source.order.push_back(column.name);
  return source;
}

DataSource read(const ir::Program& program, const TableLocation& location, Tables& tables) {
  const std::string& path = location.path;
  if (!location.query.empty() || is_table_path(path)) return read_table(location, tables);
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return read_folder(path, tables.room());
  const std::string extension = fs::path(path).extension().string();
  if (extension == ".npz") return read_archive(path, tables.room());
  if (extension == ".npy") return read_single(program, path, tables.room());
  throw RunError(
      fmt::format("{}: files of this kind cannot be read; use .csv, .tsv, .parquet, .jsonl, .json, "
                  ".xlsx, .duckdb, .sqlite, "
                  ".npz, .npy or a folder of .npy files",
                  printable(path)));
}

}  // namespace

std::vector<std::string> federated_inputs(const ir::Program& program) {
  std::vector<std::string> names;
  for (const ir::Input& input : program.inputs) {
    if (input.type.federated()) names.push_back(input.name);
  }
  return names;
}

bool DataSource::has_column(const std::string& name) const {
  const auto array = arrays.find(name);
  if (array != arrays.end()) return array->second.rank() == 1;
  return table && std::find(order.begin(), order.end(), name) != order.end();
}

std::string DataSource::shown_columns() const {
  if (table && !table->names_are_safe()) return "columns whose names may be a record";
  return shown_list(order);
}

DataSource open_source(const ir::Program& program, const std::string& client,
                       const TableLocation& location, Tables& tables) {
  try {
    DataSource source = read(program, location, tables);
    source.client = client;
    return source;
  } catch (const RunError& error) {
    throw RunError(fmt::format("client {}: {}", shown(client), error.what()));
  }
}

}  // namespace starfold

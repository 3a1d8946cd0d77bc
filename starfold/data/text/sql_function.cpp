#include "starfold/data/text/sql_function.h"

#include <memory>

#include "starfold/base/error.h"
#include "starfold/data/text/values.h"

namespace starfold {
namespace {

duckdb_type sql_type(TextType type) {
  switch (type) {
    case TextType::empty:
    case TextType::number:
      return DUCKDB_TYPE_DOUBLE;
    case TextType::truth:
      return DUCKDB_TYPE_BOOLEAN;
    case TextType::day:
      return DUCKDB_TYPE_DATE;
    case TextType::time:
    case TextType::zoned_time:
      return DUCKDB_TYPE_TIMESTAMP;
    default:
      return DUCKDB_TYPE_VARCHAR;
  }
}

// One reading of a file.
struct Reading {
  const TextSource* source = nullptr;
  std::unique_ptr<TextRecords> records;
  std::vector<std::size_t> columns;
};

std::string message_of(const RunError& error) { return std::string(text_failure) + error.what(); }

void bind(duckdb_bind_info info) {
  const auto* source = static_cast<const TextSource*>(duckdb().bind_get_extra_info(info));
  for (std::size_t c = 0; c < source->names.size(); ++c) {
    duckdb_logical_type type = duckdb().create_logical_type(sql_type(source->types[c]));
    // By its place: nothing in a header needs care that way.
    duckdb().bind_add_result_column(info, ("c" + std::to_string(c)).c_str(), type);
    duckdb().destroy_logical_type(&type);
  }
}

void start(duckdb_init_info info) {
  auto reading = std::make_unique<Reading>();
  reading->source = static_cast<const TextSource*>(duckdb().init_get_extra_info(info));
  try {
    reading->records = reading->source->open();
  } catch (const RunError& error) {
    duckdb().init_set_error(info, message_of(error).c_str());
    return;
  }
  const std::size_t count = duckdb().init_get_column_count(info);
  for (std::size_t i = 0; i < count; ++i)
    reading->columns.push_back(duckdb().init_get_column_index(info, i));
  duckdb().init_set_max_threads(info, 1);
  duckdb().init_set_init_data(info, reading.release(),
                              [](void* data) { delete static_cast<Reading*>(data); });
}

void set_missing(duckdb_vector vector, std::size_t row) {
  duckdb().vector_ensure_validity_writable(vector);
  duckdb().validity_set_row_invalid(duckdb().vector_get_validity(vector), row);
}

void set_value(const Reading& reading, std::size_t column, duckdb_vector vector, std::size_t row) {
  const Field& field = reading.records->fields()[column];
  const TextType type = reading.source->types[column];
  // Text is what is written; an empty field is the same as a missing one in every program that writes CSV.
  if (field_missing(field, reading.source->dialect)) {
    set_missing(vector, row);
    return;
  }
  void* data = duckdb().vector_get_data(vector);
  switch (sql_type(type)) {
    case DUCKDB_TYPE_DOUBLE:
      static_cast<double*>(data)[row] = field_number(*reading.records, *reading.source, column);
      return;
    case DUCKDB_TYPE_BOOLEAN:
      static_cast<bool*>(data)[row] = field_number(*reading.records, *reading.source, column) != 0;
      return;
    case DUCKDB_TYPE_DATE: {
      const Moment moment = field_moment(*reading.records, *reading.source, column);
      if (moment.has_time)
        fail_value(*reading.records, *reading.source, column,
                   "not a date alone, unlike those before");
      static_cast<std::int32_t*>(data)[row] = static_cast<std::int32_t>(moment.days());
      return;
    }
    case DUCKDB_TYPE_TIMESTAMP:
      static_cast<std::int64_t*>(data)[row] =
          field_moment(*reading.records, *reading.source, column).microseconds;
      return;
    default:
      duckdb().vector_assign_string_element_len(vector, row, field.written.data(),
                                                field.written.size());
  }
}

void read(duckdb_function_info info, duckdb_data_chunk output) {
  constexpr std::size_t most = 2048;  // a chunk of DuckDB's
  auto* reading = static_cast<Reading*>(duckdb().function_get_init_data(info));
  std::size_t row = 0;
  try {
    while (row < most && reading->records->next()) {
      for (std::size_t i = 0; i < reading->columns.size(); ++i) {
        if (reading->columns[i] < reading->source->names.size())
          set_value(*reading, reading->columns[i], duckdb().data_chunk_get_vector(output, i), row);
      }
      ++row;
    }
  } catch (const std::exception& error) {
    duckdb().function_set_error(info, (std::string(text_failure) + error.what()).c_str());
    row = 0;
  }
  duckdb().data_chunk_set_size(output, row);
}

}  // namespace

void add_text_function(const Database& database, const std::string& name, TextSource source) {
  duckdb_table_function function = duckdb().create_table_function();
  duckdb().table_function_set_name(function, name.c_str());
  duckdb().table_function_set_extra_info(function, new TextSource(std::move(source)),
                                         [](void* data) { delete static_cast<TextSource*>(data); });
  duckdb().table_function_set_bind(function, bind);
  duckdb().table_function_set_init(function, start);
  duckdb().table_function_set_function(function, read);
  duckdb().table_function_supports_projection_pushdown(function, true);
  const duckdb_state state = duckdb().register_table_function(database.connection(), function);
  duckdb().destroy_table_function(&function);
  if (state == DuckDBError) throw DuckdbError("a function cannot be registered");
}

}  // namespace starfold

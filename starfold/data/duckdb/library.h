// DuckDB's C functions, loaded when they are first needed: the library is large, and most commands
// never open a table. Private to starfold/data.
#pragma once

#include <duckdb.h>

#include <string>

namespace starfold {

// The functions that are used here. Their types are those of the header.
#define STARFOLD_DUCKDB_FUNCTIONS(X)             \
  X(library_version)                             \
  X(create_config)                               \
  X(set_config)                                  \
  X(destroy_config)                              \
  X(open_ext)                                    \
  X(close)                                       \
  X(connect)                                     \
  X(disconnect)                                  \
  X(query)                                       \
  X(destroy_result)                              \
  X(result_error)                                \
  X(extract_statements)                          \
  X(prepare_extracted_statement)                 \
  X(extract_statements_error)                    \
  X(destroy_extracted)                           \
  X(prepare_error)                               \
  X(destroy_prepare)                             \
  X(prepared_statement_type)                     \
  X(prepared_statement_column_count)             \
  X(prepared_statement_column_name)              \
  X(prepared_statement_column_type)              \
  X(execute_prepared_streaming)                  \
  X(fetch_chunk)                                 \
  X(destroy_data_chunk)                          \
  X(data_chunk_get_size)                         \
  X(data_chunk_get_vector)                       \
  X(vector_get_data)                             \
  X(vector_get_validity)                         \
  X(prepared_statement_column_logical_type)      \
  X(decimal_scale)                               \
  X(decimal_width)                               \
  X(create_logical_type)                         \
  X(destroy_logical_type)                        \
  X(create_table_function)                       \
  X(destroy_table_function)                      \
  X(table_function_set_name)                     \
  X(table_function_set_extra_info)               \
  X(table_function_set_bind)                     \
  X(table_function_set_init)                     \
  X(table_function_set_function)                 \
  X(table_function_supports_projection_pushdown) \
  X(register_table_function)                     \
  X(bind_get_extra_info)                         \
  X(bind_add_result_column)                      \
  X(init_get_extra_info)                         \
  X(init_set_init_data)                          \
  X(init_set_max_threads)                        \
  X(init_set_error)                              \
  X(init_get_column_count)                       \
  X(init_get_column_index)                       \
  X(function_get_init_data)                      \
  X(function_set_error)                          \
  X(data_chunk_set_size)                         \
  X(vector_ensure_validity_writable)             \
  X(validity_set_row_invalid)                    \
  X(vector_assign_string_element_len)            \
  X(free)

struct DuckdbFunctions {
#define STARFOLD_DECLARE(name) decltype(&::duckdb_##name) name = nullptr;
  STARFOLD_DUCKDB_FUNCTIONS(STARFOLD_DECLARE)
#undef STARFOLD_DECLARE
};

// Loads the library at the first call. RunError says where it was looked for when it is missing.
const DuckdbFunctions& duckdb();

// Where the loaded library lies.
std::string duckdb_folder();

}  // namespace starfold

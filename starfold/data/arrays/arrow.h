// Tables in the Arrow C data interface: whatever hands over a stream of it is a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "starfold/data/arrays/memory_table.h"

// The layout of these structures is fixed by the interface's specification.
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}

namespace starfold {

// The columns of a stream of records, or the one column (called `name`) of a stream of values. The stream is read to its end and
// released; its parts live as long as the columns do. RunError when it cannot be read.
std::vector<MemoryColumn> arrow_columns(ArrowArrayStream& stream, const std::string& name = "");

}  // namespace starfold

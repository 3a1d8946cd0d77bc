// A table that lies in the memory of the program we are part of: columns of numbers, days, texts or levels, in parts. Nothing is
// copied when it is made; doubles without gaps are read where they are, all else is converted as it is read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "starfold/data/table.h"
#include "starfold/tensor/tensor.h"

namespace starfold {

// What the bytes of a column are.
enum class Cells {
  none,  // no value anywhere
  f64,
  f32,
  f16,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  bits,        // true or false, one bit each
  truths,      // true or false, one byte each
  days,        // 32 bits, since 1970-01-01
  day_millis,  // 64 bits: whole days in milliseconds
  seconds,     // moments since 1970-01-01 UTC, 64 bits
  millis,
  micros,
  nanos,
  decimal32,
  decimal64,
  decimal128,
  text32,     // offsets of 32 bits into bytes
  text64,     // offsets of 64 bits
  text_view,  // 16 bytes each: short texts themselves, long ones by reference
  other,      // nothing that a program can compute with
};

// Consecutive values of a column.
struct CellBlock {
  Cells cells = Cells::none;  // of the indices, where there are levels
  std::size_t count = 0;
  const void* data = nullptr;  // the first value; for bits and texts, where counting begins
  std::int64_t stride = 0;     // bytes from one value to the next
  std::size_t first = 0;       // bits and texts: the place of the first value
  const std::uint8_t* valid = nullptr;  // one bit per value, the lowest first; null: all are there
  std::size_t valid_first = 0;
  const std::uint8_t* hidden =
      nullptr;  // one byte per value, not 0 where it is missing; null: none is
  std::int64_t hidden_stride = 1;
  std::int64_t absent = 0;  // the number that stands for a missing value
  bool has_absent = false;
  const char* bytes = nullptr;                                  // of texts
  std::vector<const char*> buffers;                             // of referenced texts
  int after_point = 0;                                          // digits of decimals
  std::shared_ptr<const std::vector<std::string>> level_texts;  // values are places in it, from 0
  std::shared_ptr<const std::vector<double>> level_numbers;     // or in it
  std::shared_ptr<const void> owner;                            // keeps the bytes
};

struct MemoryColumn {
  ColumnInfo info;
  std::vector<CellBlock> blocks;
  // The levels that the column itself declares; null: none.
  std::shared_ptr<const Categorical> levels = nullptr;
};

// A table whose records lie in memory already: reading them again costs little, a copy much.
class InMemoryTable : public Table {
 public:
  // The levels that a column declares itself, as a factor does; null: none.
  virtual std::shared_ptr<const Categorical> own_levels(std::size_t) const { return nullptr; }
  // The parts of a column where they lie; null: it has none of its own.
  virtual const std::vector<CellBlock>* parts(std::size_t) const { return nullptr; }
};

// RunError when columns differ in length or two have one name.
std::shared_ptr<const Table> memory_table(std::vector<MemoryColumn> columns);

// A text of a block, and all its numbers (nan where one is missing).
std::string memory_text(const CellBlock& block, std::size_t i);
void memory_numbers(const CellBlock& block, double* to);

// The kind of a column, and what it is in words, as for files.
ColumnInfo memory_column_info(std::string name, Cells cells, bool text_levels, bool number_levels);

// An array in memory, with any strides.
struct ArrayView {
  Shape shape;
  std::vector<std::int64_t> strides;  // bytes
  Cells cells = Cells::f64;           // numbers or truths
  const void* data = nullptr;
  std::shared_ptr<const void> owner;
};

// Arrays by name, handed over by the program we are part of. Those with one axis are columns; all of them may be inputs.
class GivenArrays : public InMemoryTable {
 public:
  explicit GivenArrays(std::map<std::string, ArrayView> arrays);
  const std::map<std::string, ArrayView>& arrays() const { return arrays_; }
  const std::vector<ColumnInfo>& columns() const override { return infos_; }
  // Only for columns of one length; who has inputs reads the arrays.
  std::unique_ptr<TableScan> scan(const std::vector<ColumnUse>& uses,
                                  RecordRange range) const override;
  LevelCounts levels(std::size_t column, std::size_t most) const override;

 private:
  std::map<std::string, ArrayView> arrays_;
  std::vector<ColumnInfo> infos_;
};

// A copy. RunError when it holds a whole number that no double is equal to.
Tensor copy_of(const ArrayView& view);

// The values along one axis at a place of the others, in row-major order: a column.
CellBlock column_of(const ArrayView& view, std::size_t axis, std::size_t place);

}  // namespace starfold

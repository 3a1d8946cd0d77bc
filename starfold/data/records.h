// Records as a program wants them: only numbers, missing values treated, levels turned into columns.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "starfold/data/table.h"

namespace starfold {

class RecordReader {
 public:
  RecordReader(std::shared_ptr<const Table> table, std::vector<ColumnUse> uses, Missing missing);

  // Moves to the next records; false at the end.
  bool next();
  std::size_t records() const { return records_; }
  // Their columns: one for each use, or as many as its categorical becomes.
  std::span<const double* const> columns() const { return columns_; }

  // At the end: RunError with columns and counts when there were values that may not be there.
  void check() const;

 private:
  void clean();
  const double* filled(std::size_t use, std::size_t count);
  void add_columns(const ColumnUse& use, const double* values, std::size_t count);
  void drop_marked(std::size_t count);
  std::vector<double>& buffer(std::size_t size);

  std::shared_ptr<const Table> table_;
  std::vector<ColumnUse> uses_;
  Missing missing_;
  std::unique_ptr<TableScan> scan_;
  std::size_t records_ = 0;
  std::vector<const double*> columns_;
  std::vector<std::vector<double>> buffers_;
  std::size_t used_buffers_ = 0;
  std::vector<char> dropped_;  // by record of the chunk; empty: none
  std::vector<std::int64_t> missing_counts_;
  std::vector<std::int64_t> unseen_counts_;
};

}  // namespace starfold

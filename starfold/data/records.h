// Records as a program wants them: only numbers, missing values treated, levels turned into columns.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "starfold/data/table.h"
#include "starfold/formula/design.h"

namespace starfold {

// Values that were found missing or without a level, by use; and what a formula has no value for, by its variables.
struct Flaws {
  std::vector<std::int64_t> missing;
  std::vector<std::int64_t> unseen;
  formula::DesignFlaws design;
  std::int64_t dropped = 0;  // records left out because of them

  explicit Flaws(std::size_t uses = 0, std::size_t variables = 0)
      : missing(uses), unseen(uses), design{{}, {}} {
    design.undefined.resize(variables);
    design.infinite.resize(variables);
  }
  void add(const Flaws& other);
};

// A design that is computed from columns as they are read.
struct DesignUse {
  std::shared_ptr<const formula::Design> design;  // null: none
  std::vector<std::size_t>
      uses;  // by source of the design: which use it is; `client` where it is none of the table
  double site = 0;  // the client's number among sites, from 1
  static constexpr std::size_t client = static_cast<std::size_t>(-1);

  std::size_t variables() const { return design ? design->variables().size() : 0; }
};

// Whether there were values that may not be there.
bool has_flaws(const Flaws& flaws, Missing missing);

// RunError with columns and counts when there were values that may not be there.
void check_flaws(const Flaws& flaws, const Table& table, const std::vector<ColumnUse>& uses,
                 const DesignUse& design, Missing missing);

class RecordReader {
 public:
  RecordReader(std::shared_ptr<const Table> table, std::vector<ColumnUse> uses, Missing missing,
               RecordRange range = {}, DesignUse design = {});

  // Moves to the next records; false at the end.
  bool next();
  std::size_t records() const { return records_; }
  // Their columns: one for each use, or as many as its categorical becomes; then those of the design.
  std::span<const double* const> columns() const { return columns_; }

  // What was found so far.
  const Flaws& flaws() const { return flaws_; }

 private:
  void clean();
  const double* filled(std::size_t use, std::size_t count);
  void add_columns(const ColumnUse& use, const double* values, std::size_t count);
  void add_design(std::size_t count);
  void drop_marked(std::size_t count);
  std::vector<double>& buffer(std::size_t size);

  std::shared_ptr<const Table> table_;
  std::vector<ColumnUse> uses_;
  Missing missing_;
  DesignUse design_;
  std::unique_ptr<TableScan> scan_;
  std::size_t records_ = 0;
  std::vector<const double*> columns_;
  std::vector<const double*> values_;  // by use, before levels become columns
  std::vector<std::vector<double>> buffers_;
  std::size_t used_buffers_ = 0;
  std::vector<char> dropped_;  // by record of the chunk; empty: none
  Flaws flaws_;
};

}  // namespace starfold

// Numbers that lie in memory without gaps, on their way into blocks of columns: the short way for tables that are read in place in every
// round. Private to starfold/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "starfold/data/arrays/memory_table.h"

namespace starfold {

class PlainNumbers {
 public:
  // What was met while reading.
  struct Seen {
    bool nan = false;
    bool inexact = false;  // perhaps a whole number that no double is equal to: nothing read counts
  };

  // The columns, each in parts; none where one has gaps, levels or no numbers. The parts must outlive it.
  static std::optional<PlainNumbers> of(const std::vector<const std::vector<CellBlock>*>& columns);

  // Whether no number can be inexact, whatever it is.
  bool is_exact() const;

  // Records first, ..., first + count - 1 of all columns, which come to lie `stride` apart.
  Seen read(std::size_t first, std::size_t count, double* to, std::size_t stride) const;

 private:
  // Columns whose values of a record lie side by side, as the rows of a matrix, or a single one.
  struct Group {
    std::size_t columns = 1;
    std::int64_t side = 0;                          // bytes from one column to the next
    const std::vector<CellBlock>* parts = nullptr;  // of the first column
    std::vector<std::size_t> starts;                // the first record of each part
    bool takes(const std::vector<CellBlock>& column);
  };

  std::vector<Group> groups_;
};

}  // namespace starfold

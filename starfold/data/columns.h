// Columns of a table as people speak of them: names, kinds, levels, missing values.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace starfold {

// How a column becomes numbers. Dates are days since 1970-01-01; text needs declared levels; a column
// without any value seen may become anything.
enum class ColumnKind { number, date, text, unknown, other };

struct ColumnInfo {
  std::string name;
  ColumnKind kind = ColumnKind::unknown;
  std::string type;  // in words: "integer", "true/false", "date", "text"
  // Of text that was most likely meant as something else: where that shows, and what helps; a sentence without its subject. It holds
  // no value but a common mark such as ?.
  std::string note = {};
};

// A column declared to hold one of a few levels.
struct Categorical {
  enum class Coding { onehot, codes };
  std::vector<std::string> levels;
  Coding coding = Coding::onehot;
  // One-hot: the level that has no column of its own (all its columns are 0); levels.size(): none.
  std::size_t reference = 0;

  // How many columns it becomes.
  std::size_t width() const {
    if (coding == Coding::codes) return 1;
    return levels.size() - (reference < levels.size() ? 1 : 0);
  }
};

// What happens to records with a missing value in a column that is used.
enum class Missing { error, drop, nan };

// One column of a table that is read, and how.
struct ColumnUse {
  std::size_t column = 0;                          // its place in Table::columns()
  std::shared_ptr<const Categorical> categorical;  // null: as a number
};

}  // namespace starfold

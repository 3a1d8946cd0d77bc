// A table as the engine wants it: blocks of numbers, kept in memory while there is room, read again in
// every round otherwise. Private to starfold/data.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "starfold/data/records.h"
#include "starfold/runtime/records.h"

namespace starfold {

// The table's columns that are used, each once, what a formula makes of them, and which of it each input takes.
struct TableUse {
  std::vector<ColumnUse> uses;
  DesignUse design;
  std::map<std::string, std::vector<std::size_t>> inputs;
};

struct TableLoad {
  std::string client;
  std::shared_ptr<const Table> table;
  TableUse use;
  Missing missing = Missing::error;
  int threads = 1;
};

struct LoadedRecords {
  std::shared_ptr<const RecordTable> table;
  std::int64_t dropped = 0;  // records left out because a value is missing
  Flaws flaws;               // what was found while it was read, where it was read
};

// A table ready for rounds: kept when it takes no more than `room` bytes, which are taken from `room`. Flaws
// are found while it is read: here, or in the first round when it is not kept and knows its length. RunError without the client's name.
LoadedRecords load_table(const TableLoad& load, std::int64_t& room);

}  // namespace starfold

// Why a matrix of a regression cannot be solved with, in words: which columns are constant or follow from others.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "starfold/runtime/records.h"

namespace starfold {

// The records of all clients, as far as they are tables, and what their columns are called by input.
struct Evidence {
  std::vector<std::shared_ptr<const RecordTable>> tables;
  std::map<std::string, std::vector<std::string>> columns;
};

// What is wrong with the columns of an input with several: constant over all records, the same for all but as a sum of others, more columns
// than records. A sentence or more; empty when nothing is. It tells of all records together, of no client and no record.
std::string singular_columns(const Evidence& evidence);

}  // namespace starfold

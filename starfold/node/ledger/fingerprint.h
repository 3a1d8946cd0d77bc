// The hash of a source as it lies on the disk: what the ledger says the answers came from.
#pragma once

#include <string>

#include "starfold/data/table.h"

namespace starfold {

// SHA-256 of a source's file (of a folder: of the names and hashes of its files) and of its query. Files that a query
// names itself are not read for it. RunError when the file cannot be read.
std::string data_hash(const TableLocation& location);

}  // namespace starfold

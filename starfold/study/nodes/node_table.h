// A node's table as the server knows it: columns without records.
#pragma once

#include "starfold/data/source.h"

namespace starfold {

DataSource node_source(const std::string& client, std::vector<ColumnInfo> columns);

}  // namespace starfold

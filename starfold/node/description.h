// What a node tells everyone who may ask: its sources with their columns, and its policy. Nothing in it comes from a record.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/data/columns.h"
#include "starfold/node/config.h"

namespace starfold {

// One JSON object: "name", "version", "sources" (by name: columns with their kinds), "policy".
std::string describe_node(const NodeConfig& config);

// What a server reads in it.
struct NodeDescription {
  std::string name;
  std::map<std::string, std::vector<ColumnInfo>> sources;
};
// RunError when the text is no description.
NodeDescription parse_description(std::string_view text);

}  // namespace starfold

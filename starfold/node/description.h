// What a node tells everyone who may ask: its sources with their columns, and its policy. Nothing in it comes from a record.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/data/columns.h"
#include "starfold/node/config.h"
#include "starfold/privacy/crypto.h"

namespace starfold {

// One JSON object: "name", "version", "sources" (by name: columns with their kinds), "policy", and "key" where it has one.
std::string describe_node(const NodeConfig& config,
                          const std::optional<secure::Key>& key = std::nullopt);

// What a server reads in it.
struct NodeDescription {
  std::string name;
  std::map<std::string, std::vector<ColumnInfo>> sources;
  std::optional<secure::Key> key;
};
// RunError when the text is no description.
NodeDescription parse_description(std::string_view text);

}  // namespace starfold

// What a node tells everyone who may ask: its sources with their columns, and its policy. Nothing in it comes from a record, but the
// levels of columns of which the owner says so.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/data/columns.h"
#include "starfold/node/config.h"
#include "starfold/secure/crypto.h"

namespace starfold {

// How many levels a column may have whose levels are told.
inline constexpr std::size_t most_levels = 1000;

// One JSON object: "name", "version", "sources" (by name: columns with their kinds), "policy", and "key" where it has one.
std::string describe_node(const NodeConfig& config,
                          const std::optional<secure::Key>& key = std::nullopt);

// What a server reads in it.
struct NodeDescription {
  std::string name;
  std::map<std::string, std::vector<ColumnInfo>> sources;
  std::optional<secure::Key> key;
  std::map<std::string, std::map<std::string, std::vector<std::string>>>
      levels;  // by source and column
};
// RunError when the text is no description.
NodeDescription parse_description(std::string_view text);

}  // namespace starfold

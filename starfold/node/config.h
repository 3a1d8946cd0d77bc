// A node's file, NODE.toml: its sources, its policy and where it keeps things. docs/node.md is the schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starfold/data/source.h"
#include "starfold/node/policy.h"

namespace starfold {

// Data that studies may name.
struct NodeSource {
  std::string name;
  TableLocation location;
  std::vector<std::string> columns;  // what programs may bind; nothing else exists for them
  std::vector<std::string> levels =
      {};                // of these, whose levels are told: those with min_support records
  std::size_t line = 0;  // in the node's file: of `columns`
};

struct NodeConfig {
  std::string file;
  std::string name;
  std::string socket;
  std::string socket_group;  // empty: none
  std::string ledger;
  std::string folder;
  std::vector<NodeSource> sources;
  Policy policy;
  std::vector<std::string> warnings;  // what is allowed and hardly meant: one sentence each

  const NodeSource* find(std::string_view source) const;
  // Where the end of the ledger is written down a second time.
  std::string ledger_head() const { return folder + "/ledger.head"; }
};

// Reads a node's file. Paths in it are relative to it. UsageError, with file and line, when it is wrong or careless: unknown
// keys, limits that limit nothing, files that are missing or no regular files, paths that collide, loose permissions.
NodeConfig read_node_config(const std::string& path);
// The same of a text; without `files` nothing but the text is looked at.
NodeConfig parse_node_config(std::string_view text, const std::string& file, bool files = true);

// Makes the node's folder, for its owner alone, and those in it. RunError when that cannot be done.
void prepare_folder(const NodeConfig& config);

// Opens a source. RunError when its data cannot be read; UsageError, with file and line, when a column is not there.
DataSource open_node_source(const NodeConfig& config, const NodeSource& source, Tables& tables);

}  // namespace starfold

// A node's file in words: what it would let out and what it refuses.
#pragma once

#include <string>

#include "starfold/node/config.h"

namespace starfold {

// For `starfold node check`. Looks at the data of every source; errors as of open_node_source.
std::string describe_policy(const NodeConfig& config);

// The same as one JSON object on one line: sources with their columns, the policy, warnings.
std::string describe_policy_json(const NodeConfig& config);

}  // namespace starfold

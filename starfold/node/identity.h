// The key that makes a node itself to other nodes: the private half lies in its folder, for its owner alone; the public half is what studies
// and other owners pin.
#pragma once

#include <optional>

#include "starfold/node/config.h"
#include "starfold/secure/client.h"

namespace starfold {

// The node's identity, made when there is none yet; its folder is there. RunError when it cannot be read or kept, or when others may
// read it.
secure::Identity load_identity(const NodeConfig& config);

// The public half; none when the node has no key yet. RunError as above.
std::optional<secure::Key> known_key(const NodeConfig& config);

}  // namespace starfold

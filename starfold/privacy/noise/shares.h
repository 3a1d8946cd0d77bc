// Shares of noise under secure aggregation: how many a sum has.
#pragma once

#include <algorithm>
#include <cstdint>

#include "starfold/secure/protocol.h"

namespace starfold::privacy {

// How many shares of noise a sum over this group is sure to have, whoever looks at it: no client counts on its own, which it
// knows and could take away.
inline std::int64_t sure_shares(const secure::Group& group) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(group.inputs()) - 1);
}

}  // namespace starfold::privacy

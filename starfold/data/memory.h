// How the memory of a run is divided.
#pragma once

#include <cstdint>

namespace starfold {

// In bytes.
struct MemoryPlan {
  std::int64_t records = 0;  // for records that are kept between rounds
  std::int64_t reader = 0;   // for reading tables
  std::int64_t values = 0;   // for what the server computes
};

// Divides what was given, or half of the machine's memory when nothing was (0). The rest is for the
// program itself and for blocks on their way. However little is given, tables can be read and small values
// computed: that takes up to about 300 MB.
MemoryPlan plan_memory(std::int64_t given);

// The least that may be given: what is below is more likely a slip than a wish.
inline constexpr std::int64_t least_memory = 1'000'000;

}  // namespace starfold

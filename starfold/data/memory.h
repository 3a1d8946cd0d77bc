// How the memory of a run is divided.
#pragma once

#include <cstdint>

namespace starfold {

struct MemoryPlan {
  std::int64_t records = 0;  // bytes for records that are kept between rounds
  std::int64_t duckdb = 0;   // bytes that DuckDB may use
};

// Divides what was given, or half of the machine's memory when nothing was (0). The rest is for the
// program itself and for blocks on their way.
MemoryPlan plan_memory(std::int64_t given);

}  // namespace starfold

#include "starfold/data/memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace starfold {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;

// Physical memory, or what the control group allows of it.
std::int64_t machine_memory() {
  std::int64_t bytes = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  std::int64_t limit = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit && limit > 0)
    bytes = std::min(bytes, limit);
  return bytes;
}

}  // namespace

MemoryPlan plan_memory(std::int64_t given) {
  // Below this DuckDB cannot decode a Parquet file, and the program itself takes some.
  constexpr std::int64_t least_reader = 96 * mebibyte;
  constexpr std::int64_t program = 96 * mebibyte;
  const std::int64_t total = given > 0 ? given : machine_memory() / 2;
  MemoryPlan plan;
  plan.reader = std::max(total / 4, least_reader);
  plan.records = std::max<std::int64_t>(total - plan.reader - program, 0);
  plan.values = std::max(total, program);
  return plan;
}

}  // namespace starfold

#include "starfold/runtime/numbers.h"

#include <sys/mman.h>

namespace starfold {

Numbers allocate_numbers(std::size_t count) {
  constexpr std::size_t cache_lines = 128;
  constexpr std::size_t huge_page = std::size_t{1} << 21U;
  std::size_t bytes = count * sizeof(double);
  const bool large = bytes >= huge_page;
  const std::size_t alignment = large ? huge_page : cache_lines;
  bytes = (bytes + alignment - 1) / alignment * alignment;
  Numbers numbers(static_cast<double*>(std::aligned_alloc(alignment, bytes)));
  // Most of the time to fill fresh memory goes into mapping its pages, and much of the time to read it into
  // finding them. What was used before lies on small pages, which are given back first.
  if (numbers && large) {
    madvise(numbers.get(), bytes, MADV_DONTNEED);
    madvise(numbers.get(), bytes, MADV_HUGEPAGE);
  }
  return numbers;
}

}  // namespace starfold

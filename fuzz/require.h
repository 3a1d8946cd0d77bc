#pragma once

#include <cstdlib>

// Ends the process, which a fuzzer takes for a find.
inline void require(bool condition) {
  if (!condition) std::abort();
}

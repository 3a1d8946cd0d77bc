// Memory for many numbers: aligned for vectors, and on large pages where that pays.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace starfold {

struct FreeNumbers {
  void operator()(double* numbers) const { std::free(numbers); }
};
using Numbers = std::unique_ptr<double[], FreeNumbers>;

// Room for `count` numbers, whatever is in it; null when there is none.
Numbers allocate_numbers(std::size_t count);

}  // namespace starfold

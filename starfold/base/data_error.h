// A run that fails because of its data: files that cannot be read, columns that are not there, values that are missing, sizes that
// do not fit. Told apart from what goes wrong later for those who catch it.
#pragma once

#include "starfold/base/error.h"

namespace starfold {

class DataError : public RunError {
 public:
  explicit DataError(const RunError& error) : RunError(error) {}
};

}  // namespace starfold

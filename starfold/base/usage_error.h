// What a person wrote is wrong: a study, a node's file, an option, the name of a file.
#pragma once

#include <stdexcept>

namespace starfold {

// The message has the place.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace starfold

// The two failures that are not a user's program: data or numerics that cannot be used, and our own mistakes.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>

#include "starfold/base/source.h"

namespace starfold {

// A run cannot go on: data, numerics or federation. The message never holds a record's value.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  RunError(const std::string& message, Span where) : std::runtime_error(message), where_(where) {}

  // The expression at fault, when there is one.
  const std::optional<Span>& where() const { return where_; }

 private:
  std::optional<Span> where_;
};

// Starfold itself is wrong; a message for its developers.
class Bug : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace starfold

// What went wrong, as a value: for an exit code, for an exception of another language, for a log.
#pragma once

#include <optional>
#include <string>

#include "starfold/base/source.h"

namespace starfold {

struct Trouble {
  enum class Kind {
    refused,  // a client's policy says no, or the run cannot be protected as the study asks
    usage,    // a study, an option or the name of a file is wrong
    failed,   // data, numerics, federation, or the machine
    bug,      // Starfold itself is wrong
  };
  Kind kind = Kind::failed;
  std::string message;
  std::optional<Span> where;  // the expression at fault, when there is one
  std::string client = {};    // refused: by whom,
  std::string rule = {};      // and the rule, as far as it is told
  std::string help = {};      // what would mend it
};

// The exception that is being handled.
Trouble current_trouble();

}  // namespace starfold

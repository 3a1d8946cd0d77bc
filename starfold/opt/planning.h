// How a program becomes a plan. Both sides of a run must choose alike, so it travels with the program.
#pragma once

namespace starfold {

struct Planning {
  bool optimize = true;  // without: only the rewrites that a plan needs
  bool additive =
      false;           // folds become sums where they can: for messages that are masked or noised
  bool exact = false;  // merges that round nothing, and the same bits for every value everywhere
  friend bool operator==(const Planning&, const Planning&) = default;
};

}  // namespace starfold

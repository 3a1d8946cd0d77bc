// What every row of the operations begins with.
#pragma once

#include "starfold/signature/op.h"

namespace starfold {

// An operation in words: its name, how it is written, its typing rule, what it means.
struct RowText {
  std::string name;
  std::string surface;
  std::string rule;
  std::string doc;
};
// A row of a family for so many arguments; -1: any number from the least on.
Op begin_row(Family family, int min_args, int max_args, RowText text, TypeRule type,
             Meaning meaning, DerivativeRule derivative);

}  // namespace starfold

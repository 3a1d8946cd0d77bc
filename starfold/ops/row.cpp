#include "starfold/ops/row.h"

namespace starfold {

Op begin_row(Family family, int min_args, int max_args, RowText text, TypeRule type,
             Meaning meaning, DerivativeRule derivative) {
  Op op;
  op.name = std::move(text.name);
  op.family = family;
  op.min_args = min_args;
  op.max_args = max_args;
  op.surface = std::move(text.surface);
  op.rule = std::move(text.rule);
  op.doc = std::move(text.doc);
  op.type = std::move(type);
  op.meaning = std::move(meaning);
  op.derivative = derivative;
  return op;
}

}  // namespace starfold

// What bindings choose records by, before a program sees them: comparisons in a formula, levels of columns. They are conditions
// like those of a program, and held to the same number of records.
#pragma once

#include "starfold/data/binding/bind_columns.h"
#include "starfold/node/rules.h"

namespace starfold {

// Whether each level, and each of their products in the design, has enough records and leaves enough out, or none; and whether
// what the formula computes tells enough records from the others, or none, in each case of its conditions and signs. Counted over the
// columns of the study and the records that it computes with: where missing values stay, also over those that have a value in any other
// of its columns. `categoricals` are all columns with levels. It reads the records once more where there is something to count.
Forbidden forbids_choice(const Policy& policy, const DataSource& source, const ColumnPlan& study,
                         const Categoricals& categoricals, const LoadOptions& options,
                         std::int64_t room);

}  // namespace starfold

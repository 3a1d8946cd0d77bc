// What bindings choose records by, before a program sees them: comparisons in a formula, levels of columns. They are conditions
// like those of a program, and held to the same number of records.
#pragma once

#include "starfold/data/binding_text.h"
#include "starfold/node/rules.h"

namespace starfold {

// Whether each of them is true of enough records and untrue of enough, or of none. `categoricals` are all columns with levels.
// It reads the records once more where there is something to count.
Forbidden forbids_choice(const Policy& policy, const DataSource& source, const Bindings& bindings,
                         const Categoricals& categoricals, const LoadOptions& options,
                         std::int64_t room);

}  // namespace starfold

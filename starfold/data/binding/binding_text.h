// Which columns become which input, as it travels to nodes: JSON in one layout, so that its hash identifies it.
#pragma once

#include <string>
#include <string_view>

#include "starfold/data/binding/bind_columns.h"

namespace starfold {

// The columns of all inputs by name, the levels of categorical ones, the formula, and what happens to missing values.
struct Bindings {
  InputColumns columns = {};
  Missing missing = Missing::error;
  FormulaRequest formula = {};  // with all that it needs to mean the same everywhere
  Categoricals factors = {};    // columns with levels that the formula uses
};

// What a plan says to others.
Bindings bindings_of(const ColumnPlan& plan, Missing missing);

std::string binding_text(const Bindings& bindings);

// What a text says; RunError when it is not what binding_text writes.
Bindings parse_bindings(std::string_view text);

// "error", "drop", "nan".
std::string missing_word(Missing missing);

}  // namespace starfold

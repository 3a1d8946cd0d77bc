// The terms of a formula: `a * b` is a + b + a:b. By R's rules for every operator.
#pragma once

#include <string>
#include <vector>

#include "starfold/formula/formula.h"

namespace starfold::formula {

// Variables by number, in ascending order.
using Term = std::vector<std::size_t>;

struct Terms {
  std::vector<Expr>
      variables;  // in the order in which they first stand in the formula, without the response
  std::vector<Term> terms;    // those of fewer variables first
  std::vector<Expr> offsets;  // what stands inside offset(...)
  bool intercept = true;
};

// Expands the right side. `rest` are the names that `.` stands for. FormulaError when it means no model.
Terms expand(const Formula& formula, const std::vector<std::string>& rest = {});

// Whether `.` stands in it.
bool has_dot(const Formula& formula);

// The formula with names in the place of `.`.
Formula without_dot(const Formula& formula, const std::vector<std::string>& rest);

// The parts of a formula that are true or false of a record: comparisons and what is put together of them, each once.
std::vector<Expr> conditions_in(const Formula& formula);

// The names of columns that an expression uses, each once, in order; `pi` among them.
std::vector<std::string> names_in(const Expr& expr);
// The same for both sides.
std::vector<std::string> names_in(const Formula& formula);

}  // namespace starfold::formula

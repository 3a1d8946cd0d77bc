// What the generator knows of an expression's values before they exist, so that it can keep them in
// ranges where two careful evaluations must agree to many digits.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "starfold/signature/op.h"

namespace starfold::laws {

struct Facts {
  double lo = 0;  // of the finite entries
  double hi = 0;
  double error = 0;  // how far two careful evaluations may lie apart
  int grain = -1;    // entries are multiples of 2^-grain, so that sums and products round nothing

  bool exact() const { return grain >= 0; }
  double size() const;
  bool within(Interval range) const { return lo >= range.lo && hi <= range.hi; }
};

// Too large, or too far from what two evaluations agree on, to build upon.
bool usable(const Facts& facts);

Facts constant_facts(double value);
// Both may occur.
Facts either(const Facts& a, const Facts& b);
// Of an element-wise application.
Facts unary_facts(const Op& op, const Facts& a);
Facts binary_facts(const Op& op, const Facts& a, const Facts& b);
Facts product_facts(const Facts& a, const Facts& b);
Facts sum_facts(const Facts& a, std::int64_t count);
// Of an aggregation of so many elements.
Facts aggregation_facts(std::string_view name, const Facts& a, std::int64_t count);

// Jumps somewhere, so that operands must be exact for two evaluations to agree.
bool jumps(const Op& op);
// Rounds nothing on exact operands (and so is exact on nan and infinities).
bool keeps_exact(const Op& op);
// Gives out entries of its operands, their opposites or small whole numbers: right at any magnitude.
bool selects(const Op& op);
// Where an operand of a row should lie for the result to be finite and not steep.
Interval domain(const Op& op, std::size_t operand);

}  // namespace starfold::laws

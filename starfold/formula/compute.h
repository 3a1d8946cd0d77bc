// One variable of a formula, ready to be computed: `log(bmi)`, `poly(x, 2, raw = TRUE)`. Private to starfold/formula.
#pragma once

#include "starfold/formula/design.h"
#include "starfold/formula/functions.h"

namespace starfold::formula {

struct Computation {
  // One after the other; each may use those before it.
  struct Step {
    enum class Kind { source, constant, function };
    Kind kind = Kind::constant;
    std::size_t source = 0;  // its number in Design::sources
    double value = 0;
    const Function* function = nullptr;
    std::vector<std::size_t> args = {};
  };
  std::vector<Step> steps;
  Variable type;
  std::size_t width = 1;  // columns: powers of the last step's value, or
  // orthogonal polynomials of it, by their recurrence as R has it: alpha, and norm2 from that of degree 0 on. Empty: powers.
  std::vector<double> alpha = {};
  std::vector<double> norm2 = {};

  // The values of `count` records, `width` columns behind each other. They last until the next call with this store.
  using Store = std::vector<std::vector<double>>;
  std::vector<const double*> run(std::span<const double* const> sources, std::size_t count,
                                 Store& store) const;
  bool uses(std::size_t source) const;

 private:
  std::vector<const double*> polynomials(const double* x, std::size_t count, Store& store) const;
};

// Compiles a variable. `sources` gets the names that it needs.
Computation compile(const Formula& formula, const Expr& expr, const FindVariable& find,
                    std::vector<std::string>& sources);

}  // namespace starfold::formula

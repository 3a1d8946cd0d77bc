// The columns that a formula makes of records: names and codings as in R's model.matrix, without the intercept.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "starfold/formula/terms.h"

namespace starfold::formula {

// What a name in a formula is: numbers, true and false, or one of a few levels, numbered from 1.
struct Variable {
  enum class Kind { number, truth, factor };
  Kind kind = Kind::number;
  std::vector<std::string> levels = {};  // of a factor
  std::size_t reference = 0;             // the level that contrasts leave out
  bool reference_first = false;  // where all levels have a column, that of the reference is first
  bool codes = false;            // a factor that stands for its numbers unless C() says otherwise
};

// What a name is. FormulaError when there is none: `at` is where it stands.
using FindVariable = std::function<Variable(const std::string& name, const Expr& at)>;

// Which input a column is for.
enum class Role { response, predictor, offset, time, event, group };

// A column of the design: a product of columns of variables.
struct DesignColumn {
  struct Piece {
    std::size_t variable = 0;
    std::size_t place = 0;   // the column of a variable with several, from 0
    bool indicator = false;  // 1 where the variable has this level:
    double level = 0;
  };
  std::string name;
  Role role = Role::predictor;
  std::vector<Piece> pieces;  // none: offsets, which are added up
};

struct Computation;

// How often a variable of the formula has no value, or an infinite one, though all of its columns have one.
struct DesignFlaws {
  std::vector<std::int64_t> undefined;
  std::vector<std::int64_t> infinite;
};

class Design {
 public:
  // FormulaError when the formula does not fit its variables, or makes too many columns. With `offset` there is a column of
  // offsets also where the formula has none: zeros.
  Design(const Formula& formula, const FindVariable& find, bool offset = false);
  ~Design();
  Design(Design&&) noexcept;

  // The names of columns that it needs, in the order in which `compute` takes them. A factor comes as numbers of levels.
  const std::vector<std::string>& sources() const { return sources_; }
  const std::vector<DesignColumn>& columns() const { return columns_; }
  bool intercept() const { return intercept_; }
  // By factor, as the formula writes it: the level that has no column, or of a response the one that is 0; empty where every level has
  // a column.
  const std::map<std::string, std::string>& references() const { return references_; }
  // By variable: what it is called, `log(bmi)`.
  const std::vector<std::string>& variables() const { return variables_; }

  // Values of `count` records for every column, nan where they are missing. `skipped` marks records that count for nothing; of the
  // others, those without a value are marked in `undefined` where it is given.
  void compute(std::span<const double* const> sources, std::size_t count, const char* skipped,
               std::span<double* const> to, DesignFlaws& flaws, char* undefined) const;

 private:
  friend class DesignBuilder;
  // Room for what is computed on the way, by variable.
  using Stores = std::vector<std::vector<std::vector<double>>>;
  void compute_some(std::span<const double* const> sources, std::size_t count, const char* skipped,
                    std::span<double* const> to, DesignFlaws& flaws, char* undefined,
                    Stores& stores) const;

  std::vector<std::string> sources_;
  std::vector<std::string> variables_;
  std::vector<Computation> computations_;  // by variable
  std::vector<std::size_t> offsets_;       // variables that are added up
  std::vector<DesignColumn> columns_;
  std::map<std::string, std::string> references_;
  bool intercept_ = true;
};

// How many columns a design may have.
inline constexpr std::size_t most_columns = 100'000;

}  // namespace starfold::formula

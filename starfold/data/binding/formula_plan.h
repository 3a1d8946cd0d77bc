// A formula and the columns of the data: which it needs, what they are, which input takes what it makes of them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "starfold/data/columns.h"
#include "starfold/data/source.h"
#include "starfold/formula/design.h"

namespace starfold {

using Categoricals = std::map<std::string, std::shared_ptr<const Categorical>>;

// A client as a level of the factor `site`.
struct Site {
  std::string name;         // the level
  std::string node;         // the client's own name for itself,
  std::string source = {};  // and for its table, where it is a node
  bool operator==(const Site&) const = default;
};

// What a formula says, and what must be known beside it to say the same everywhere.
struct FormulaRequest {
  std::string text = {};  // empty: there is none
  std::vector<Site> sites = {};
  // Columns of true and false, which are factors for R. None given: what all clients have as such.
  std::optional<std::set<std::string>> truths = std::nullopt;
};

struct FormulaPlan {
  FormulaRequest request;  // in one layout, without `.`
  Categoricals factors;    // columns with levels that it uses
  formula::Design design;
  bool site = false;                                       // `site` is the client, not a column
  std::map<std::string, std::vector<std::size_t>> inputs;  // by input: columns of the design

  // The columns of the data that it needs.
  std::vector<std::string> columns() const;
};

// Inputs that have columns of their own, beside the formula, and those columns.
struct OtherInputs {
  std::set<std::string> inputs;
  std::set<std::string> columns;
};

// What a formula becomes over columns that all clients have. FormulaError when the formula is wrong, RunError when it does not fit the
// program.
std::shared_ptr<const FormulaPlan> plan_formula(const ir::Program& program,
                                                const std::vector<DataSource>& sources,
                                                const FormulaRequest& request,
                                                const Categoricals& categoricals,
                                                const OtherInputs& others);

// Whether a formula has an intercept. FormulaError when it is none.
bool has_intercept(const std::string& formula);
// The same for an offset.
bool has_offset(const std::string& formula);

}  // namespace starfold

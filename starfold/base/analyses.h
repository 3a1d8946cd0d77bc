// What other software calls the analyses of the library: R, Stata, SAS, NumPy, SciPy, scikit-learn, statsmodels, lifelines.
#pragma once

#include <span>
#include <string_view>

namespace starfold {

struct Analysis {
  std::string_view name;  // as it is written there: "t.test", "LogisticRegression"
  std::string_view
      programs;  // ready-made programs that do it, the nearest first, with blanks between
  std::string_view inside;  // how a program of one's own does it; may be empty
};

// All rows.
std::span<const Analysis> analyses();

// The row of a name, written in any case, with or without a package before it and dots or underscores inside
// (`stats::t.test`, `scipy.stats.ttest_ind`, `ttest`); null when there is none.
const Analysis* find_analysis(std::string_view name);

// Whether two names are the same but for case, dots and underscores: `KMeans`, `k_means`.
bool same_analysis(std::string_view a, std::string_view b);

}  // namespace starfold

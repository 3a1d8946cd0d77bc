// Results of a run as tables and, where a picture says more, as pictures.
//
// The picture of an output is the first that fits:
//   a matrix          square, at least 2 x 2, at most 64 x 64: heat map. From -1 to 1 when it looks like a
//                     correlation matrix (symmetric, ones on the diagonal, nothing beyond 1).
//                     At least 12 rows and at most 6 columns: its columns as curves.
//   a vector (>= 2)   with an interval: dots with whiskers, at most 60 rows.
//                     at least 3 whole numbers, none negative: bars.
//                     at least 3 numbers, none negative, descending: scree plot.
//                     more than 40 numbers: a curve; else dots.
// X has an interval when there are outputs X_lower and X_upper, or X_se or se_X (then X +- 1.96 se),
// of the same shape. These companions are shown with X, not on their own.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "starfold/plan/plan.h"
#include "starfold/runtime/tensor.h"

namespace starfold::page {

using Outputs = std::map<std::string, Tensor>;

enum class PictureKind { none, dots, bars, scree, curve, curves, heat_map, correlation };
PictureKind picture_for(const Tensor& value, bool interval);

// The interval around an output, and the outputs it was made from.
struct Interval {
  Tensor lower;
  Tensor upper;
  std::vector<std::string> from;
};
std::optional<Interval> interval_of(const Outputs& outputs, const std::string& name);

// What the entries along a size variable are called: the columns of the inputs that have this size.
using AxisNames = std::map<std::string, std::vector<std::string>, std::less<>>;
AxisNames axis_names(const ir::Program& program,
                     const std::map<std::string, std::vector<std::string>>& columns);

// All outputs in the order of the program.
std::string results_html(const Plan& plan, const SourceMap& sources, const Outputs& outputs,
                         const AxisNames& axes);

}  // namespace starfold::page

// Results of a run as tables and, where a picture says more, as pictures.
//
// The picture of an output is the first that fits:
//   a matrix          square, at least 2 x 2, at most 64 x 64: heat map. From -1 to 1 when it looks like a
//                     correlation matrix (symmetric, ones on the diagonal, nothing beyond 1).
//                     At least 12 rows and at most 6 columns: its columns as curves.
//   a vector (>= 2)   with an interval: dots with whiskers, at most 60 rows.
//                     3 to 200 whole numbers, none negative: bars; a histogram over its edges where
//                     X_edges or edges is an output, ascending, with one number more.
//                     at least 3 numbers, none negative, descending: scree plot.
//                     more than 40 numbers: a curve; else dots.
// In a table of several vectors plain dots are left out: the table says as much.
#pragma once

#include <string>

#include "starfold/page/entries.h"

namespace starfold::page {

enum class PictureKind { none, dots, bars, scree, curve, curves, heat_map, correlation };
PictureKind picture_for(const Tensor& value, bool interval);

// All outputs in the order of the program.
std::string results_html(const ir::Program& program, const SourceMap& sources,
                         const Outputs& outputs, const OutputLabels& labels);

}  // namespace starfold::page

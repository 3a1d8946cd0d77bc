// Charts as inline SVG: they scale with the page, print, and follow its colours.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/page/labels.h"

namespace starfold::page {

struct Series {
  std::string name;  // plain text
  std::vector<double> values;
};

// Values over 1, 2, 3, ...; on a logarithmic scale where all are positive and span three powers of ten.
std::string line_chart(std::string_view label, std::string_view x_label,
                       const std::vector<Series>& series);

// Values over numbers of their own, ascending or descending, such as times; `steps`: constant from one to the next.
std::string curve_chart(std::string_view label, std::string_view x_label,
                        std::span<const double> at, const std::vector<Series>& series, bool steps);

// One row per value, with an interval where `lower` and `upper` are given (both of the same length).
std::string dot_chart(std::string_view label, const Labels& rows, std::span<const double> values,
                      std::span<const double> lower = {}, std::span<const double> upper = {});

// The same for ratios: by powers, with a line at 1.
std::string ratio_chart(std::string_view label, const Labels& rows, std::span<const double> values,
                        std::span<const double> lower = {}, std::span<const double> upper = {});

// Bars that stand on zero, with their names below where there is room.
std::string bar_chart(std::string_view label, const Labels& names, std::span<const double> values);

// Bars between ascending edges, of which there is one more.
std::string histogram(std::string_view label, std::span<const double> counts,
                      std::span<const double> edges);

// A square of coloured squares: warm above zero, cool below. `limit` is the value of the full colour;
// without one it is the largest magnitude.
std::string heat_map(std::string_view label, const Labels& rows, const Labels& columns,
                     std::size_t size, std::span<const double> values,
                     std::optional<double> limit = {});

}  // namespace starfold::page

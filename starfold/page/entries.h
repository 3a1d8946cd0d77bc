// The outputs of a run as people read them, in the order of the program: each with the names of its rows
// and columns, and what belongs together side by side. Reports and summaries are both made from this.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "starfold/page/labels.h"

namespace starfold::page {

using Outputs = std::map<std::string, Tensor>;

// The interval around an output, and the outputs it was made from: X_lower and X_upper, or X_se or se_X
// (then X +- 1.96 se), of the same shape.
struct Interval {
  Tensor lower;
  Tensor upper;
  std::vector<std::string> from;
};
std::optional<Interval> interval_of(const Outputs& outputs, const std::string& name);

// An output with what is known about it.
struct Entry {
  std::string name;
  const Tensor* value = nullptr;
  Type type;
  Span span;
  Labels rows;  // names along its last axis but one, or along a vector's only axis; empty: unknown
  Labels columns;  // along a matrix's last axis
  std::optional<Interval> interval;
  bool companion = false;  // it is there to make the interval of the one before
};

// Numbers that follow each other; vectors along one size that follow each other; or one other array.
// Never empty. What makes an interval stands behind the output that has it.
using Group = std::vector<Entry>;
std::vector<Group> groups_of(const ir::Program& program, const Outputs& outputs,
                             const OutputLabels& labels);

}  // namespace starfold::page

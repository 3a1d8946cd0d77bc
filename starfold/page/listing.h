// The program's text with line numbers, what folds its records marked, and the types of its names.
#pragma once

#include <string>

#include "starfold/base/source.h"
#include "starfold/plan/plan.h"

namespace starfold::page {

// A link to the line where a value was written: "12", or "stats 40" in a module.
std::string line_link(const SourceMap& sources, Span span);

// All files of a program: its own text in full, modules to be unfolded.
std::string listing(const Plan& plan, const SourceMap& sources);

// One row per name: its type, what that means in words, and the line.
std::string names_table(const Plan& plan, const SourceMap& sources, const SizeValues& sizes = {});

}  // namespace starfold::page

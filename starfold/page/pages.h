// For people: what a program would send, and what a run gave. Each page is one HTML file that needs neither
// network nor scripts.
#pragma once

#include <string>

#include "starfold/base/source.h"
#include "starfold/federation/local.h"
#include "starfold/plan/plan.h"

namespace starfold {

// The page of `explain --html`: for someone who must decide whether a program may run.
std::string explain_html(const Plan& plan, const SourceMap& sources, const std::string& title);

// The report of a run: its results, how it converged, and what each client sent.
std::string report_html(const RunReport& report, const CompiledProgram& program);

// The same in short, for a terminal: outputs as tables, traces, what each client sent, where time went.
std::string report_text(const RunReport& report, const CompiledProgram& program);

}  // namespace starfold

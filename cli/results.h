// What a run gave, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "starfold/federation/local.h"

namespace starfold::cli {

// A number; non-finite ones as the strings "nan", "inf", "-inf".
nlohmann::json number_json(double value);
// The JSON object of `run --json`.
nlohmann::json report_json(const RunReport& report);
// Outputs as readable tables, in program order, then rounds, iterations and what each client sent.
std::string report_text(const RunReport& report, const CompiledProgram& program);

// Writes outputs.json, one .npy per output, run.json and report.html into a new folder, all or
// nothing: they are written aside and moved into place. RunError when that cannot be done.
void write_results(const std::string& folder, const RunReport& report,
                   const CompiledProgram& program);

}  // namespace starfold::cli

// What a run gave, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "starfold/data/study.h"
#include "starfold/page/pages.h"

namespace starfold::cli {

// A number; non-finite ones as the strings "nan", "inf", "-inf".
nlohmann::json number_json(double value);
// The JSON object of `run --json`.
nlohmann::json report_json(const RunReport& report);

// RunError when results cannot go into this folder: it holds something else, or cannot be made. To be asked
// before a run that may take long.
void check_results_folder(const std::string& folder);

// Writes outputs.json, one .npy per output, run.json and report.html into a folder, all or nothing: they are
// written aside and moved into place. Earlier results there are replaced. RunError when that cannot be done.
void write_results(const std::string& folder, const RunReport& report,
                   const CompiledProgram& program, const Study& study);

}  // namespace starfold::cli

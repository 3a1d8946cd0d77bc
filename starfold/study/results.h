// What a run gave, for programs: JSON.
#pragma once

#include <string>

#include "starfold/study/run.h"

namespace starfold {

// The object of `run --json`, on one line.
std::string run_json(const StudyRun& run);

// The file outputs.json: every output with its shape and numbers.
std::string outputs_file(const StudyRun& run);
// The file run.json: what ran, on what, with which result of each round; no record and no path is in it.
std::string record_file(const StudyRun& run);

}  // namespace starfold

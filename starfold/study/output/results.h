// What a run gave, for programs: JSON.
#pragma once

#include <map>
#include <string>

#include "starfold/study/run.h"

namespace starfold {

// The object of `run --json`, on one line.
std::string run_json(const StudyRun& run);

// The file outputs.json: every output with its shape and numbers.
std::string outputs_file(const StudyRun& run);
// The file run.json: what ran, on what, how; and what was written beside it, by the hash of each file. No record and no
// path is in it, and of single clients' data only what the study asks for.
std::string record_file(const StudyRun& run, const std::map<std::string, std::string>& hashes);

}  // namespace starfold

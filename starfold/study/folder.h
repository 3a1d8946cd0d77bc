// The folder of a run's results: there whole or not at all.
#pragma once

#include <string>

#include "starfold/study/run.h"

namespace starfold {

// RunError when results cannot go into this folder: it holds something else, or cannot be made. To be asked
// before a run that may take long.
void check_results_folder(const std::string& folder);

// Writes outputs.json, one .npy per output, run.json and report.html into a folder, all or nothing: they are
// written aside and moved into place. Earlier results there are replaced. RunError when that cannot be done.
void write_results(const std::string& folder, const StudyRun& run);

}  // namespace starfold

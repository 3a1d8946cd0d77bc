// The folder of a run's results: there whole or not at all, in the place of nothing but earlier results.
#pragma once

#include <string>

#include "starfold/study/run.h"

namespace starfold {

// RunError when the results of a study cannot go into its folder: it holds something else or one of the files that
// the run reads, or cannot be made. To be asked before a run that may take long. Also removes what runs that were
// killed have left beside it.
void check_results_folder(const Study& study, const CompiledProgram& program);

// Writes outputs.json, one .npy per output, report.html and run.json into the folder of the study, all or nothing: they
// are written aside and moved into place. Earlier results there are replaced if they are as they were written; their
// permissions stay. RunError when that cannot be done.
void write_results(const StudyRun& run);

}  // namespace starfold

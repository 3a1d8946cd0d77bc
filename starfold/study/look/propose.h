// A study to start from: written for a program and data that were only looked at.
#pragma once

#include <string>
#include <vector>

#include "starfold/ir/ir.h"

namespace starfold {

struct StudyProposal {
  std::string program;            // as the study will name it
  std::vector<std::string> data;  // NAME=PATH, or a path whose file name names the client
  std::string out;                // where the study will be written; empty: where we are
};

// The text of a commented study that runs as it is, but for shared inputs that need a value. StudyError when
// the names of clients are wrong, RunError when data cannot be opened.
std::string propose_study(const StudyProposal& proposal, const ir::Program& program);

}  // namespace starfold

// A study whose clients are nodes: each reads its own records, decides for itself, and sends what the plan says.
#pragma once

#include "starfold/node/description.h"
#include "starfold/study/run.h"

namespace starfold {

// What the nodes of a study say of themselves, in the order of its clients; each has the source that the study names.
// ClientRefused, ClientsAway and RunError as below.
std::vector<NodeDescription> describe_nodes(const Study& study,
                                            const std::atomic<bool>* stop = nullptr);

// Runs it, or goes on with it from its checkpoint. StudyError when the study does not fit the program, ClientRefused when a node
// says no, ClientsAway when nodes do not answer (the run can then be gone on with), RunError otherwise.
RunReport run_over_nodes(const Study& study, const std::shared_ptr<const CompiledProgram>& program,
                         const Settings& settings, const RunControl& control);

}  // namespace starfold

// What runs have in common, whoever carries their messages.
#pragma once

#include "module.h"

namespace starfold::python {

// What a run gave; everything that is shown of it is made from this.
struct Run {
  StudyRun run;
};

using GivenByName = std::map<std::string, std::shared_ptr<const Table>>;
using Names = std::map<std::string, std::vector<std::string>>;

// The study that the arguments of a run from Python say. Clients are pairs of a name and a path, a query, or data, which becomes
// `given`. What is wrong is raised.
Study study_of(const Program& program, const nb::list& clients, const Names& columns,
               const nb::dict& values, const Names& levels, const nb::dict& options,
               GivenByName& given);

// The program as the study needs it: planned for an exact run, without an intercept where the formula has none, with a weight or an
// offset where the study gives one or clients bring one among their arrays.
std::shared_ptr<const CompiledProgram> following(const Program& program, const Study& study,
                                                 const GivenByName& given = {});

}  // namespace starfold::python

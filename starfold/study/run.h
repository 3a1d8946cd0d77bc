// A study from its file to its results: the one way in which a program meets data, for the command, for
// bindings to other languages and for tests.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "starfold/federation/local.h"
#include "starfold/runtime/demand.h"
#include "starfold/study/study.h"

namespace starfold {

// Everything a run knows. What is written, printed or shown of it is made from this value alone.
struct StudyRun {
  Study study;
  std::shared_ptr<const CompiledProgram> program;
  RunReport report;  // results, traces, clients with dropped records, columns, sizes, times
  std::map<std::string, std::string> versions;  // of what computed it: starfold, duckdb
};

// How a run is watched and ended from outside.
struct RunControl {
  bool reference = false;  // evaluate on the pooled records instead, for comparison
  std::function<void(const Progress&)> watch = nullptr;  // called after each round
  // Over nodes: who has not answered yet, now and then.
  std::function<void(const std::vector<std::string>&)> awaited = nullptr;
  // By client: a table that the program we are part of hands over, in the place of a file.
  std::map<std::string, std::shared_ptr<const Table>> given = {};
  bool resume = false;  // over nodes: go on with the unfinished run
  std::function<void()> loaded =
      nullptr;  // called when the data is there and the first round may start
  const std::atomic<bool>* stop =
      nullptr;  // set to end the run: between blocks of records here, after the round over nodes
};

// Says in a report what a study says of its run: title, how missing values were treated, when it ended, what computed it.
void complete_report(StudyRun& run);

// The error with the names of columns instead of numbers.
RunError named(const Unmet& unmet, const ir::Program& program,
               const std::map<std::string, std::vector<std::string>>& columns);

// Runs a study's program, which must have no errors, over its data. StudyError when the study does not fit the
// program, RunError when data, numerics or a client stop it. Compiling was timed by who did it.
StudyRun run_study(Study study, std::shared_ptr<const CompiledProgram> program,
                   const RunControl& control = {});

}  // namespace starfold

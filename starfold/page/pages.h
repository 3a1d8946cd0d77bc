// For people: what a program would send, and what a run gave. Each page is one HTML file that needs neither
// network nor scripts.
#pragma once

#include <string>

#include "starfold/base/source.h"
#include "starfold/federation/local.h"
#include "starfold/plan/plan.h"

namespace starfold {

// What a study says of its data before anything runs.
struct StudyFacts {
  struct Client {
    std::string name;
    std::string data;   // the name of a file; may be empty
    std::string query;  // may be empty
    bool node = false;  // it has its own data, and decides what may be read
  };
  std::string file;  // the study's own name
  std::vector<Client> clients;
  std::string simulation;  // instead of clients
  std::string formula;     // empty: inputs name their columns
  std::map<std::string, std::vector<std::string>>
      columns;                                    // by input; without one that takes an array
  std::map<std::string, std::string> references;  // by column with levels: the one without a column
  SizeValues sizes;
  std::optional<secure::Group>
      group;            // where states are masked; keys are those that the study names
  std::string missing;  // what happens to records with a missing value: "error", "drop", "nan"
  std::optional<privacy::Promise> privacy = {};
};

// The page of `explain --html`: for someone who must decide whether a program may run, or a study.
std::string explain_html(const Plan& plan, const SourceMap& sources, const std::string& title,
                         const StudyFacts* study = nullptr);

// The report of a run: its results, how it converged, and what each client sent.
std::string report_html(const RunReport& report, const CompiledProgram& program);

// The same in short, for a terminal: outputs as tables, traces, what each client sent, where time went.
std::string report_text(const RunReport& report, const CompiledProgram& program);

// What a condition that does not hold means, with the names of the entries it fails for.
std::string unmet_text(const ir::Program& program, std::size_t place,
                       const std::vector<std::size_t>& entries,
                       const std::map<std::string, std::vector<std::string>>& columns,
                       const SizeValues& sizes = {});

// The expectations of a program that did not hold in a run, one sentence each.
std::vector<std::string> warnings(const RunReport& report, const ir::Program& program);

}  // namespace starfold

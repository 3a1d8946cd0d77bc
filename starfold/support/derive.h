// The program that tells on how many records each number of a round's message rests, derived from the round.
#pragma once

#include <string>
#include <vector>

#include "starfold/plan/plan.h"
#include "starfold/support/weights.h"

namespace starfold::support {

// Terms that some numbers of a message rest on: those of one part of one merge, cell by cell.
struct Basis {
  std::size_t merge = 0;
  std::size_t part = 0;
  Rest rest;          // what the rule says of it
  bool plain = true;  // all terms as they are; otherwise what conditions take in or leave out
  bool left_out = false;
  std::vector<ir::NodeId> conditions;  // in the plan's program
  std::size_t terms = 0;               // which of SupportProgram::terms
};

struct SupportProgram {
  ir::Program program;       // without outputs yet
  std::vector<Terms> terms;  // distinct ones
  std::vector<Basis> bases;
};

// The names of its shared inputs: a value that the round receives, and a part of the client's own state.
std::string received_name(ir::NodeId id);
std::string state_name(std::size_t merge, std::size_t part);

// Whether a merge folds values per client: each rests on all records of its client.
bool is_per_client(const ir::Program& program, const Merge& merge);

// Why there is none for this merge; empty when there is.
std::string underivable(const Plan& plan, const Merge& merge);

// Of a round whose merges are all derivable.
SupportProgram derive_support(const Plan& plan, const Round& round);

}  // namespace starfold::support

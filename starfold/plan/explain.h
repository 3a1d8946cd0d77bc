// A plan for its readers: what is sent to clients, what leaves them, and what becomes of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "starfold/base/source.h"
#include "starfold/plan/plan.h"

namespace starfold {

// Whether a program has words that make its answer depend on how records are split over clients: each client, private
// state, batches.
bool is_split(const ir::Program& program);
// The array `rounds` of `check --json`.
nlohmann::json exposure_json(const Plan& plan, const SourceMap& sources);
// The exposure table of `check`.
std::string exposure_text(const Plan& plan, const SourceMap& sources);

// The plan with names v1, v2, ... for long or repeated expressions that have none, such as parts of derivatives.
// Only the names differ: it is what explain and the pages show.
Plan readable(Plan plan);

// Encoders, merges and decoders of each round.
std::string explain_text(const Plan& plan);
nlohmann::json explain_json(const Plan& plan, const SourceMap& sources);
// A graph in the language of Graphviz.
std::string explain_dot(const Plan& plan);

// How many numbers a client sends for one merged value, or in one round; nullopt when that is beyond all bounds.
// What is announced here is what numbers_in (merge/monoid.h) counts in the message.
std::optional<Size> state_size(const Plan& plan, const Merge& merge);
// The bytes of one merged value: eight for each number, more for those that travel as integers.
std::optional<Size> state_bytes(const Plan& plan, const Merge& merge);
std::optional<Size> message_size(const Plan& plan, const Round& round);
// How many numbers a client sends in a round, as a polynomial in the sizes.
std::string message_numbers(const Plan& plan, const Round& round);

// One line of local work or of the decoder: a name (may be empty), an expression and its type.
struct Line {
  std::string name;
  std::string expression;
  std::string type;
};
// The named steps of a list of nodes, in order; what has no name appears inside the others.
std::vector<Line> named_lines(const Plan& plan, const std::vector<ir::NodeId>& nodes);

// What a block computes at each client on its own, as lines of text.
std::string block_text(const Plan& plan, ir::NodeId block, std::size_t indent);

// The named values that are merged in a round.
std::vector<Line> merged_lines(const Plan& plan, const Round& round);

// What a loop does at the end of each iteration: new states, traces, the condition that ends it.
std::vector<Line> loop_lines(const Plan& plan, ir::LoopId loop);

}  // namespace starfold

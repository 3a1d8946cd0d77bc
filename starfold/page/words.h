// A plan and its run in plain words. All results are HTML.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "starfold/federation/local.h"
#include "starfold/plan/plan.h"

namespace starfold::page {

// A round and the loops it runs in, outermost first.
struct Place {
  const Round* round = nullptr;
  std::vector<ir::LoopId> loops;
};
std::vector<Place> places_of(const Plan& plan);

// The largest number of iterations of a loop, when it is a number or a size.
std::optional<Size> most_iterations(const Plan& plan, ir::LoopId loop);
// How often a round runs at most; nullopt when that is a value of the run.
std::optional<Size> most_runs(const Plan& plan, const Place& place);

// "1 number", "p² numbers"; with sizes known, "16 numbers".
std::string numbers(const std::optional<Size>& count, const SizeValues& sizes = {});
// "one number", "p numbers", "p × q numbers per record".
std::string amount(const Type& type, const SizeValues& sizes = {});
// "once", "up to 25 times".
std::string how_often(const Plan& plan, const Place& place);
// The first few of many, then how many are left; items are HTML.
std::string listed_some(const std::vector<std::string>& items, std::size_t most = 6);
// What a size variable stands for: "the number of columns of x".
std::string size_meaning(const ir::Program& program, const ir::SizeVariable& size);

// What the values that leave show of single records: one sentence, or that and which ones.
std::string shows_in_short(const Plan& plan);
std::string shows_sentence(const Plan& plan);
// The same for each value, with the reason.
std::string shows_table(const Plan& plan);

// What to know about a simulation whose clients were packed; plain text.
std::string packed_note(const RunReport& report);

// What a server sees where states are masked, and what it does not: plain text. A sum is over `inputs` of `clients` or more.
std::string masking_words(std::size_t clients, std::uint32_t inputs);
// The same of a run, with whose word the clients' keys rest on.
std::string masked_note(const RunReport& report);

// How long a run took, with compiling and reading data where that was measured; and the parts that took more
// than a millisecond: "reading data 5 ms, clients 6 ms".
double whole_time(const RunReport& report);
std::string time_parts(const RunReport& report);

}  // namespace starfold::page

// What a merged value shows of the records it was folded from, as far as the program proves it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "starfold/plan/plan.h"

namespace starfold {

// From the least to the most. Each claims only what holds for every data set: whether a total of few
// records gives them away is a matter of the data.
enum class Shows {
  total,   // every record enters with the same weight
  terms,   // every record adds a term of its own, which may be 0 for all but a few
  group,   // the data decide which records count; a group may be a single record
  client,  // there is one value per client, so each message is a client's own
  single,  // the value, or a part of the message, is decided by a single record
};
// One word for programs: "total", "terms", "group", "client", "single".
std::string_view to_string(Shows shows);
// A few for people: "all records alike", ...
std::string_view plain_shows(Shows shows);

struct Disclosure {
  Shows shows = Shows::single;
  std::string reason;  // a clause about the value, program text in backquotes
};

// For every round, and in it for every merge, in the order of the plan.
std::vector<std::vector<Disclosure>> disclosures(const Plan& plan);

}  // namespace starfold

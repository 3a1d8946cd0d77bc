// The states of a round as integers that add up, so that they can be masked: which of them can be, how wide they are, and both ways.
// Exact: what comes back is the sum of what went in, rounded once where it is no integer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "starfold/base/error.h"
#include "starfold/plan/plan.h"
#include "starfold/secure/words.h"

namespace starfold::secure {

// A fold that masks cannot hide.
struct Unmaskable {
  ir::NodeId fold = ir::no_node;
  std::string words;  // what is wrong, and what would do instead
};
// The first fold of a plan whose merge does not add up; none when all do.
std::optional<Unmaskable> unmaskable(const Plan& plan);

// A run cannot be masked: the fold that is in the way, or the clients. It ends before the first round.
class NotMaskable : public RunError {
 public:
  using RunError::RunError;
};

// What states hold.
enum class Numbers {
  any,    // doubles: sums of them are exact, and rounded once
  whole,  // integers below 2^53 whose sums are as well, as on the grids of a private run
};

// What a round sends, for these sizes. The plan has nothing that is unmaskable.
Layout masked_layout(const Plan& plan, const Round& round, const SizeValues& sizes,
                     Numbers numbers = Numbers::any);

// A client's states as integers. RunError, without any number of them, when one is not of its kind.
Words to_words(const Plan& plan, const Round& round, const std::vector<MergeState>& states,
               Numbers numbers = Numbers::any);

// The merged state that summed integers stand for.
std::vector<MergeState> from_words(const Plan& plan, const Round& round, const SizeValues& sizes,
                                   const Words& words, Numbers numbers = Numbers::any);

}  // namespace starfold::secure

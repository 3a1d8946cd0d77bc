// Outputs that are linear in what one round merges: how much one unit of privacy can change them. Noise on outputs has no other
// place: whatever else is computed from merged values must not be seen before noise was added to it.
#pragma once

#include <string>
#include <vector>

#include "starfold/privacy/terms.h"

namespace starfold::privacy {

// What is known of a merged value, in real units.
struct MergedChange {
  std::int64_t numbers = 0;
  double l1 = 0;  // by one unit of privacy
  double l2 = 0;
  double most = 0;  // the largest magnitude of a number
};

struct OutputChange {
  std::string name;
  std::int64_t numbers = 0;
  double l1 = 0;  // by one unit of privacy, with the rounding of what is computed
  double l2 = 0;
  double most = 0;
  Span where;
};

// Of every output. NotPrivate, with the place, when a program has other rounds, loops, traces of merged values, or outputs that are not
// linear in them.
std::vector<OutputChange> output_changes(const std::shared_ptr<const Plan>& plan,
                                         const SizeValues& sizes, const Terms& terms,
                                         const std::vector<MergedChange>& merged);

}  // namespace starfold::privacy

// Sensitivities for their readers: `check --privacy`, and the diagnostics of what cannot be released.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "starfold/diag/diagnostic.h"
#include "starfold/privacy/sensitivity.h"

namespace starfold::privacy {

// One error for each value that has no bound, in the order of the rounds; the same value is told once.
void report_unbounded(const Plan& plan, const Sensitivities& found, Diagnostics& into);

// Adds to the rounds of exposure_json what is known of each merge and round.
void add_sensitivities(nlohmann::json& rounds, const Plan& plan, const SourceMap& sources,
                       const Sensitivities& found);

// A table per round: how much one unit of privacy can change each merged value and all of them, and the lines whose clips say
// so.
std::string sensitivity_text(const Plan& plan, const SourceMap& sources,
                             const Sensitivities& found);

// A bound as a number of twelve digits, or as a string with sizes in it.
nlohmann::json to_json(const Bound& bound);
nlohmann::json to_json(const Norms& norms);

}  // namespace starfold::privacy

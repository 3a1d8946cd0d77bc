// What a run promises about privacy, in words for someone who must answer for it.
#pragma once

#include <string>

#include "starfold/privacy/account.h"

namespace starfold::page {

// Before a run: what would be guaranteed.
std::string promise_section(const privacy::Promise& promise);
// After it: what was, with the noise of each round.
std::string privacy_section(const privacy::Report& report);
// In one line: "private: epsilon 1 at delta 1e-06 for one record, ...".
std::string privacy_line(const privacy::Report& report);

}  // namespace starfold::page

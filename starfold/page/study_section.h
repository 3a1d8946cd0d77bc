// What a study adds to the page of its program.
#pragma once

#include <string>

#include "starfold/page/pages.h"

namespace starfold::page {

// Its clients and what of their data is used, and the size of each message now that sizes are known. HTML.
std::string study_section(const Plan& plan, const StudyFacts& study);

}  // namespace starfold::page

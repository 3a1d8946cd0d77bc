// What a study says of its data before anything runs: only the heads of tables are read for it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "starfold/page/pages.h"
#include "starfold/study/study.h"

namespace starfold {

// StudyError when the study does not fit the program, RunError when the data does not.
StudyFacts study_facts(const Study& study, const ir::Program& program);

// The same for people and for tools, with the size of each message of the plan.
std::string facts_text(const StudyFacts& facts, const Plan& plan);
nlohmann::json facts_json(const StudyFacts& facts, const Plan& plan);

}  // namespace starfold

// What `check` and `explain` say of a program or a study, and what went wrong, as text for people and JSON for tools.
#pragma once

#include <string>
#include <vector>

#include "starfold/federation/program.h"
#include "starfold/page/pages.h"
#include "starfold/privacy/sensitivity.h"
#include "starfold/study/output/trouble.h"
#include "starfold/study/study.h"

namespace starfold {

// What `check --privacy` finds: how much one unit of privacy can change each release, and what cannot be released.
struct PrivacyCheck {
  privacy::Sensitivities found;
  std::vector<std::string> assumed;  // shared inputs whose defaults were taken: "c = 1"
  Diagnostics refusals;
};
// Sizes and shared inputs that a study or the command line gives, and sizes that its data says. StudyError when the program does
// not have what is given.
privacy::Known known_before_run(const Study& study, const ir::Program& program,
                                const StudyFacts* facts = nullptr);
// The program is planned with `additive`, and has no errors; sizes and values are those that a study or options give.
PrivacyCheck check_privacy(const CompiledProgram& program, privacy::Unit unit,
                           privacy::Neighbours neighbours, const privacy::Known& given);

// The type of every name and the exposure table; then what a study adds, and privacy. The program has no errors.
std::string check_text(const CompiledProgram& program, const StudyFacts* study = nullptr,
                       const PrivacyCheck* privacy = nullptr);
// The object of `check --json`, on one line; also for a program with errors. A study is under the key `study`.
std::string check_json(const CompiledProgram& program, const StudyFacts* study = nullptr,
                       const PrivacyCheck* privacy = nullptr);

// The same for `explain`: encoders, merges and decoders of each round.
std::string explain_report(const CompiledProgram& program, const StudyFacts* study = nullptr);
std::string explain_report_json(const CompiledProgram& program, const StudyFacts* study = nullptr);

// The syntax tree ("ast"), the typed IR, the plan or the engine's block programs as text; empty where errors keep the
// program from getting there. Throws RunError where the blocks need sizes that nobody gave.
std::string intermediate_form(const std::string& form, const CompiledProgram& program);

// {"ok": false, "diagnostics": [...]}, on one line.
std::string diagnostics_json(const Compilation& compilation);

// Trouble with its line of the program where `sources` has it; the JSON is {"ok": false, "error": ...}, on one line.
std::string trouble_text(const Trouble& trouble, const SourceMap* sources = nullptr);
std::string trouble_json(const Trouble& trouble, const SourceMap* sources = nullptr);

}  // namespace starfold

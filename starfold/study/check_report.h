// What `check` and `explain` say of a program or a study, and what went wrong, as text for people and JSON for tools.
#pragma once

#include <string>

#include "starfold/federation/program.h"
#include "starfold/page/pages.h"
#include "starfold/study/trouble.h"

namespace starfold {

// The type of every name and the exposure table; then what a study adds. The program has no errors.
std::string check_text(const CompiledProgram& program, const StudyFacts* study = nullptr);
// The object of `check --json`, on one line; also for a program with errors. A study is under the key `study`.
std::string check_json(const CompiledProgram& program, const StudyFacts* study = nullptr);

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

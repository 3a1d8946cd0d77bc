// What `check` says of a program, and what went wrong, as text for people and JSON for tools.
#pragma once

#include <string>

#include "starfold/federation/program.h"
#include "starfold/study/trouble.h"

namespace starfold {

// The type of every name and the exposure table. The program has no errors.
std::string check_text(const CompiledProgram& program);
// The object of `check --json`, on one line; also for a program with errors.
std::string check_json(const CompiledProgram& program);

// {"ok": false, "diagnostics": [...]}, on one line.
std::string diagnostics_json(const Compilation& compilation);

// Trouble with its line of the program where `sources` has it; the JSON is {"ok": false, "error": ...}, on one line.
std::string trouble_text(const Trouble& trouble, const SourceMap* sources = nullptr);
std::string trouble_json(const Trouble& trouble, const SourceMap* sources = nullptr);

}  // namespace starfold

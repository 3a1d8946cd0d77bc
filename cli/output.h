// What several subcommands say: results on standard output, everything else on standard error.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "starfold/federation/program.h"
#include "starfold/study/output/trouble.h"

namespace starfold {
struct Study;
}

namespace starfold::cli {

// On standard output; whether it arrived is asked once, at the end.
void say(std::string_view text);
// On standard error; lost where no one listens.
void complain(std::string_view text);

// Tells what went wrong, with its place in the program where `sources` are given; with `json` also as the one
// object on standard output. The exit code.
int tell(const Trouble& trouble, bool json, const SourceMap* sources = nullptr);

// Diagnostics for people.
void print_diagnostics(const Diagnostics& diagnostics, const SourceMap& sources);

// Opens a program (see open_program) and prints its diagnostics; with `json` errors also become the one
// object on standard output. A program with errors has no plan.
std::shared_ptr<const CompiledProgram> load_program(const Study& study, bool json);

}  // namespace starfold::cli

// Programs by the names that people give them: a file, standard input, or one that comes with Starfold.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/federation/program.h"

namespace starfold {

// Ready-made programs have names that begin with this in the embedded library.
inline constexpr std::string_view library_programs = "programs/";

// The names of the ready-made programs.
std::vector<std::string> library_program_names();

// Whether the model that a program fits has an intercept: formulas say so, and the module `model` follows.
enum class Intercept { usual, none };

struct Study;

// Finds a program and compiles it, with modules from beside it. StudyError when there is none of that name;
// mistakes in it are in its diagnostics.
std::shared_ptr<const CompiledProgram> open_program(const std::string& name,
                                                    ProgramOptions options = {},
                                                    Intercept intercept = Intercept::usual);
// The program of a study, with an intercept unless its formula has none. UsageError also when the formula is none.
std::shared_ptr<const CompiledProgram> open_program(const Study& study,
                                                    ProgramOptions options = {});
// The same for a text that was read already.
std::shared_ptr<const CompiledProgram> open_program(const Study& study, ProgramText text);

}  // namespace starfold

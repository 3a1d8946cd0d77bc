// Programs by the names that people give them: a file, standard input, or one that comes with Starfold.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/federation/program.h"

namespace starfold {

// Ready-made programs have names that begin with this in the embedded library.
inline constexpr std::string_view library_programs = "programs/";

// The names of the ready-made programs.
std::vector<std::string> library_program_names();

// What a message says of a name that no ready-made program has: "did you mean linear?"
std::string near_programs(const std::string& name);

// Whether the model that a program fits has an intercept: formulas say so, and the module `model` follows.
enum class Intercept { usual, none };

struct Study;

// Finds a program and compiles it, with modules from beside it. StudyError when there is none of that name;
// mistakes in it are in its diagnostics. Ready-made programs have inputs that may be left out, such as a weight: `given` are those
// that are not, and the lines that say `# with NAME: ...` become what they say.
std::shared_ptr<const CompiledProgram> open_program(const std::string& name,
                                                    ProgramOptions options = {},
                                                    Intercept intercept = Intercept::usual,
                                                    const std::set<std::string>& given = {});
// The program of a study, with an intercept unless its formula has none. UsageError also when the formula is none.
std::shared_ptr<const CompiledProgram> open_program(const Study& study,
                                                    ProgramOptions options = {});
// The same for a text that was read already. `arrays` are inputs that clients bring by name.
std::shared_ptr<const CompiledProgram> open_program(const Study& study, ProgramText text,
                                                    const std::set<std::string>& arrays = {});
// Whether a text has an input of this name that may be left out.
bool has_optional_input(std::string_view text, const std::string& name);

}  // namespace starfold

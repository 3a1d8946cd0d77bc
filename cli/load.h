// What several subcommands do first and last: read a program, say what went wrong.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "starfold/base/error.h"
#include "starfold/federation/program.h"

namespace starfold::cli {

// Ready-made programs have names that begin with this in the embedded library.
inline constexpr std::string_view library_programs = "programs/";

// A program as the user named it: a file, or a program of the library; nullopt after a message.
struct NamedText {
  std::string name;
  std::string text;
};
std::optional<NamedText> find_program(const std::string& name);

// The text of a program file, `-` for standard input; nullopt after a message on standard error. Of a
// file that is too large for a program no more is read than shows it.
std::optional<std::string> read_text(const std::string& path);

// Replaces a file in one step, so that nobody ever sees half of it; false after a message.
bool replace_text(const std::string& path, std::string_view text);

// Diagnostics for people, on standard error.
void print_diagnostics(const Diagnostics& diagnostics, const SourceMap& sources);

// Reads and compiles a program file (or a library program by name) and prints its diagnostics to
// standard error; with `json` errors also become the one JSON object on standard output. Null when the
// file cannot be read; a program with errors has no plan.
std::shared_ptr<const CompiledProgram> load_program(const std::string& file, bool json);

// A failed run: the message and the place in the program, if it has one.
void print_run_error(const RunError& error, const SourceMap& sources, bool json);

}  // namespace starfold::cli

// What every command needs of files and of the terminal.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "starfold/base/source.h"
#include "starfold/diag/diagnostic.h"

namespace starfold::cli {

// The text of a program file; `-` is standard input. Says why there is none.
// Of a file that is too large for a program no more is read than shows it.
std::optional<std::string> read_program(const std::string& path);

// Replaces a file in one step, so that nobody ever sees half of it. Says why it cannot.
bool replace_file(const std::string& path, std::string_view text);

// Standard output and standard error. A reader that goes away is not a mistake.
void print(std::string_view text);
void print_error(std::string_view text);
// "starfold: ..." on standard error.
void complain(std::string_view message);
// Writes out what was printed; false when standard output cannot take it.
bool finish_output();

// Diagnostics for people on standard error, in colour where that is a terminal.
void print_diagnostics(const Diagnostics& diagnostics, const SourceMap& sources);

// The name shown for a program file in messages.
std::string shown_name(const std::string& path);

}  // namespace starfold::cli

// Files that people name: read with an end, replaced in one step.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace starfold {

// The text of a file, `-` for standard input; StudyError with the reason when it cannot be read. Of a file
// with more than `most` bytes no more is read than shows it.
std::string read_text(const std::string& path, std::size_t most);

// Replaces an existing file in one step, so that nobody ever sees half of it. Its permissions stay.
// StudyError with the reason when that cannot be done.
void replace_text(const std::string& path, std::string_view text);

}  // namespace starfold

// The levels of columns, asked of all clients of a study and written into it.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "starfold/study/study.h"

namespace starfold {

struct ColumnLevels {
  std::string column;
  std::vector<std::string> levels;        // of all clients together, in order
  bool declared = false;                  // the study has levels for it already;
  std::vector<std::string> lacking = {};  // of which these are not among them
};

// Asks for these columns, or, where none is named, for those of text that the study uses and has no levels for; of a study
// that names no columns, for all text that all clients have. StudyError when there is nothing to ask for, RunError when a client
// cannot or does not tell.
std::vector<ColumnLevels> find_levels(const Study& study, const std::vector<std::string>& columns,
                                      const std::atomic<bool>* stop = nullptr);

// The sections that declare them: [categorical.sex] levels = ["f", "m"].
std::string levels_sections(const std::vector<ColumnLevels>& found);

// The text of a study with these sections. StudyError when it would not be a study any more.
std::string with_levels(const std::string& text, const std::string& file,
                        const std::vector<ColumnLevels>& found);

// Levels in their order: numbers by value, others by their letters.
std::vector<std::string> in_order(const std::vector<std::string>& levels);

}  // namespace starfold

// Files of text as tables that SQL can read, by the same reader as everywhere. Private to starfold/data.
#pragma once

#include "starfold/data/duckdb/database.h"
#include "starfold/data/text/text_table.h"

namespace starfold {

// Registers a function of this name without arguments whose result is the file. What goes wrong while it is
// read is told as a DuckdbError whose text has text_failure in front of our own words.
void add_text_function(const Database& database, const std::string& name, TextSource source);

inline constexpr std::string_view text_failure = "starfold cannot read: ";

}  // namespace starfold

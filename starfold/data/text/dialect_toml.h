// How files are written, as studies and node files say it.
#pragma once

#include "starfold/data/text/dialect.h"
#include "starfold/toml/reader.h"

namespace starfold {

// Changes a dialect by the keys of a section that speak of it. UsageError, with the place, where they are wrong.
void read_dialect(const TomlReader& reader, const toml::table& section, const std::string& where,
                  Dialect& dialect);

// These keys and those that speak of dialects.
std::vector<std::string> with_dialect_keys(std::vector<std::string> keys);

}  // namespace starfold

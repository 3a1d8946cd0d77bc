// Texts as TOML writes them. Private to starfold/study.
#pragma once

#include <string>
#include <vector>

namespace starfold {

std::string toml_text(const std::string& text);
// A key, in quotes only where it needs them.
std::string toml_key(const std::string& text);
std::string toml_list(const std::vector<std::string>& texts);

}  // namespace starfold

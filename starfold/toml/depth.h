// How deep a TOML text goes. Private to starfold/data.
#pragma once

#include <string_view>

namespace starfold {

// The longest chain of points in one key, a.b.c: two. Whoever parses TOML makes a table in a table for each, and
// calls itself for each later.
std::size_t key_depth(std::string_view toml);

}  // namespace starfold

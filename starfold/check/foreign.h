// What people type who come from R, NumPy or Stan, and how it is written here.
#pragma once

#include <string>
#include <string_view>

namespace starfold {

// What to write for a function of other languages; empty when it is not a known one.
std::string foreign_function_help(std::string_view name);

// The same for one that is written with a package, np.log10, or whose name has a dot, t.test.
std::string foreign_member_help(std::string_view module, std::string_view name);

// What to write for a word that is a value elsewhere; empty when it is not a known one.
std::string_view foreign_value_help(std::string_view name);

}  // namespace starfold

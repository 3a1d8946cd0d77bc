#pragma once

#include <string_view>

namespace starfold {

// The version of this library, as in "0.1.0".
std::string_view version();

}  // namespace starfold

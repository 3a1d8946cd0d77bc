// "Did you mean ...?"
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace starfold {

// The candidate nearest to what was written, or an empty string when none is near.
std::string nearest(std::string_view written, std::span<const std::string> candidates);

}  // namespace starfold

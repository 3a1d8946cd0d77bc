#pragma once

#include <string>

namespace starfold {

// RunError with the reason when there is no such file, or it cannot be opened.
void require_readable(const std::string& path);

}  // namespace starfold

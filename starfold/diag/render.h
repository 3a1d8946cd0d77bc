// Diagnostics as text for people and as JSON for tools.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "starfold/diag/diagnostic.h"

namespace starfold {

// The diagnostic with its source line, the exact span underlined, reason and help.
std::string render_text(const Diagnostic& diagnostic, const SourceMap& sources, bool color = false);
// All diagnostics, one after the other.
std::string render_text(const Diagnostics& diagnostics, const SourceMap& sources,
                        bool color = false);
// The array `diagnostics` of `check --json`.
nlohmann::json render_json(const Diagnostics& diagnostics, const SourceMap& sources);

}  // namespace starfold

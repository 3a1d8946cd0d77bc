// The subcommands of `starfold node` that take more than reading files.
#pragma once

#include <string>

#include "cli/commands.h"

namespace starfold::cli {

int node_serve(const std::string& file);
int node_try(const std::string& file, const std::string& study);

}  // namespace starfold::cli

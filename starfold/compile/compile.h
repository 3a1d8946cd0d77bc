// From text to typed IR, with everything that was said on the way.
#pragma once

#include <string>

#include "starfold/base/source.h"
#include "starfold/check/check.h"
#include "starfold/diag/diagnostic.h"
#include "starfold/ir/ir.h"

namespace starfold {

struct Compilation {
  SourceMap sources;
  Diagnostics diagnostics;
  ir::Program program;

  bool ok() const { return !diagnostics.has_errors(); }
};

// Parses and checks one program and writes out its derivatives. Never throws on input; mistakes are in `diagnostics`.
Compilation compile(std::string name, std::string text, const CheckOptions& options = {});

// Reads modules from files beside the program (`stats.fold` for `import stats`).
ModuleLoader modules_beside(const std::string& program_path);

}  // namespace starfold

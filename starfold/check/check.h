// Names and types: a syntax tree in, typed IR out, functions inlined.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "starfold/base/source.h"
#include "starfold/diag/diagnostic.h"
#include "starfold/ir/ir.h"
#include "starfold/ops/standard.h"
#include "starfold/syntax/ast.h"

namespace starfold {

// The name to show and the text of a module, or nullopt when there is none.
using ModuleLoader =
    std::function<std::optional<std::pair<std::string, std::string>>(std::string_view module)>;

struct CheckOptions {
  bool base = false;  // also reject what lies outside the paper's base signature
  const Signature* signature = &standard_signature();
  ModuleLoader load;  // where modules come from; the embedded library is asked when it has none
};

// The typed program. Mistakes are reported; with errors the result holds what could be typed.
ir::Program check(SourceMap& sources, const ast::File& file, const CheckOptions& options,
                  Diagnostics& diagnostics);

}  // namespace starfold

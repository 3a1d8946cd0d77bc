// A program as both sides of a federation compile it: from text alone.
#pragma once

#include <memory>
#include <string>

#include "starfold/compile/compile.h"
#include "starfold/federation/message.h"
#include "starfold/ops/standard.h"
#include "starfold/plan/plan.h"

namespace starfold {

// A compiled program with its plan and the plan's hash.
struct CompiledProgram {
  ProgramText text;
  Compilation compilation;
  std::shared_ptr<const Plan> plan;  // null when the program has errors
  std::string hash;
  Planning planning;  // how it was planned
};

struct ProgramOptions {
  const Signature* signature = &standard_signature();
  Planning planning;
  bool base = false;
  ModuleLoader load;  // where modules are looked for that do not come with the text
};

// Compiles text and plans it. Errors are in the compilation's diagnostics. Modules that `load` finds
// become part of the text, so that they travel with it.
std::shared_ptr<const CompiledProgram> compile_program(ProgramText text,
                                                       const ProgramOptions& options = {});

}  // namespace starfold

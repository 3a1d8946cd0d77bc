// Laws of evaluation: however a program is cut, carried and optimized, its answer is the definition's.
#include <gtest/gtest.h>

#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

// The answer of a federation is the answer on the virtual global tensors.
Verdict engine_equals_reference(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  return compare(run_engine(c, *program.program), run_reference(c, *program.program), rounding);
}

TEST(Laws, EngineEqualsReference) {
  check_law("Laws.EngineEqualsReference", {}, 2000, engine_equals_reference);
}

TEST(Laws, EngineEqualsReferenceOnSpecialValues) {
  GeneratorOptions options;
  options.special = true;
  check_law("Laws.EngineEqualsReferenceOnSpecialValues", options, 1000, engine_equals_reference);
}

}  // namespace
}  // namespace starfold::laws

// Derivatives of random programs: they are programs like others, and they are what differences say
// wherever the program is smooth.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "starfold/base/error.h"
#include "tests/laws/law.h"
#include "tests/support/derivatives.h"

namespace starfold::laws {
namespace {

// Whether two tensors agree, measured by the largest entry.
bool agree(const Tensor& a, const Tensor& b, double tolerance) {
  double scale = 1;
  for (const double x : b.data) scale = std::max(scale, std::fabs(x));
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    if (!(std::fabs(a.data[i] - b.data[i]) <= tolerance * scale)) return false;
  }
  return std::isfinite(scale);
}

struct Seen {
  int none = 0;      // without a derivative
  int compared = 0;  // derivatives held against differences
};

Verdict differences_agree(const Case& c, const CompiledProgram& program, Seen& seen) {
  const ir::Program& p = program.compilation.program;
  const testing::World world{c.federation.clients, c.federation.settings};
  const Results results = evaluate_reference(p, world.clients, world.settings);
  for (const Derivative& d : c.program.derivatives) {
    const bool there = results.outputs.count(d.of) != 0 &&
                       c.program.text.text.find(d.statement) != std::string::npos;
    if (world.settings.shared.count(d.by) == 0 || !there) continue;
    const Tensor wide = testing::differences(p, d.of, d.by, world, 2e-3);
    const Tensor narrow = testing::differences(p, d.of, d.by, world, 5e-4);
    // Beside a jump or a kink the two differ, and neither says anything.
    if (!agree(wide, narrow, 1e-7)) continue;
    const Tensor& got = results.outputs.at(d.output);
    if (got.shape != narrow.shape) return fmt::format("{} has another shape", d.output);
    ++seen.compared;
    if (!agree(got, narrow, 1e-6))
      return fmt::format("{} by {}: {} instead of {}", d.of, d.by, show(got), show(narrow));
  }
  return std::nullopt;
}

TEST(GradientLaw, DerivativesOfRandomPrograms) {
  GeneratorOptions options;
  options.derivatives = true;
  options.loops = false;
  options.statements = 3;
  options.depth = 3;
  Seen seen;
  constexpr int usual = 400;
  check_law("GradientLaw.DerivativesOfRandomPrograms", options, usual,
            [&](const Case& c) -> Verdict {
              if (has_no_derivative(c)) {
                ++seen.none;
                return Verdict::nothing();
              }
              const Compiled program = compiled(c);
              if (!program.error.empty()) return program.error;
              const Outcome reference = run_reference(c, *program.program);
              if (!reference.report) return Verdict::nothing();
              return differences_agree(c, *program.program, seen);
            });
  if (law_programs(usual) < usual) return;
  EXPECT_LT(seen.none, usual / 5);
  EXPECT_GT(seen.compared, usual / 3);
}

TEST(GradientLaw, EngineEqualsReferenceOnDerivatives) {
  GeneratorOptions options;
  options.derivatives = true;
  options.statements = 4;
  options.depth = 3;
  check_law("GradientLaw.EngineEqualsReferenceOnDerivatives", options, 500,
            [](const Case& c) -> Verdict {
              return has_no_derivative(c) ? Verdict() : engine_equals_reference(c);
            });
}

}  // namespace
}  // namespace starfold::laws

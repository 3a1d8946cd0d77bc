// A law over random programs and federations: checked case by case; a case that breaks it is made
// smaller and shown with the command that runs it again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "starfold/federation/local.h"
#include "tests/laws/generator.h"

namespace starfold::laws {

struct Case {
  std::uint64_t seed = 0;
  GeneratorOptions options;
  GeneratedProgram program;
  Federation federation;

  // Further choices that belong to this case.
  Random choices() const { return Random(seed ^ 0x6A09E667F3BCC909ULL); }
};

// What a case says of a law: that it holds, why it does not, or nothing. A case says nothing when its run
// stops, or when it has nothing that the law speaks of.
class Verdict {
 public:
  Verdict() = default;
  Verdict(std::nullopt_t) {}
  Verdict(std::string why) : why_(std::move(why)) {}
  Verdict(const char* why) : why_(why) {}
  static Verdict nothing() {
    Verdict verdict;
    verdict.says_nothing_ = true;
    return verdict;
  }

  // Whether the law is broken, and why.
  explicit operator bool() const { return why_.has_value(); }
  const std::string& operator*() const { return *why_; }
  bool says_nothing() const { return says_nothing_; }
  friend bool operator==(const Verdict&, const Verdict&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Verdict& verdict) {
    return out << (verdict ? *verdict : verdict.says_nothing() ? "says nothing" : "holds");
  }

 private:
  std::optional<std::string> why_;
  bool says_nothing_ = false;
};
using Law = std::function<Verdict(const Case&)>;

// How many programs a law sees: STARFOLD_LAW_PROGRAMS, or so many.
int law_programs(int usual);

// Checks a law on so many cases. `name` is the test's own, as "Suite.Name". At least the share `telling` of the
// cases must say something of it: a law that holds because nearly every run stops has not been tested.
void check_law(const std::string& name, const GeneratorOptions& options, int programs,
               const Law& law, double telling = 0.7);

// The smallest case found on which the law still does not hold.
Case shrink(Case from, const Law& law);

// --- the pieces that laws are made of

// The program compiled, or what the compiler says against it.
struct Compiled {
  std::shared_ptr<const CompiledProgram> program;
  std::string error;
};
Compiled compiled(const Case& c, bool optimize = true, bool base = false, bool exact = false);
// Whether all that is wrong with a program is that some operation in it has no derivative, or a large one.
bool has_no_derivative(const Case& c);

// Results, or why there are none.
struct Outcome {
  std::optional<RunReport> report;
  std::string error;
};
Outcome run_engine(const Case& c, const CompiledProgram& program, RunOptions options = {});
Outcome run_reference(const Case& c, const CompiledProgram& program);

// Equal up to rounding: nan equals nan, an infinity itself.
bool close(double a, double b, double tolerance);
Verdict compare(const Tensor& got, const Tensor& want, double tolerance);
Verdict compare(const Outcome& got, const Outcome& want, double tolerance);
// The same bits, any nan equal to any other.
Verdict same_bits(const Tensor& got, const Tensor& want);
Verdict same_bits(const Results& got, const Results& want);

std::string show(const Tensor& tensor);
std::string show(const Case& c);

// --- laws that other laws build upon

Verdict client_locality(const Case& c);
Verdict exposure_discipline(const Case& c);
Verdict virtual_global_consistency(const Case& c);
Verdict engine_equals_reference(const Case& c);
Verdict iterative_factorization(const Case& c);

// Two evaluations of a generated program agree this well.
inline constexpr double rounding = 1e-9;

}  // namespace starfold::laws

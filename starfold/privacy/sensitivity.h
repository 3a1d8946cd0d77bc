// Sensitivity: how much what a round releases can change when one unit of privacy does, proven from the program alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/diag/diagnostic.h"
#include "starfold/plan/plan.h"
#include "starfold/privacy/bounds.h"

namespace starfold::privacy {

// What is protected: one record, or all that a client has.
enum class Unit { record, client };
// What may differ: one unit more or less, or another in its place.
enum class Neighbours { add_remove, replace };
// "record", "client"; "add_remove", "replace".
std::string_view to_string(Unit unit);
std::string_view to_string(Neighbours neighbours);

// Why a merged value cannot be released with noise.
struct Unbounded {
  Code code = Code::UnboundedTerm;
  std::string expr;  // what has no bound, as written
  Span where;
  std::string message;  // what was seen, in one line
  std::string reason;
  std::string help;  // what would bound it
};

// Of one merged value. A bound is a number, or an expression in sizes that are not known; with the sizes of a run
// `bound.evaluate(sizes)` is the number that noise is made for.
struct MergeSensitivity {
  Norms change;  // of the sum, by one unit: L1 for Laplace, L2 for Gauss
  Norms term;    // what one record adds, at most: for clamping, grids and the room of integers
  Interval
      entry;  // where each number that a record adds lies; infinite where only `term` knows, in sizes
  std::vector<ir::NodeId> from;        // of the plan's program: the clips that bound it
  std::optional<Unbounded> unbounded;  // then the rest says nothing
};

// Of one round: its merges in the plan's order, and all that is released in it together.
struct RoundSensitivity {
  std::vector<MergeSensitivity> merges;
  Norms change;

  bool bounded() const;
};

struct Sensitivities {
  Unit unit = Unit::record;
  Neighbours neighbours = Neighbours::add_remove;
  std::vector<RoundSensitivity> rounds;  // in the order of rounds_of(plan)

  bool bounded() const;
  // The first merged value without a bound; null when all have one.
  const Unbounded* unbounded() const;
};

// Of every round of a plan. Plan with `additive`, or whatever does not add up is refused. Where values of shared inputs matter
// (the c of a clip_norm) they must be known, and must be those of the run.
Sensitivities sensitivities(const Plan& plan, Unit unit, Neighbours neighbours,
                            const Known& known = {});

}  // namespace starfold::privacy

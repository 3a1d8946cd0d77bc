// Programs and shared-state factorizations (def:shared-state-factorization), both ways: what a plan
// factors through, and the program that a factorization is.
#pragma once

#include <string>
#include <vector>

#include "starfold/ops/standard.h"
#include "starfold/plan/plan.h"

namespace starfold {

// One component R^s of the state space M, with its merge and neutral element.
struct Component {
  ir::NodeId fold = ir::no_node;    // g_i in the plan's program
  std::string expression;           // g_i as it would be written
  std::vector<Size> shape;          // s_i
  const Monoid* merge = nullptr;    // the merge and its zero
  std::vector<ir::NodeId> encoded;  // e_i, or a_i and b_i: the client-local operands
};

// One round of a plan: psi(merge over clients of phi(X of the client; theta), theta).
struct Factorization {
  int round = 0;
  int loop_depth = 0;
  std::vector<Component> state;   // M, component by component
  std::vector<ir::NodeId> theta;  // the shared values that phi uses
  std::vector<ir::NodeId> phi;    // client-local nodes, operands first
  std::vector<ir::NodeId> psi;    // shared-only nodes of the decoder, operands first
};

// The factorization of every round, in program order (thm:one-round-shared-state-factorization,
// thm:iterative-shared-state-factorization).
std::vector<Factorization> factor(const Plan& plan);

// A component in the language's own words.
struct ComponentText {
  std::string name;         // what the decoder calls it
  std::string aggregation;  // "sum", "max", ...; empty for the matrix product encoder @ right
  std::string encoder;      // a client-local expression
  std::string right;
};

struct FactorizationText {
  std::string inputs;  // declarations of inputs and sizes
  std::vector<ComponentText> components;
  std::string output;   // the name of the result
  std::string decoder;  // a shared-only expression of the components and shared inputs
};

// The one-round program that computes a factorization (thm:one-round-realization). Throws
// std::invalid_argument when a part is not what the theorem asks for: there is no component, an encoder is
// not client-local, an aggregation is not the name of one that merges, a component is not shared, the
// decoder is not a shared-only expression of the components and shared inputs.
std::string realize(const FactorizationText& factorization,
                    const Signature& signature = standard_signature());

// One program that computes `post` from the outputs of the `first` programs: the inputs of `post` that are
// named like outputs take their values, the others stay inputs. Inputs of the first programs with one name
// are one input. `post` must be shared-only; the rounds are those of the first programs together, and so
// are the messages (cor:one-round-shared-postprocessing). Throws std::invalid_argument when they do not fit
// together.
std::string compose(const std::vector<std::string>& first, const std::string& post,
                    const Signature& signature = standard_signature());

}  // namespace starfold

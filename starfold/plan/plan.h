// A program as rounds (thm:iterative-shared-state-factorization): in each, the server sends shared
// values, every client encodes its records into one fixed-size message, messages merge by
// commutative monoids, and a shared-only decoder runs.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "starfold/ir/ir.h"
#include "starfold/opt/planning.h"

namespace starfold {

// One component of the shared state M of a round: a fold of the record axis.
struct Merge {
  ir::NodeId fold = ir::no_node;   // g_i: the shared value that the fold produces
  const Monoid* monoid = nullptr;  // its merge and zero
};

// A value per record that stays at the client.
struct Store {
  enum class What {
    result,  // a federated result of a block: output number `index` of the program
    keep,    // what the client keeps: number `index` of its kept results
    state,   // the next value of private state `slot` of loop `index`
  };
  What what = What::result;
  ir::NodeId node = ir::no_node;
  std::uint32_t index = 0;
  std::uint32_t slot = 0;
};

// phi, merge and zero of one round; psi is the `decoder` of the step it belongs to.
struct Round {
  int number = 0;                    // in program order, from 0; the identity used in messages
  int loop_depth = 0;                // how many loops it runs inside
  std::vector<ir::NodeId> receives;  // shared values the server sends
  std::vector<ir::NodeId>
      constants;  // shared values every client makes itself (zeros, eye, literals)
  std::vector<ir::NodeId> encoders;  // client-local federated nodes, operands first
  std::vector<ir::NodeId> steady;    // of these, what does not change in the loop around the round
  std::vector<Merge> merges;
  std::vector<Store> stores;       // laid down at the client, and not sent
  std::vector<ir::NodeId> passes;  // inside a block: loops over batches
};

struct Block;

// A loop that runs its body until its condition or its count ends it.
struct LoopStep {
  ir::LoopId loop = ir::no_loop;
  std::vector<Block> body;  // exactly one
};

// One thing to do, then the shared-only nodes that can be computed after it, operands first.
struct Step {
  std::variant<Round, LoopStep> action;
  std::vector<ir::NodeId> decoder;
};

struct Block {
  std::vector<ir::NodeId> prelude;  // shared-only nodes that need no round of this block
  std::vector<Step> steps;
};

struct Plan {
  ir::Program program;  // lowered: every shared-from-federated node is a Merge of some round
  Block body;
  int rounds = 0;  // how many Round values there are, each run once per iteration of its loops
  // The plans of blocks, by their nodes: each is a part of the encoders and runs at one client.
  std::map<ir::NodeId, std::shared_ptr<const Plan>> blocks = {};
  bool exact =
      false;  // as Planning::exact: nothing about an answer depends on where or how it is computed
};

// Splits a typed program into the fewest rounds: all folds whose inputs are ready travel together,
// and what does not change inside a loop is done before it.
Plan make_plan(const ir::Program& program, const Planning& planning = {});

// Gives the names inside functions to nodes that have none, with a number where a name is taken: `lo`, `lo_2`.
void name_locals(ir::Program& program);

// Whether a value is laid down at the client as a whole: an input, a result of a block, a private state.
bool is_array(const ir::Program& program, ir::NodeId id);

// All rounds in program order.
std::vector<const Round*> rounds_of(const Plan& plan);

// The whole plan as text: equal plans print equally, so its hash identifies what will run. With `names`,
// also what the user calls each value.
std::string print(const Plan& plan, bool names = false);

// SHA-256 of the plan's text, as 64 hexadecimal digits.
std::string plan_hash(const Plan& plan);

// A value as its readers know it: the user's name for it, or the expression.
std::string describe(const Plan& plan, ir::NodeId id);
// A fold as an expression: what is folded, whatever name the result has.
std::string describe_fold(const Plan& plan, ir::NodeId id);

}  // namespace starfold

// A block without loops at many clients at once. Its folds end at each client; what follows them is the same few operations
// on every client's own numbers, so it is compiled as a map over clients: each entry of a value is a column of as many
// numbers as there are clients.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "starfold/runtime/engine/engine.h"
#include "starfold/runtime/engine/layout.h"
#include "starfold/runtime/steps/program.h"

namespace starfold::engine {

// The plan of a block with its decoders as maps over clients.
struct Lifted {
  // A value that differs from client to client and is laid down for a group of them: rows given from outside, folds, and what
  // later steps or the results read.
  struct Value {
    ir::NodeId node = ir::no_node;
    std::size_t cells = 0;
  };
  std::vector<Value> values;
  std::map<ir::NodeId, std::size_t> places;  // of nodes among the values
  std::vector<ir::NodeId> common;            // what all clients have in common, operands first
  std::vector<const Round*> rounds;
  std::vector<StoreProgram> decoders;  // before the first round, and after each
  std::size_t numbers = 0;             // that a client takes meanwhile
};

// Null where it must be run client by client: it has loops, conditions or operations with several results. `rows` says of
// each input of the block whether it is a client's own row.
std::shared_ptr<const Lifted> lift(const Plan& plan, const SizeValues& sizes,
                                   const std::vector<bool>& rows);

// The clients that a lifted block is run at, and what they are given.
struct Clients {
  Engine& engine;                            // over the records of all of them
  const Cut& cut;                            // of the clients themselves
  const std::vector<const Tensor*>& shared;  // by input: what all of them see,
  const std::vector<const Buffer*>& rows;    // or the rows of all
  const std::atomic<bool>* stop = nullptr;   // as EngineOptions::stop
};

// Fills the shared results of a block at all clients, as rows of `results` by output; those that have records are the engine's.
void run_lifted(const Plan& plan, const SizeValues& sizes, const Lifted& lifted,
                const Clients& clients, const std::vector<std::shared_ptr<Buffer>>& results);

}  // namespace starfold::engine

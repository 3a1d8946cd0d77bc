// Blocks at one client: a plan inside an encoder, run by the same machine and engine over the client's own records.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starfold/runtime/engine/engine.h"
#include "starfold/runtime/engine/layout.h"
#include "starfold/runtime/engine/lift.h"
#include "starfold/runtime/machine.h"
#include "starfold/tensor/random_bits.h"

namespace starfold::engine {

using Array = std::shared_ptr<const Buffer>;

// The records of a set that an engine works on: all of them, or those of one share, which begin at block `first`.
struct Place {
  Cut all;
  Cut cut;
  std::size_t first = 0;
};
using Places = std::map<std::string, Place>;

// The record set with one record, cut.
const Cut& client_cut();

// What a block reads of the engine around it.
struct Around {
  std::function<const Tensor&(ir::NodeId)> shared;
  std::function<Array(ir::NodeId)> array;
  // The name under which a table has an input, where there is a table.
  std::function<std::optional<std::string>(ir::NodeId)> table_name;
  std::shared_ptr<const RecordTable> table;
  std::shared_ptr<const Shares> shares;  // where it is of several clients
};

// What a block runs by: the encoders of its plan, and the plan as a map over clients where it can be one.
struct CompiledBlock {
  std::shared_ptr<const Encoders> encoders;
  std::shared_ptr<const Lifted> lifted;
};
CompiledBlock compile_block(const Plan& plan, ir::NodeId node, const SizeValues& sizes);

class Blocks {
 public:
  // `compiled` is shared among clients.
  using Compiled = std::function<const CompiledBlock&(ir::NodeId)>;
  Blocks(const Plan& plan, const SizeValues& sizes, EngineOptions options, Compiled compiled);

  // The results of `each client`, which are those of the last time where nothing that the block sees has changed.
  const std::vector<Array>& each_client(ir::NodeId node, const Places& places,
                                        const Around& around);
  // The states after `repeat batches`.
  std::vector<Tensor> batches(ir::NodeId node, const Places& places, const Around& around);

 private:
  // A block with what it saw the last time, and memory for the next.
  struct Run {
    std::unique_ptr<Engine> engine;
    std::optional<Machine> machine;
    std::vector<Tensor> shared;                 // by input: what all clients see,
    std::vector<Array> arrays;                  // or what has records; those of a table are null
    std::vector<Tensor> rows;                   // a client's own row
    std::vector<const Tensor*> inputs;          // of the machine
    std::vector<std::shared_ptr<Buffer>> made;  // by output: the rows of all clients
    std::vector<Array> results;
    bool valid = false;
    std::size_t drawn = 0;  // batches: how many records they were cut for, and how large they are
    std::size_t size = 0;
  };

  const ir::Node& node(ir::NodeId id) const { return plan_.program.graph[id]; }
  bool see(Run& run, ir::NodeId id, const Around& around) const;
  void look_at_stop() const;
  void run_plan(Run& run, ir::NodeId id) const;
  void one_by_one(Run& run, ir::NodeId id, const Cut& cut, bool apart) const;
  void all_at_once(Run& run, ir::NodeId id, const Cut& cut, bool apart) const;
  void cut_batches(Run& run, ir::NodeId id, const Places& places, std::size_t size);
  void draw_batches(Run& run, ir::NodeId id, const Places& places, const Around& around,
                    const Seed& seed) const;

  const Plan& plan_;
  const SizeValues& sizes_;
  EngineOptions options_;
  Compiled compiled_;
  std::map<ir::NodeId, Run> runs_;
};

// The private states of one client, each with the iteration it belongs to: the counts of the loops around it.
class PrivateStates {
 public:
  struct Key {
    ir::LoopId loop = 0;
    std::uint32_t slot = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  using Clock = std::vector<double>;

  // The value at this iteration: the newest that is not younger. A client that was not asked for some time goes on with what
  // it had. None before the first iteration of its loop.
  Array find(const Key& key, const Clock& clock) const;
  // Older values than the one that `now` reads go: nobody asks for them again.
  void put(const Key& key, const Clock& clock, Array value, const Clock& now);
  bool empty() const { return values_.empty(); }

  const std::map<Key, std::map<Clock, Array>>& all() const { return values_; }
  void restore(const Key& key, const Clock& clock, Array value) {
    values_[key][clock] = std::move(value);
  }
  void clear() { values_.clear(); }

 private:
  std::map<Key, std::map<Clock, Array>> values_;
};

}  // namespace starfold::engine

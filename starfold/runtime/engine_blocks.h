// Blocks at one client: a plan inside an encoder, run by the same machine and engine over the client's own records.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starfold/runtime/engine.h"
#include "starfold/runtime/engine_layout.h"

namespace starfold::engine {

using Array = std::shared_ptr<const Buffer>;
using Cuts = std::map<std::string, Cut>;

// The record set with one record, cut.
const Cut& client_cut();
// A client's own row, [s], as an array over *client, and back.
Array array_of_row(const Tensor& row);
Tensor row_of_array(const Buffer& array, Shape shape);

// What a block reads of the engine around it.
struct Around {
  std::function<const Tensor&(ir::NodeId)> shared;
  std::function<Array(ir::NodeId)> array;
  // The name under which a table has an input, where there is a table.
  std::function<std::optional<std::string>(ir::NodeId)> table_name;
  std::shared_ptr<const RecordTable> table;
};

class Blocks {
 public:
  // `encoders` gives those of a block's plan; they are shared among clients.
  using Compiled = std::function<std::shared_ptr<const Encoders>(ir::NodeId)>;
  Blocks(const Plan& plan, const SizeValues& sizes, EngineOptions options, Compiled encoders);

  // The results of `each client`, which are those of the last time where nothing that the block sees has changed.
  const std::vector<Array>& each_client(ir::NodeId node, const Cuts& cuts, const Around& around);
  // The states after `repeat batches`.
  std::vector<Tensor> batches(ir::NodeId node, const Cuts& cuts, const Around& around);

 private:
  struct Run {
    std::unique_ptr<Engine> engine;
    std::vector<Tensor> shared;  // what it saw the last time
    std::vector<Array> arrays;
    std::vector<Array> results;
    bool valid = false;
  };

  const ir::Node& node(ir::NodeId id) const { return plan_.program.graph[id]; }
  bool see(Run& run, ir::NodeId id, const Around& around) const;

  const Plan& plan_;
  const SizeValues& sizes_;
  EngineOptions options_;
  Compiled encoders_;
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

// The server's side of a plan: walks blocks and loops, hands out rounds, runs the decoders. It knows
// only shared values; they are also all that a checkpoint holds (prop:round-wise-shared-memory).
#pragma once

#include <atomic>
#include <memory>

#include "starfold/merge/monoid.h"
#include "starfold/plan/plan.h"
#include "starfold/runtime/demand.h"
#include "starfold/runtime/engine/map_chains.h"
#include "starfold/runtime/reference.h"
#include "starfold/tensor/bytes.h"

namespace starfold {

class Machine {
 public:
  // `sizes` gives every size variable a value. When `stop` is set from outside, the machine gives up
  // at the end of an iteration with a RunError: loops of shared values alone meet no client who could.
  Machine(std::shared_ptr<const Plan> plan, SizeValues sizes, const Settings& settings,
          const std::atomic<bool>* stop = nullptr);

  // The same machine as the one whose state was saved before one of its rounds; RunError when the bytes are no state
  // of this plan.
  Machine(std::shared_ptr<const Plan> plan, SizeValues sizes, const Settings& settings,
          ByteReader& saved, const std::atomic<bool>* stop = nullptr);
  // For the plan of a block, which one client after the other runs: shared inputs by their place, which the caller keeps.
  Machine(std::shared_ptr<const Plan> plan, std::vector<const Tensor*> inputs, SizeValues sizes,
          const std::atomic<bool>* stop = nullptr);
  // Begins anew with other inputs; what takes memory keeps it.
  void restart(const std::vector<const Tensor*>& inputs);

  // Everything it knows, so that it goes on to the same bits.
  void save(ByteWriter& out) const;

  // The round to run next; null when the program is done.
  const Round* round() const { return round_; }
  // The values to send for this round, by node.
  std::map<ir::NodeId, Tensor> to_send() const;
  // One of them; none while it is not known.
  const Tensor* known(ir::NodeId id) const;
  // Output number i, which is shared, when the program is done.
  const Tensor& output(std::size_t i) const { return value(plan_->program.outputs[i].node); }
  // The same for who goes on with all of them and begins anew: by output, in exchange for other values of the same shape.
  void take_outputs(std::vector<Tensor>& values);
  // Takes the merged state of the round, and inside a block the results of its passes, and decodes up to the next one.
  void absorb(const std::vector<MergeState>& merged, std::vector<std::vector<Tensor>> passes = {});
  // The same in exchange for states of the same shapes that hold anything.
  void exchange(std::vector<MergeState>& merged, std::vector<std::vector<Tensor>> passes);

  // Outputs, traces and iterations so far.
  const Results& results() const { return results_; }
  // How many iterations the innermost running loop has finished; 0 outside loops.
  std::int64_t iteration() const { return frames_.empty() ? 0 : frames_.back().iteration; }
  // The shape of a fold's result.
  Shape fold_shape(const Merge& merge) const;

 private:
  struct Frame {
    const Block* block = nullptr;
    std::size_t step = 0;
    ir::LoopId loop = ir::no_loop;
    std::int64_t iteration = 0;
    std::int64_t limit = 0;
    bool entered = false;  // the prelude of this pass has run
  };

  void take_passes(std::vector<std::vector<Tensor>> passes);
  void end_round();
  void restore_frames(ByteReader& saved);
  void advance();
  void begin_loop(const LoopStep& step);
  void set_params(const ir::Loop& loop, const std::vector<Tensor>& states);
  bool end_block();
  void close_loop();
  void finish_step();
  void record_traces(ir::LoopId loop);
  void check(ir::NodeId id);
  bool is_there(ir::NodeId id) const;
  bool compute_in_place(const ir::Node& node, std::vector<Tensor>& result);
  bool compute_chain(ir::NodeId id);
  void put(ir::NodeId id, const Tensor& value);
  void compute(const std::vector<ir::NodeId>& nodes);
  std::vector<Tensor> evaluate(const ir::Node& node);
  const Tensor& value(ir::NodeId id) const;

  std::shared_ptr<const Plan> plan_;
  Demands demands_;
  SizeValues sizes_;
  MapChains chains_;  // of a block
  Arrays shared_;
  std::vector<const Tensor*> inputs_;  // of a block, by their place; empty elsewhere
  std::vector<std::vector<Tensor>> values_;
  std::map<ir::LoopId, std::vector<Tensor>> loop_values_;
  std::vector<Frame> frames_;
  const Round* round_ = nullptr;
  const std::atomic<bool>* stop_ = nullptr;
  Results results_;
};

}  // namespace starfold

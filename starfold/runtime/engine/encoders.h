// The encoders of a plan inside: what engines read of them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "starfold/runtime/engine/blocks.h"
#include "starfold/runtime/engine/engine.h"
#include "starfold/runtime/steps/program.h"

namespace starfold {

class Encoders::Impl {
 public:
  Impl(std::shared_ptr<const Plan> p, SizeValues s)
      : plan(std::move(p)), sizes(std::move(s)), rounds_(static_cast<std::size_t>(plan->rounds)) {}

  const engine::RoundProgram& program(const Round& round) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<const engine::RoundProgram>& slot =
        rounds_.at(static_cast<std::size_t>(round.number));
    if (!slot)
      slot =
          std::make_unique<const engine::RoundProgram>(engine::compile_round(*plan, round, sizes));
    return *slot;
  }

  // A value of a round laid down as a whole.
  const engine::StoreProgram& store(const Round& round, ir::NodeId node) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<const engine::StoreProgram>& slot = stores_[{round.number, node}];
    if (!slot)
      slot = std::make_unique<const engine::StoreProgram>(
          engine::compile_store(*plan, round, node, sizes));
    return *slot;
  }
  // Those of a block.
  const engine::CompiledBlock& block(ir::NodeId node) {
    const std::lock_guard lock(mutex_);
    engine::CompiledBlock& slot = blocks_[node];
    if (!slot.encoders) slot = engine::compile_block(*plan, node, sizes);
    return slot;
  }

  const std::shared_ptr<const Plan> plan;
  const SizeValues sizes;

 private:
  std::map<std::pair<int, ir::NodeId>, std::unique_ptr<const engine::StoreProgram>> stores_;
  std::map<ir::NodeId, engine::CompiledBlock> blocks_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<const engine::RoundProgram>> rounds_;
};

}  // namespace starfold

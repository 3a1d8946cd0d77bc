// The state of a machine as bytes. Blocks are found again by the way that led to them.
#include "starfold/base/error.h"
#include "starfold/runtime/apply.h"
#include "starfold/runtime/machine.h"

namespace starfold {
namespace {

[[noreturn]] void misfit() { throw RunError("a checkpoint does not belong to this program"); }

void check_range(std::uint64_t value, std::size_t end) {
  if (value >= end) misfit();
}

}  // namespace

void Machine::save(ByteWriter& out) const {
  std::uint32_t known = 0;
  for (const std::vector<Tensor>& values : values_) known += values.empty() ? 0 : 1;
  out.number(known);
  for (std::uint32_t id = 0; id < values_.size(); ++id) {
    if (values_[id].empty()) continue;
    out.number(id);
    out.tensors(values_[id]);
  }
  out.number(static_cast<std::uint32_t>(loop_values_.size()));
  for (const auto& [loop, states] : loop_values_) {
    out.number(loop);
    out.tensors(states);
  }
  out.number(static_cast<std::uint32_t>(frames_.size()));
  for (const Frame& frame : frames_) {
    out.number(static_cast<std::uint64_t>(frame.step));
    out.number(frame.iteration);
    out.number(frame.limit);
  }
  out.number(static_cast<std::uint32_t>(results_.traces.size()));
  for (const auto& [name, values] : results_.traces) {
    out.text(name);
    out.tensor(Tensor({static_cast<std::int64_t>(values.size())}, values));
  }
  for (const std::int64_t iterations : results_.iterations) out.number(iterations);
  out.number(static_cast<std::uint32_t>(results_.unmet.size()));
  for (const auto& [place, entries] : results_.unmet) {
    out.number(static_cast<std::uint64_t>(place));
    out.tensor(Tensor({static_cast<std::int64_t>(entries.size())},
                      std::vector<double>(entries.begin(), entries.end())));
  }
}

Machine::Machine(std::shared_ptr<const Plan> plan, SizeValues sizes, const Settings& settings,
                 ByteReader& saved, const std::atomic<bool>* stop)
    : plan_(std::move(plan)),
      demands_(demands_of(plan_->program)),
      sizes_(std::move(sizes)),
      shared_(settings.shared),
      values_(plan_->program.graph.size()),
      stop_(stop) {
  for (auto left = saved.number<std::uint32_t>(); left > 0; --left) {
    const auto id = saved.number<std::uint32_t>();
    check_range(id, values_.size());
    values_[id] = saved.tensors();
    const std::vector<Type>& types = plan_->program.graph[id].types;
    if (values_[id].size() != types.size()) misfit();
    for (std::size_t i = 0; i < types.size(); ++i)
      if (values_[id][i].shape != cell_shape(types[i], sizes_)) misfit();
  }
  for (auto left = saved.number<std::uint32_t>(); left > 0; --left) {
    const auto loop = saved.number<ir::LoopId>();
    check_range(loop, plan_->program.loops.size());
    loop_values_[loop] = saved.tensors();
    if (loop_values_[loop].size() != plan_->program.loops[loop].carried.size()) misfit();
  }
  restore_frames(saved);
  for (auto left = saved.number<std::uint32_t>(); left > 0; --left) {
    std::string name = saved.text();
    results_.traces[std::move(name)] = saved.tensor().data;
  }
  for (std::size_t i = 0; i < plan_->program.loops.size(); ++i)
    results_.iterations.push_back(saved.number<std::int64_t>());
  for (auto left = saved.number<std::uint32_t>(); left > 0; --left) {
    const auto place = saved.number<std::uint64_t>();
    check_range(place, plan_->program.traces.size());
    std::vector<std::size_t>& entries = results_.unmet[place];
    for (const double entry : saved.tensor().data) {
      if (!(entry >= 0 && entry < 9007199254740992.0)) misfit();
      entries.push_back(static_cast<std::size_t>(entry));
    }
  }
}

// Ends at a round: only there a state is saved.
void Machine::restore_frames(ByteReader& saved) {
  const Block* block = &plan_->body;
  ir::LoopId loop = ir::no_loop;
  for (auto left = saved.number<std::uint32_t>(); left > 0; --left) {
    if (block == nullptr) misfit();
    Frame frame{block};
    frame.step = saved.number<std::uint64_t>();
    frame.iteration = saved.number<std::int64_t>();
    frame.limit = saved.number<std::int64_t>();
    frame.loop = loop;
    frame.entered = true;
    check_range(frame.step, block->steps.size());
    frames_.push_back(frame);
    const Step& step = block->steps[frame.step];
    round_ = std::get_if<Round>(&step.action);
    const auto* inner = std::get_if<LoopStep>(&step.action);
    block = inner != nullptr ? &inner->body.front() : nullptr;
    loop = inner != nullptr ? inner->loop : ir::no_loop;
  }
  if (round_ == nullptr) misfit();
}

}  // namespace starfold

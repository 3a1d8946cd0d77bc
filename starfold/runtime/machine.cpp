#include "starfold/runtime/machine.h"

#include <fmt/format.h>

#include "starfold/base/error.h"
#include "starfold/runtime/apply.h"
#include "starfold/tensor/portable.h"

namespace starfold {

using ir::Kind;
using ir::NodeId;

Machine::Machine(std::shared_ptr<const Plan> plan, SizeValues sizes, const Settings& settings,
                 const std::atomic<bool>* stop)
    : plan_(std::move(plan)),
      demands_(demands_of(plan_->program)),
      sizes_(std::move(sizes)),
      shared_(settings.shared),
      values_(plan_->program.graph.size()),
      stop_(stop) {
  results_.iterations.resize(plan_->program.loops.size());
  for (const ir::Trace& trace : plan_->program.traces) {
    if (trace.kind == ir::Trace::Kind::record) results_.traces[trace.name];
  }
  frames_.push_back({&plan_->body});
  advance();
}

const Tensor& Machine::value(NodeId id) const {
  if (values_[id].empty())
    throw Bug(fmt::format("the value of node %{} was read before it was computed", id));
  return values_[id].front();
}

std::map<NodeId, Tensor> Machine::to_send() const {
  std::map<NodeId, Tensor> values;
  for (const NodeId id : round_->receives) values.emplace(id, value(id));
  return values;
}

Shape Machine::fold_shape(const Merge& merge) const {
  return cell_shape(plan_->program.graph[merge.fold].type(), sizes_);
}

void Machine::absorb(const std::vector<MergeState>& merged,
                     std::vector<std::vector<Tensor>> passes) {
  for (std::size_t i = 0; i < round_->passes.size(); ++i)
    values_[round_->passes[i]] = std::move(passes.at(i));
  for (std::size_t i = 0; i < round_->merges.size(); ++i) {
    values_[round_->merges[i].fold] = {round_->merges[i].monoid->finish(merged[i])};
    check(round_->merges[i].fold);
  }
  round_ = nullptr;
  finish_step();
  advance();
}

void Machine::advance() {
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (!frame.entered) {
      frame.entered = true;
      compute(frame.block->prelude);
    }
    if (frame.step == frame.block->steps.size()) {
      if (end_block()) return;
      continue;
    }
    const Step& step = frame.block->steps[frame.step];
    if (const auto* round = std::get_if<Round>(&step.action)) {
      round_ = round;
      return;
    }
    begin_loop(std::get<LoopStep>(step.action));
  }
}

void Machine::begin_loop(const LoopStep& step) {
  const ir::Loop& loop = plan_->program.loops[step.loop];
  Frame frame{&step.body.front()};
  frame.loop = step.loop;
  frame.limit = iteration_limit(value(loop.count).item(), loop);
  std::vector<Tensor>& states = loop_values_[step.loop];
  states.clear();
  // Private states are the clients' business: their places here hold nothing.
  for (const ir::Carried& carried : loop.carried)
    states.push_back(carried.type.federated() ? Tensor() : value(carried.init));
  set_params(loop, states);
  frames_.push_back(frame);
  if (frame.limit == 0) close_loop();
}

void Machine::set_params(const ir::Loop& loop, const std::vector<Tensor>& states) {
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!loop.carried[i].type.federated()) values_[loop.carried[i].param] = {states[i]};
  }
}

// Ends one pass through a block; true when the whole program has ended.
bool Machine::end_block() {
  Frame& frame = frames_.back();
  record_traces(frame.loop);
  if (frame.loop == ir::no_loop) {
    for (const ir::Output& output : plan_->program.outputs) {
      if (!plan_->program.graph[output.node].federated())
        results_.outputs[output.name] = value(output.node);
    }
    frames_.clear();
    return true;
  }
  if (stop_ != nullptr && *stop_) throw RunError("the run was stopped");
  const ir::Loop& loop = plan_->program.loops[frame.loop];
  std::vector<Tensor>& states = loop_values_[frame.loop];
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!loop.carried[i].type.federated()) states[i] = value(loop.carried[i].next);
  }
  ++frame.iteration;
  ++results_.iterations[frame.loop];
  const bool stop = frame.iteration >= frame.limit ||
                    (loop.until != ir::no_node && value(loop.until).item() != 0);
  if (stop) {
    close_loop();
    return false;
  }
  set_params(loop, states);
  frame.step = 0;
  frame.entered = false;
  return false;
}

void Machine::close_loop() {
  frames_.pop_back();
  finish_step();
}

// Computes what became computable by the current step, and goes on to the next.
void Machine::finish_step() {
  Frame& frame = frames_.back();
  compute(frame.block->steps[frame.step].decoder);
  ++frame.step;
}

void Machine::record_traces(ir::LoopId loop) {
  const std::vector<ir::Trace>& traces = plan_->program.traces;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (traces[i].loop != loop) continue;
    const Tensor& watched = value(traces[i].node);
    if (traces[i].kind != ir::Trace::Kind::record) {
      demand(plan_->program, i, watched, results_);
    } else {
      results_.traces[traces[i].name].push_back(watched.item());
    }
  }
}

// What must hold is asked as soon as it is known, before what is written after it can fail for the same reason.
void Machine::check(NodeId id) {
  const auto [begin, end] = demands_.equal_range(id);
  for (auto it = begin; it != end; ++it) {
    if (plan_->program.traces[it->second].loop == frames_.back().loop)
      demand(plan_->program, it->second, value(id), results_);
  }
}

void Machine::compute(const std::vector<NodeId>& nodes) {
  const portable::Scope scope(plan_->exact);
  for (const NodeId id : nodes) {
    values_[id] = evaluate(plan_->program.graph[id]);
    check(id);
  }
}

std::vector<Tensor> Machine::evaluate(const ir::Node& node) {
  switch (node.kind) {
    case Kind::constant:
    case Kind::size:
      return {leaf_value(node, sizes_)};
    case Kind::input: {
      const ir::Input& input = plan_->program.inputs[node.index];
      const auto set = shared_.find(input.name);
      return {set != shared_.end() ? set->second : value(input.fallback)};
    }
    case Kind::project:
      return {values_[node.args[0]][node.index]};
    case Kind::loop_result:
      return {loop_values_[node.index][node.slot]};
    case Kind::apply: {
      std::vector<const Tensor*> args;
      for (const NodeId arg : node.args) args.push_back(&value(arg));
      return apply(plan_->program, node, std::move(args), sizes_);
    }
    default:
      throw Bug("a decoder met a node it cannot compute");
  }
}

}  // namespace starfold

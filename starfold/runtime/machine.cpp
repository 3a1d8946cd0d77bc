#include "starfold/runtime/machine.h"

#include <fmt/format.h>

#include <algorithm>

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

Machine::Machine(std::shared_ptr<const Plan> plan, std::vector<const Tensor*> inputs,
                 SizeValues sizes, const std::atomic<bool>* stop)
    : plan_(std::move(plan)),
      demands_(demands_of(plan_->program)),
      sizes_(std::move(sizes)),
      chains_(demands_.empty() ? MapChains(*plan_, sizes_) : MapChains()),
      inputs_(std::move(inputs)),
      values_(plan_->program.graph.size()),
      stop_(stop) {
  results_.iterations.resize(plan_->program.loops.size());
  frames_.push_back({&plan_->body});
  advance();
}

void Machine::restart(const std::vector<const Tensor*>& inputs) {
  if (inputs_ != inputs) inputs_ = inputs;
  round_ = nullptr;
  frames_.assign(1, {&plan_->body});
  advance();
}

const Tensor* Machine::known(NodeId id) const {
  const ir::Node& node = plan_->program.graph[id];
  if (node.kind == Kind::input && !inputs_.empty()) return inputs_[node.index];
  return values_[id].empty() ? nullptr : &values_[id].front();
}

const Tensor& Machine::value(NodeId id) const {
  const Tensor* const known = this->known(id);
  if (known == nullptr)
    throw Bug(fmt::format("the value of node %{} was read before it was computed", id));
  return *known;
}

std::map<NodeId, Tensor> Machine::to_send() const {
  std::map<NodeId, Tensor> values;
  for (const NodeId id : round_->receives) values.emplace(id, value(id));
  return values;
}

Shape Machine::fold_shape(const Merge& merge) const {
  return cell_shape(plan_->program.graph[merge.fold].type(), sizes_);
}

void Machine::take_outputs(std::vector<Tensor>& values) {
  const std::vector<ir::Output>& outputs = plan_->program.outputs;
  std::vector<std::size_t> own;  // made here, for one output alone
  std::vector<NodeId> seen;
  std::vector<std::pair<std::size_t, Tensor>>
      copies;  // taken before anything changes: inputs may be what is given here
  for (std::size_t i = 0; i < values.size(); ++i) {
    const NodeId id = outputs[i].node;
    const bool made =
        plan_->program.graph[id].kind == Kind::apply && value(id).shape == values[i].shape;
    if (made && std::find(seen.begin(), seen.end(), id) == seen.end()) {
      own.push_back(i);
      seen.push_back(id);
    } else {
      copies.emplace_back(i, value(id));
    }
  }
  for (const std::size_t i : own) std::swap(values[i].data, values_[outputs[i].node].front().data);
  for (auto& [i, copy] : copies) values[i] = std::move(copy);
}

void Machine::exchange(std::vector<MergeState>& merged, std::vector<std::vector<Tensor>> passes) {
  take_passes(std::move(passes));
  for (std::size_t i = 0; i < round_->merges.size(); ++i) {
    std::vector<Tensor>& value = values_[round_->merges[i].fold];
    const Monoid& monoid = *round_->merges[i].monoid;
    value.resize(1);
    if (monoid.finish != monoids::sum.finish) {
      value.front() = monoid.finish(merged[i]);
    } else if (value.front().shape == merged[i].front().shape) {
      std::swap(value.front().data, merged[i].front().data);
    } else {
      value.front() = merged[i].front();
    }
    if (!demands_.empty()) check(round_->merges[i].fold);
  }
  end_round();
}

void Machine::take_passes(std::vector<std::vector<Tensor>> passes) {
  for (std::size_t i = 0; i < round_->passes.size(); ++i)
    values_[round_->passes[i]] = std::move(passes.at(i));
}

void Machine::end_round() {
  round_ = nullptr;
  finish_step();
  advance();
}

void Machine::absorb(const std::vector<MergeState>& merged,
                     std::vector<std::vector<Tensor>> passes) {
  take_passes(std::move(passes));
  for (std::size_t i = 0; i < round_->merges.size(); ++i) {
    std::vector<Tensor>& value = values_[round_->merges[i].fold];
    value.resize(1);
    const Monoid& monoid = *round_->merges[i].monoid;
    // A state that is its value needs no memory of its own: many small clients would spend their time on it.
    if (monoid.finish == monoids::sum.finish) {
      value.front() = merged[i].front();
    } else {
      value.front() = monoid.finish(merged[i]);
    }
    if (!demands_.empty()) check(round_->merges[i].fold);
  }
  end_round();
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
  states.resize(loop.carried.size());
  // Private states are the clients' business: their places here hold nothing.
  for (std::size_t i = 0; i < states.size(); ++i)
    states[i] = loop.carried[i].type.federated() ? Tensor() : value(loop.carried[i].init);
  set_params(loop, states);
  frames_.push_back(frame);
  if (frame.limit == 0) close_loop();
}

void Machine::set_params(const ir::Loop& loop, const std::vector<Tensor>& states) {
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!loop.carried[i].type.federated()) put(loop.carried[i].param, states[i]);
  }
}

// Ends one pass through a block; true when the whole program has ended.
bool Machine::end_block() {
  Frame& frame = frames_.back();
  record_traces(frame.loop);
  if (frame.loop == ir::no_loop) {
    // Who runs a block asks for its outputs one by one.
    for (const ir::Output& output : plan_->program.outputs) {
      if (inputs_.empty() && !plan_->program.graph[output.node].federated())
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
    const ir::Node& node = plan_->program.graph[id];
    if (!chains_.empty() && (chains_.passes(id) || compute_chain(id))) continue;
    if (!is_there(id) && !compute_in_place(node, values_[id])) values_[id] = evaluate(node);
    if (!demands_.empty()) check(id);
  }
}

// Whether a value does not depend on when it is asked for.
bool Machine::is_there(NodeId id) const {
  const ir::Node& node = plan_->program.graph[id];
  if (node.kind == Kind::input) return !inputs_.empty();
  return (node.kind == Kind::constant || node.kind == Kind::size) && !values_[id].empty();
}

// Over the value of an earlier iteration.
bool Machine::compute_in_place(const ir::Node& node, std::vector<Tensor>& result) {
  if (node.kind != Kind::apply || result.size() != 1 || node.args.empty() || node.args.size() > 2)
    return false;
  const Tensor* args[2];
  for (std::size_t i = 0; i < node.args.size(); ++i) args[i] = &value(node.args[i]);
  return apply_in_place(node, args, result.front());
}

bool Machine::compute_chain(NodeId id) {
  return chains_.compute(
      id, [&](NodeId from) -> const Tensor& { return value(from); },
      [&]() -> Tensor& {
        std::vector<Tensor>& place = values_[id];
        if (place.empty()) place.emplace_back(cell_shape(plan_->program.graph[id].type(), sizes_));
        return place.front();
      });
}

void Machine::put(NodeId id, const Tensor& value) {
  std::vector<Tensor>& place = values_[id];
  place.resize(1);
  place.front() = value;
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

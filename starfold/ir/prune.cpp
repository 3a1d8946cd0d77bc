// Nothing that no output, trace or kept result needs is computed or exposed.
#include "starfold/ir/ir.h"

namespace starfold::ir {
namespace {

class Marker {
 public:
  explicit Marker(const Program& program)
      : program_(program),
        node_(program.graph.size()),
        loop_(program.loops.size()),
        slot_(program.loops.size()) {
    for (std::size_t i = 0; i < program.loops.size(); ++i)
      slot_[i].resize(program.loops[i].carried.size());
    for (const Input& input : program.inputs) need(input.fallback);
    for (const Input& input : program.inputs) need(input.node);
    for (const Output& output : program.outputs) need(output.node);
    for (const Output& keep : program.keeps) need(keep.node);
    for (const Trace& trace : program.traces) {
      need(trace.node);
      for (LoopId loop = trace.loop; loop != no_loop; loop = program.loops[loop].parent)
        need_loop(loop);
    }
    while (!pending_.empty()) {
      const NodeId id = pending_.back();
      pending_.pop_back();
      visit(program_.graph[id]);
    }
  }

  bool live(NodeId id) const { return node_[id]; }
  bool live_loop(LoopId id) const { return loop_[id]; }
  bool live_slot(LoopId id, std::size_t slot) const { return slot_[id][slot]; }

 private:
  void need(NodeId id) {
    if (id == no_node || node_[id]) return;
    node_[id] = true;
    pending_.push_back(id);
  }
  void need_loop(LoopId id) {
    if (loop_[id]) return;
    loop_[id] = true;
    need(program_.loops[id].count);
    need(program_.loops[id].until);
  }
  void visit(const Node& node) {
    for (const NodeId arg : node.args) need(arg);
    if (node.kind != Kind::loop_param && node.kind != Kind::loop_result) return;
    need_loop(node.index);
    if (slot_[node.index][node.slot]) return;
    slot_[node.index][node.slot] = true;
    const Carried& carried = program_.loops[node.index].carried[node.slot];
    need(carried.init);
    need(carried.param);
    need(carried.next);
  }

  const Program& program_;
  std::vector<bool> node_;
  std::vector<bool> loop_;
  std::vector<std::vector<bool>> slot_;
  std::vector<NodeId> pending_;
};

// Old numbers of what stays to new ones.
std::vector<std::uint32_t> renumber(std::size_t count,
                                    const std::function<bool(std::uint32_t)>& stays) {
  std::vector<std::uint32_t> place(count, no_node);
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (stays(i)) place[i] = next++;
  }
  return place;
}

}  // namespace

Program prune(const Program& program) {
  const Marker marker(program);
  const auto loop_place =
      renumber(program.loops.size(), [&](std::uint32_t i) { return marker.live_loop(i); });
  std::vector<std::vector<std::uint32_t>> slot_place;
  for (LoopId i = 0; i < program.loops.size(); ++i) {
    slot_place.push_back(renumber(program.loops[i].carried.size(),
                                  [&](std::uint32_t s) { return marker.live_slot(i, s); }));
  }

  Program to;
  to.signature = program.signature;
  to.sizes = program.sizes;
  to.name_types = program.name_types;
  std::vector<NodeId> place(program.graph.size(), no_node);
  for (NodeId id = 0; id < program.graph.size(); ++id) {
    if (!marker.live(id)) continue;
    Node node = program.graph[id];
    for (NodeId& arg : node.args) arg = place[arg];
    if (node.kind == Kind::loop_param || node.kind == Kind::loop_result) {
      node.slot = slot_place[node.index][node.slot];
      node.index = loop_place[node.index];
    }
    place[id] = to.graph.add(std::move(node));
    const auto name = program.names.find(id);
    if (name != program.names.end()) to.names.emplace(place[id], name->second);
    const auto local = program.local_names.find(id);
    if (local != program.local_names.end()) to.local_names.emplace(place[id], local->second);
  }
  const auto at = [&](NodeId id) { return id == no_node ? no_node : place[id]; };
  for (Input input : program.inputs) {
    input.node = at(input.node);
    input.fallback = at(input.fallback);
    to.inputs.push_back(std::move(input));
  }
  for (LoopId i = 0; i < program.loops.size(); ++i) {
    if (!marker.live_loop(i)) continue;
    Loop loop = program.loops[i];
    while (loop.parent != no_loop && !marker.live_loop(loop.parent))
      loop.parent = program.loops[loop.parent].parent;
    if (loop.parent != no_loop) loop.parent = loop_place[loop.parent];
    loop.count = at(loop.count);
    loop.until = at(loop.until);
    loop.carried.clear();
    for (std::size_t s = 0; s < program.loops[i].carried.size(); ++s) {
      if (!marker.live_slot(i, s)) continue;
      Carried carried = program.loops[i].carried[s];
      carried.init = at(carried.init);
      carried.param = at(carried.param);
      carried.next = at(carried.next);
      loop.carried.push_back(std::move(carried));
    }
    to.loops.push_back(std::move(loop));
  }
  for (Output output : program.outputs) {
    output.node = at(output.node);
    to.outputs.push_back(std::move(output));
  }
  for (Output keep : program.keeps) {
    keep.node = at(keep.node);
    to.keeps.push_back(std::move(keep));
  }
  for (Trace trace : program.traces) {
    trace.node = at(trace.node);
    if (trace.loop != no_loop) trace.loop = loop_place[trace.loop];
    to.traces.push_back(std::move(trace));
  }
  return to;
}

}  // namespace starfold::ir

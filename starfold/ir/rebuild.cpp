#include "starfold/ir/ir.h"

namespace starfold::ir {

Program rebuild(const Program& program, const Rewrite& rewrite) {
  Program to;
  to.signature = program.signature;
  to.inputs = program.inputs;
  to.sizes = program.sizes;
  to.loops = program.loops;
  to.outputs = program.outputs;
  to.keeps = program.keeps;
  to.traces = program.traces;
  to.name_types = program.name_types;
  std::vector<NodeId> place(program.graph.size(), no_node);
  for (NodeId id = 0; id < program.graph.size(); ++id) {
    Node node = program.graph[id];
    for (NodeId& arg : node.args) arg = place[arg];
    const bool is_input = node.kind == Kind::input;
    const std::uint32_t index = node.index;
    place[id] = rewrite(to, std::move(node));
    if (is_input) to.inputs[index].node = place[id];  // rewrites may ask for the inputs made so far
    const auto name = program.names.find(id);
    if (name != program.names.end()) to.names.emplace(place[id], name->second);
    const auto local = program.local_names.find(id);
    if (local != program.local_names.end()) to.local_names.emplace(place[id], local->second);
  }
  const auto move = [&](NodeId& id) {
    if (id != no_node) id = place[id];
  };
  for (Input& input : to.inputs) move(input.fallback);
  for (Loop& loop : to.loops) {
    move(loop.count);
    move(loop.until);
    for (Carried& carried : loop.carried) {
      move(carried.init);
      move(carried.param);
      move(carried.next);
    }
  }
  for (Output& output : to.outputs) move(output.node);
  for (Output& keep : to.keeps) move(keep.node);
  for (Trace& trace : to.traces) move(trace.node);
  return to;
}

}  // namespace starfold::ir

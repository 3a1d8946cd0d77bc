// Programs inside nodes.
#include <algorithm>

#include "starfold/ir/ir.h"

namespace starfold::ir {

std::shared_ptr<const Local> make_local(Local local) {
  local.text = print(local.body);
  if (local.batches) local.text += "batches of *" + local.record_set + "\n";
  local.refuses = local.batches || !local.body.loops.empty() || !local.body.traces.empty();
  for (NodeId id = 0; id < local.body.graph.size(); ++id)
    local.refuses = local.refuses || local.body.graph.can_refuse(id);
  return std::make_shared<const Local>(std::move(local));
}

Type seen_inside(const Local& local, const Type& type) {
  if (local.batches || !type.federated() || type.record_set() != client_set) return type;
  return without_axis(type, *type.record_axis());
}

Type seen_outside(const Local& local, const Type& type) {
  return local.batches || type.federated() ? type : with_axis(type, 0, Dim::record(client_set));
}

std::vector<Type> local_types(const Local& local) {
  std::vector<Type> types;
  const std::size_t count = local.batches ? local.states : local.body.outputs.size();
  for (std::size_t i = 0; i < count; ++i)
    types.push_back(seen_outside(local, local.body.graph[local.body.outputs[i].node].type()));
  return types;
}

Program map_blocks(const Program& program, const std::function<Program(const Program&)>& map) {
  return rebuild(program, [&](Program& to, Node node) {
    if (node.block) {
      Local local = *node.block;
      local.body = map(map_blocks(local.body, map));
      node.block = make_local(std::move(local));
    }
    return to.graph.add(std::move(node));
  });
}

// Loops make it a fixed point: a state that is split after one iteration is split in the next.
std::vector<bool> find_split(const Program& program) {
  std::vector<bool> split(program.graph.size());
  const auto is = [&](NodeId id) { return id != no_node && split[id]; };
  for (bool changed = true; changed;) {
    changed = false;
    for (NodeId id = 0; id < program.graph.size(); ++id) {
      if (split[id]) continue;
      const Node& node = program.graph[id];
      bool now = node.kind == Kind::local || std::any_of(node.args.begin(), node.args.end(), is);
      if (node.kind == Kind::loop_param || node.kind == Kind::loop_result) {
        const Loop& loop = program.loops[node.index];
        const Carried& carried = loop.carried[node.slot];
        // How often a loop runs is part of what its states are.
        now = now || node.federated() || is(carried.init) || is(carried.next) || is(loop.count) ||
              is(loop.until);
      }
      split[id] = now;
      changed = changed || now;
    }
  }
  return split;
}

}  // namespace starfold::ir

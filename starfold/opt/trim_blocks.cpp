// Blocks give out what is read of them and see what they need.
#include <algorithm>

#include "starfold/opt/passes.h"

namespace starfold::opt {
namespace {

using ir::Kind;
using ir::NodeId;

// Which inputs of a program anything reads.
std::vector<bool> read_inputs(const ir::Program& program) {
  std::vector<bool> read(program.inputs.size());
  const auto note = [&](NodeId id) {
    if (id != ir::no_node && program.graph[id].kind == Kind::input)
      read[program.graph[id].index] = true;
  };
  for (NodeId id = 0; id < program.graph.size(); ++id) {
    for (const NodeId arg : program.graph[id].args) note(arg);
  }
  for (const ir::Loop& loop : program.loops) {
    note(loop.count);
    note(loop.until);
    for (const ir::Carried& carried : loop.carried) {
      note(carried.init);
      note(carried.next);
    }
  }
  for (const ir::Output& output : program.outputs) note(output.node);
  for (const ir::Trace& trace : program.traces) note(trace.node);
  return read;
}

// Batches keep a value that counts their records.
void keep_counter(const ir::Local& block, std::vector<bool>& read) {
  const auto counts = [&](std::size_t i) {
    const Type& type = block.body.inputs[i].type;
    return type.federated() && type.record_set() == block.record_set;
  };
  for (std::size_t i = 0; i < read.size(); ++i) read[i] = read[i] || i < block.states;
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (counts(i) && read[i]) return;
  }
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (!counts(i)) continue;
    read[i] = true;
    return;
  }
}

ir::Node without_unread_inputs(ir::Node node) {
  ir::Local block = *node.block;
  block.body = ir::prune(block.body);
  std::vector<bool> read = read_inputs(block.body);
  if (block.batches) keep_counter(block, read);
  for (const ir::Input& input : block.body.inputs) {
    if (read[static_cast<std::size_t>(&input - block.body.inputs.data())]) continue;
    block.body.names.erase(input.node);
    block.body.local_names.erase(input.node);
  }
  std::vector<std::uint32_t> place(read.size());
  std::vector<ir::Input> inputs;
  std::vector<NodeId> args(node.args.begin(),
                           node.args.begin() + static_cast<std::ptrdiff_t>(block.first_input()));
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (!read[i]) continue;
    place[i] = static_cast<std::uint32_t>(inputs.size());
    inputs.push_back(block.body.inputs[i]);
    args.push_back(node.args[block.first_input() + i]);
  }
  ir::Program body = ir::rebuild(block.body, [&](ir::Program& to, ir::Node inner) {
    // An input that nothing reads leaves a node behind which the next pruning takes.
    if (inner.kind != Kind::input) return to.graph.add(std::move(inner));
    if (!read[inner.index]) return NodeId{0};
    inner.index = place[inner.index];
    return to.graph.add(std::move(inner));
  });
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i]) inputs[place[i]].node = body.inputs[i].node;
  }
  body.inputs = std::move(inputs);
  block.body = std::move(body);
  node.args = std::move(args);
  node.block = ir::make_local(std::move(block));
  return node;
}

}  // namespace

ir::Program trim_blocks(const ir::Program& program) {
  // Results that are read, by block; one of a single result is read as a whole.
  std::map<NodeId, std::vector<std::uint32_t>> wanted;
  for (NodeId id = 0; id < program.graph.size(); ++id) {
    const ir::Node& node = program.graph[id];
    if (node.block && node.types.size() > 1) wanted[id];
    if (node.kind != Kind::project || !program.graph[node.args[0]].block) continue;
    wanted[node.args[0]].push_back(node.index);
  }
  NodeId old = 0;
  std::map<NodeId, std::vector<std::uint32_t>>
      left;  // by block as it was: its results that are left
  return ir::rebuild(program, [&](ir::Program& to, ir::Node node) {
    const NodeId id = old++;
    const auto trimmed =
        node.kind == Kind::project ? left.find(program.graph[id].args[0]) : left.end();
    if (trimmed != left.end()) {
      const std::vector<std::uint32_t>& results = trimmed->second;
      if (results.size() == 1) return node.args[0];
      node.index = static_cast<std::uint32_t>(
          std::find(results.begin(), results.end(), node.index) - results.begin());
      return to.graph.add(std::move(node));
    }
    if (!node.block) return to.graph.add(std::move(node));
    std::vector<std::uint32_t> results;
    const auto found = wanted.find(id);
    if (!node.block->batches && found != wanted.end() && !found->second.empty()) {
      results = found->second;
      std::sort(results.begin(), results.end());
      ir::Local block = *node.block;
      std::vector<ir::Output> outputs;
      for (const std::uint32_t result : results) outputs.push_back(block.body.outputs[result]);
      block.body.outputs = std::move(outputs);
      node.types = ir::local_types(block);
      node.block = ir::make_local(std::move(block));
    }
    const NodeId added = to.graph.add(without_unread_inputs(std::move(node)));
    if (!results.empty()) left[id] = std::move(results);
    return added;
  });
}

}  // namespace starfold::opt

// Maps of records move into the blocks that read them.
#include <fmt/format.h>

#include <algorithm>

#include "starfold/ir/ir.h"

namespace starfold::ir {
namespace {

// An application that is computed record by record. Values per client are seen as something else inside, and stay.
bool is_map(const Node& node) {
  return node.kind == Kind::apply && node.federated() && node.types.size() == 1 &&
         node.op->family != Family::differentiation && node.type().record_set() != client_set;
}

class Inliner {
 public:
  Inliner(const Program& outer, const Node& local, const std::function<bool(NodeId)>& moves)
      : outer_(outer), local_(local), moves_(moves) {}

  Node run() {
    const Local& block = *local_.block;
    Node result = local_;
    result.args.assign(local_.args.begin(),
                       local_.args.begin() + static_cast<std::ptrdiff_t>(block.first_input()));
    Local moved = block;
    moved.body = rebuild(block.body, [&](Program& to, Node node) {
      if (node.kind != Kind::input) return to.graph.add(std::move(node));
      // States come first, each an input of its own.
      while (inputs_.size() < block.states) add_input(to, inputs_.size());
      if (node.index < block.states) return inputs_[node.index].node;
      return import(to, local_.args[block.first_input() + node.index],
                    block.body.inputs[node.index]);
    });
    moved.body.inputs = std::move(inputs_);
    result.args.insert(result.args.end(), operands_.begin(), operands_.end());
    result.block = make_local(std::move(moved));
    return result;
  }

 private:
  void add_input(Program& to, std::size_t index) {
    const Input& input = local_.block->body.inputs[index];
    append(to, local_.args[local_.block->first_input() + index], input.name, input.type,
           input.span);
  }

  NodeId append(Program& to, NodeId operand, std::string name, const Type& type, Span span) {
    const auto taken = [&] {
      return std::any_of(inputs_.begin(), inputs_.end(),
                         [&](const Input& other) { return other.name == name; });
    };
    for (int number = 2; taken(); ++number) name = fmt::format("{}_{}", name, number);
    Node node;
    node.kind = Kind::input;
    node.types = {type};
    node.index = static_cast<std::uint32_t>(inputs_.size());
    node.span = span;
    const NodeId id = to.graph.add(std::move(node));
    inputs_.push_back({std::move(name), type, id, no_node, span});
    operands_.push_back(operand);
    return id;
  }

  NodeId import(Program& to, NodeId id, const Input& seen) {
    if (const auto known = inside_.find(id); known != inside_.end()) return known->second;
    const Node& node = outer_.graph[id];
    if (is_map(node) && moves_(id)) return copy(to, id);
    return inside_[id] = append(to, id, seen.name, seen.type, seen.span);
  }

  // A map and the maps that it is made of, each after its operands; what they read becomes inputs.
  NodeId copy(Program& to, NodeId root) {
    std::vector<NodeId> pending = {root};
    while (!pending.empty()) {
      const NodeId id = pending.back();
      const Node& node = outer_.graph[id];
      if (inside_.count(id) != 0) {
        pending.pop_back();
        continue;
      }
      if (node.kind == Kind::constant || node.kind == Kind::size) {
        inside_[id] = to.graph.add(node);
        continue;
      }
      if (!is_map(node) || !moves_(id)) {
        const auto name = outer_.names.find(id);
        inside_[id] = append(
            to, id,
            name != outer_.names.end() ? name->second : fmt::format("v{}", inputs_.size() + 1),
            seen_inside(*local_.block, node.type()), node.span);
        continue;
      }
      bool ready = true;
      for (const NodeId arg : node.args) {
        if (inside_.count(arg) != 0) continue;
        pending.push_back(arg);
        ready = false;
      }
      if (!ready) continue;
      Node moved = node;
      for (NodeId& arg : moved.args) arg = inside_.at(arg);
      inside_[id] = to.graph.add(std::move(moved));
      const auto name = outer_.names.find(id);
      if (name != outer_.names.end()) to.names.emplace(inside_[id], name->second);
    }
    return inside_.at(root);
  }

  const Program& outer_;
  const Node& local_;
  const std::function<bool(NodeId)>& moves_;
  std::vector<Input> inputs_;
  std::vector<NodeId> operands_;
  std::map<NodeId, NodeId> inside_;  // nodes of the outer program by what they are inside
};

}  // namespace

Node inline_maps(const Program& outer, const Node& local,
                 const std::function<bool(NodeId)>& moves) {
  return Inliner(outer, local, moves).run();
}

}  // namespace starfold::ir

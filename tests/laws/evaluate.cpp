#include "tests/laws/evaluate.h"

#include <algorithm>

#include "starfold/base/error.h"
#include "starfold/runtime/apply.h"

namespace starfold::laws {

using ir::Kind;
using ir::LoopId;
using ir::NodeId;

Tensor concatenated(const std::vector<Tensor>& parts, std::size_t axis) {
  Tensor whole;
  whole.shape = parts.front().shape;
  whole.data.clear();
  whole.shape[axis] = 0;
  std::int64_t outer = 1;
  for (std::size_t k = 0; k < axis; ++k) outer *= whole.shape[k];
  for (const Tensor& part : parts) whole.shape[axis] += part.shape[axis];
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const Tensor& part : parts) {
      const std::int64_t length = part.count() / outer;
      const auto begin = part.data.begin() + o * length;
      whole.data.insert(whole.data.end(), begin, begin + length);
    }
  }
  return whole;
}

Distributed::Distributed(const ir::Program& program, const Federation& federation)
    : program_(ir::prune(program)),
      homes_(ir::find_homes(program_)),
      federation_(federation),
      values_(program_.graph.size()) {
  sizes_ = bind_settings(program_, federation.settings);
  for (const Client& client : federation.clients) sizes_ = bind_client(program_, client, sizes_);
  require_sizes(program_, sizes_);
}

void Distributed::run(const Visit& visit) {
  visit_ = visit;
  region(ir::no_loop);
}

void Distributed::region(LoopId at) {
  std::vector<bool> ran(program_.loops.size());
  for (NodeId id = 0; id < program_.graph.size(); ++id) {
    const ir::Node& node = program_.graph[id];
    if (homes_.of_node[id] != at || node.kind == Kind::loop_param) continue;
    if (node.kind == Kind::loop_result) {
      if (!ran[node.index]) loop(node.index);
      ran[node.index] = true;
      values_[id] = {{states_[node.index][node.slot]}, {}};
    } else {
      values_[id] = evaluate(node);
    }
    if (visit_) visit_(id);
  }
  for (LoopId each = 0; each < program_.loops.size(); ++each) {
    if (homes_.of_loop[each] == at && !ran[each]) loop(each);
  }
}

void Distributed::loop(LoopId id) {
  const ir::Loop& loop = program_.loops[id];
  std::vector<Tensor>& states = states_[id];
  states.clear();
  const auto shared = [&](NodeId node) -> const Tensor& { return values_[node].shared.at(0); };
  for (const ir::Carried& carried : loop.carried) states.push_back(shared(carried.init));
  const std::int64_t limit = iteration_limit(shared(loop.count).item(), loop);
  for (std::int64_t i = 0; i < limit; ++i) {
    for (std::size_t s = 0; s < states.size(); ++s)
      values_[loop.carried[s].param] = {{states[s]}, {}};
    region(id);
    for (std::size_t s = 0; s < states.size(); ++s) states[s] = shared(loop.carried[s].next);
    if (loop.until != ir::no_node && shared(loop.until).item() != 0) break;
  }
}

std::vector<Tensor> Distributed::ordinary(const ir::Node& node) const {
  std::vector<Tensor> joined(node.args.size());
  std::vector<const Tensor*> args;
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    const NodeId arg = node.args[i];
    const std::optional<std::size_t> axis = program_.graph[arg].type().record_axis();
    joined[i] = axis ? concatenated(values_[arg].local, *axis) : values_[arg].shared.at(0);
    args.push_back(&joined[i]);
  }
  return apply(program_, node, std::move(args), sizes_);
}

void Distributed::compute(NodeId id) { values_[id] = evaluate(program_.graph[id]); }

NodeValue Distributed::evaluate(const ir::Node& node) const {
  switch (node.kind) {
    case Kind::constant:
    case Kind::size:
      return {{leaf_value(node, sizes_)}, {}};
    case Kind::variable:
      return values_[node.args[0]];
    case Kind::project:
      return {{values_[node.args[0]].shared.at(node.index)}, {}};
    case Kind::input: {
      const ir::Input& input = program_.inputs[node.index];
      if (!input.type.federated()) {
        const auto set = federation_.settings.shared.find(input.name);
        if (set != federation_.settings.shared.end()) return {{set->second}, {}};
        return values_[input.fallback];
      }
      NodeValue value;
      for (const Client& client : federation_.clients)
        value.local.push_back(client.arrays.at(input.name));
      return value;
    }
    case Kind::apply:
      break;
    default:
      throw Bug("a loop value was evaluated as an expression");
  }
  if (!node.federated()) return {ordinary(node), {}};
  NodeValue value;
  for (std::size_t c = 0; c < federation_.clients.size(); ++c) {
    std::vector<const Tensor*> args;
    for (const NodeId arg : node.args) {
      args.push_back(program_.graph[arg].federated() ? &values_[arg].local.at(c)
                                                     : &values_[arg].shared.at(0));
    }
    value.local.push_back(apply(program_, node, std::move(args), sizes_).front());
  }
  return value;
}

}  // namespace starfold::laws

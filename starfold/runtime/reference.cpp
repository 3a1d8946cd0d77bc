#include "starfold/runtime/reference.h"

#include <fmt/format.h>

#include <cmath>

#include "starfold/base/error.h"
#include "starfold/runtime/apply.h"
#include "starfold/runtime/demand.h"
#include "starfold/tensor/axis_view.h"

namespace starfold {
namespace {

using ir::Kind;
using ir::LoopId;
using ir::NodeId;

class Reference {
 public:
  Reference(const ir::Program& program, const std::vector<Client>& clients,
            const Settings& settings)
      : program_(ir::prune(program)),
        homes_(ir::find_homes(program_)),
        demands_(demands_of(program_)),
        clients_(clients),
        settings_(settings) {
    sizes_ = bind_settings(program_, settings);
    const SizeValues set = sizes_;
    for (const Client& client : clients) bind(client, set);
    require_sizes(program_, sizes_);
    require_shapes(program_, settings, sizes_);
    require_memory(program_, settings, sizes_);
    values_.resize(program_.graph.size());
    nodes_.resize(program_.loops.size() + 1);
    for (NodeId id = 0; id < program_.graph.size(); ++id)
      nodes_[slot(homes_.of_node[id])].push_back(id);
    results_.iterations.resize(program_.loops.size());
  }

  Results run() {
    evaluate_region(ir::no_loop);
    for (const ir::Output& output : program_.outputs)
      results_.outputs[output.name] = value(output.node);
    return std::move(results_);
  }

 private:
  // A client's sizes as a node finds them, and in its words: from what was set and its own data.
  void bind(const Client& client, const SizeValues& set) {
    const SizeValues own = bind_client(program_, client, set);
    try {
      require_sizes(program_, own);
    } catch (const RunError& error) {
      const std::string words = fmt::format("client {}: {}", client.name, error.what());
      throw error.where() ? RunError(words, *error.where()) : RunError(words);
    }
    for (const auto& [name, value] : own) {
      const auto [known, fresh] = sizes_.emplace(name, value);
      if (fresh) size_from_[name] = client.name;
      if (known->second == value) continue;
      throw RunError(
          fmt::format("clients disagree on the size {}: client {} has {}, client {} has {}", name,
                      size_from_[name], known->second, client.name, value));
    }
  }

  static std::size_t slot(LoopId loop) { return loop == ir::no_loop ? 0 : loop + 1; }
  const Tensor& value(NodeId id) const {
    if (values_[id].empty())
      throw Bug(fmt::format("the value of node %{} was read before it was computed", id));
    return values_[id].front();
  }

  // All nodes and loops at home in a region, in an order where operands come first.
  void evaluate_region(LoopId region) {
    std::vector<bool> ran(program_.loops.size());
    for (const NodeId id : nodes_[slot(region)]) {
      const ir::Node& node = program_.graph[id];
      if (node.kind == Kind::loop_param) continue;
      if (node.kind == Kind::loop_result) {
        if (!ran[node.index]) run_loop(node.index);
        ran[node.index] = true;
        values_[id] = {loop_values_[node.index][node.slot]};
      } else {
        values_[id] = evaluate(node);
      }
      check(id, region);
    }
    // Loops that are only traced have no result that would have called for them.
    for (LoopId loop = 0; loop < program_.loops.size(); ++loop) {
      if (homes_.of_loop[loop] == region && !ran[loop]) run_loop(loop);
    }
    for (std::size_t i = 0; i < program_.traces.size(); ++i) {
      const ir::Trace& trace = program_.traces[i];
      if (trace.loop != region) continue;
      if (trace.kind != ir::Trace::Kind::record) {
        demand(program_, i, value(trace.node), results_);
      } else {
        results_.traces[trace.name].push_back(value(trace.node).item());
      }
    }
  }

  // What must hold is asked as soon as it is known.
  void check(NodeId id, LoopId region) {
    const auto [begin, end] = demands_.equal_range(id);
    for (auto it = begin; it != end; ++it) {
      if (program_.traces[it->second].loop == region)
        demand(program_, it->second, value(id), results_);
    }
  }

  void run_loop(LoopId id) {
    const ir::Loop& loop = program_.loops[id];
    const std::int64_t limit = iteration_limit(value(loop.count).item(), loop);
    std::vector<Tensor>& states = loop_values_[id];
    states.clear();
    for (const ir::Carried& carried : loop.carried) states.push_back(value(carried.init));
    for (std::int64_t i = 0; i < limit; ++i) {
      for (std::size_t s = 0; s < states.size(); ++s) values_[loop.carried[s].param] = {states[s]};
      evaluate_region(id);
      for (std::size_t s = 0; s < states.size(); ++s) states[s] = value(loop.carried[s].next);
      ++results_.iterations[id];
      if (loop.until != ir::no_node && value(loop.until).item() != 0) break;
    }
  }

  std::vector<Tensor> evaluate(const ir::Node& node) {
    switch (node.kind) {
      case Kind::constant:
      case Kind::size:
        return {leaf_value(node, sizes_)};
      case Kind::input:
        return {input(program_.inputs[node.index])};
      case Kind::variable:
        return values_[node.args[0]];
      case Kind::project:
        return {values_[node.args[0]][node.index]};
      case Kind::apply: {
        std::vector<const Tensor*> args;
        for (const NodeId arg : node.args) args.push_back(&value(arg));
        return apply(program_, node, std::move(args), sizes_);
      }
      default:
        throw Bug("a loop value was evaluated as an expression");
    }
  }

  Tensor input(const ir::Input& declared) const {
    if (declared.type.federated()) return virtual_global(declared, clients_, sizes_);
    const auto set = settings_.shared.find(declared.name);
    return set != settings_.shared.end() ? set->second : value(declared.fallback);
  }

  ir::Program program_;
  ir::Homes homes_;
  Demands demands_;
  const std::vector<Client>& clients_;
  const Settings& settings_;
  SizeValues sizes_;
  std::map<std::string, std::string> size_from_;  // the client that a size was first known from
  std::vector<std::vector<Tensor>> values_;
  std::vector<std::vector<NodeId>> nodes_;  // by region, region 0 outside all loops
  std::map<LoopId, std::vector<Tensor>> loop_values_;
  Results results_;
};

}  // namespace

std::int64_t iteration_limit(double count, const ir::Loop& loop) {
  constexpr double most = 9007199254740992.0;
  const auto refuse = [&](const char* why) {
    throw RunError(fmt::format("the number of iterations {}", why), loop.span);
  };
  if (std::isnan(count)) refuse("is nan");
  if (count < 0) refuse("is negative");
  if (count > most) refuse("is too large: it can be at most 9007199254740992");
  if (count != std::floor(count)) refuse("is not a whole number");
  return static_cast<std::int64_t>(count);
}

Tensor virtual_global(const ir::Input& input, const std::vector<Client>& clients,
                      const SizeValues& sizes) {
  const std::size_t axis = *input.type.record_axis();
  std::vector<Tensor> from_tables(clients.size());
  std::vector<const Tensor*> parts;
  for (const Client& client : clients) {
    Tensor& read = from_tables[parts.size()];
    if (client.table) read = client.array(input);
    parts.push_back(client.table ? &read : &client.arrays.at(input.name));
  }
  if (!parts.empty()) return join_along(axis, parts);
  Shape none = cell_shape(input.type, sizes);
  none.insert(none.begin() + static_cast<std::ptrdiff_t>(axis), 0);
  return Tensor(std::move(none));
}

Results evaluate_reference(const ir::Program& program, const std::vector<Client>& clients,
                           const Settings& settings) {
  return Reference(program, clients, settings).run();
}

}  // namespace starfold

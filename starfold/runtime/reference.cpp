#include "starfold/runtime/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "starfold/base/error.h"
#include "starfold/runtime/apply.h"
#include "starfold/runtime/demand.h"
#include "starfold/tensor/axis_view.h"
#include "starfold/tensor/random_bits.h"

namespace starfold {
namespace {

using ir::Kind;
using ir::LoopId;
using ir::NodeId;

// How many records each client has, by record set: where the parts of a virtual global tensor end.
using Partition = std::map<std::string, std::vector<std::int64_t>>;

// A program on tensors that hold the records of all clients of a federation, or of one.
class Evaluator {
 public:
  // The value of an input; its default where there is none.
  using InputValue = std::function<std::optional<Tensor>(std::uint32_t)>;
  // `program` has nothing that no result needs.
  Evaluator(const ir::Program& program, const SizeValues& sizes, const Partition& partition,
            std::size_t clients, InputValue input)
      : program_(program),
        homes_(ir::find_homes(program_)),
        sizes_(sizes),
        partition_(partition),
        clients_(clients),
        input_(std::move(input)),
        demands_(demands_of(program_)) {
    values_.resize(program_.graph.size());
    nodes_.resize(program_.loops.size() + 1);
    for (NodeId id = 0; id < program_.graph.size(); ++id)
      nodes_[slot(homes_.of_node[id])].push_back(id);
    results_.iterations.resize(program_.loops.size());
    evaluate_region(ir::no_loop);
  }

  const Tensor& value(NodeId id) const {
    if (values_[id].empty())
      throw Bug(fmt::format("the value of node %{} was read before it was computed", id));
    return values_[id].front();
  }
  // The part of a federated value that one client has.
  Tensor part(NodeId id, std::size_t client) const {
    const Type& type = program_.graph[id].type();
    const std::vector<std::int64_t>& counts = partition_.at(type.record_set());
    const std::int64_t first = std::accumulate(
        counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(client), std::int64_t{0});
    return slices_between(value(id), *type.record_axis(), first, first + counts[client]);
  }
  Results take() { return std::move(results_); }

 private:
  static std::size_t slot(LoopId loop) { return loop == ir::no_loop ? 0 : loop + 1; }

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
      case Kind::input: {
        std::optional<Tensor> given = input_(node.index);
        return {given ? std::move(*given) : value(program_.inputs[node.index].fallback)};
      }
      case Kind::variable:
        return values_[node.args[0]];
      case Kind::project:
        return {values_[node.args[0]][node.index]};
      case Kind::local:
        return node.block->batches ? batches(node) : each_client(node);
      case Kind::apply: {
        std::vector<const Tensor*> args;
        for (const NodeId arg : node.args) args.push_back(&value(arg));
        return apply(program_, node, std::move(args), sizes_);
      }
      default:
        throw Bug("a loop value was evaluated as an expression");
    }
  }

  // A block client by client, each on its own part.
  std::vector<Tensor> each_client(const ir::Node& node) const {
    const ir::Program body = ir::prune(node.block->body);
    std::vector<std::vector<Tensor>> parts(body.outputs.size());
    for (std::size_t client = 0; client < clients_; ++client) {
      Partition own;
      for (const auto& [record_set, counts] : partition_) own[record_set] = {counts[client]};
      std::optional<Evaluator> inside;
      try {
        inside.emplace(body, sizes_, own, 1, [&](std::uint32_t index) {
          return std::optional(seen_by(client, node.args[index]));
        });
      } catch (const Unmet& unmet) {  // a condition of the block, not one of the program around it
        throw RunError(unmet.what(), unmet.where().value_or(node.span));
      }
      for (std::size_t i = 0; i < body.outputs.size(); ++i) {
        Tensor value = inside->value(body.outputs[i].node);
        if (!body.graph[body.outputs[i].node].federated())
          value.shape.insert(value.shape.begin(), 1);
        parts[i].push_back(std::move(value));
      }
    }
    std::vector<Tensor> results;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::size_t axis = *node.types[i].record_axis();
      std::vector<const Tensor*> all;
      for (const Tensor& part : parts[i]) all.push_back(&part);
      Shape none = cell_shape(node.types[i], sizes_);
      none.insert(none.begin() + static_cast<std::ptrdiff_t>(axis), 0);
      results.push_back(all.empty() ? Tensor(none) : join_along(axis, all));
    }
    return results;
  }

  // An operand as a client sees it: a value per client is its own row.
  Tensor seen_by(std::size_t client, NodeId operand) const {
    const Type& type = program_.graph[operand].type();
    if (!type.federated()) return value(operand);
    Tensor own = part(operand, client);
    if (type.record_set() == ir::client_set)
      own.shape.erase(own.shape.begin() + static_cast<std::ptrdiff_t>(*type.record_axis()));
    return own;
  }

  // One pass over the records of a client, in an order drawn from the seed.
  std::vector<Tensor> batches(const ir::Node& node) const {
    const ir::Local& block = *node.block;
    const ir::Program body = ir::prune(block.body);
    const std::size_t size = batch_size(value(node.args[0]).item(), node.span);
    const Seed seed = seed_of(value(node.args[1]).item(), "batches");
    const auto records = static_cast<std::size_t>(partition_.at(block.record_set).front());
    const std::vector<std::uint32_t> order = shuffled(records, seed, Stream::batches);
    std::vector<Tensor> states;
    for (std::size_t i = 0; i < block.states; ++i)
      states.push_back(value(node.args[block.first_input() + i]));
    for (std::size_t first = 0; first < records; first += size) {
      const std::span<const std::uint32_t> batch =
          std::span(order).subspan(first, std::min(size, records - first));
      Partition own = partition_;
      own[block.record_set] = {static_cast<std::int64_t>(batch.size())};
      const Evaluator inside(body, sizes_, own, 1, [&](std::uint32_t index) {
        if (index < block.states) return std::optional(states[index]);
        const NodeId operand = node.args[block.first_input() + index];
        const Type& type = program_.graph[operand].type();
        const bool drawn = type.federated() && type.record_set() == block.record_set;
        return std::optional(drawn ? pick_slices(value(operand), *type.record_axis(), batch)
                                   : value(operand));
      });
      for (std::size_t i = 0; i < block.states; ++i) states[i] = inside.value(body.outputs[i].node);
      if (body.outputs.size() > block.states && inside.value(body.outputs.back().node).item() != 0)
        break;
    }
    return states;
  }

  const ir::Program& program_;
  ir::Homes homes_;
  const SizeValues& sizes_;
  const Partition& partition_;
  std::size_t clients_;
  InputValue input_;
  Demands demands_;
  std::vector<std::vector<Tensor>> values_;
  std::vector<std::vector<NodeId>> nodes_;  // by region, region 0 outside all loops
  std::map<LoopId, std::vector<Tensor>> loop_values_;
  Results results_;
};

// A whole program, with data.
class Reference {
 public:
  Reference(const ir::Program& program, const std::vector<Client>& clients,
            const Settings& settings)
      : program_(ir::prune(program)), clients_(clients), settings_(settings) {
    sizes_ = bind_settings(program_, settings);
    const SizeValues set = sizes_;
    partition_[ir::client_set];
    for (const Client& client : clients) bind(client, set);
    require_sizes(program_, sizes_);
    require_shapes(program_, settings, sizes_);
    require_memory(program_, settings, sizes_);
  }

  Results run() {
    Evaluator evaluator(program_, sizes_, partition_, clients_.size(), [&](std::uint32_t index) {
      const ir::Input& input = program_.inputs[index];
      if (input.type.federated()) return std::optional(virtual_global(input, clients_, sizes_));
      const auto set = settings_.shared.find(input.name);
      return set != settings_.shared.end() ? std::optional(set->second) : std::nullopt;
    });
    std::map<std::string, Tensor> outputs;
    std::map<std::string, std::vector<Tensor>> kept;
    for (const ir::Output& output : program_.outputs)
      outputs[output.name] = evaluator.value(output.node);
    for (const ir::Output& keep : program_.keeps) {
      for (std::size_t client = 0; client < clients_.size(); ++client)
        kept[keep.name].push_back(evaluator.part(keep.node, client));
    }
    Results results = evaluator.take();
    results.outputs = std::move(outputs);
    results.kept = std::move(kept);
    return results;
  }

 private:
  // A client's sizes as a node finds them, and in its words: from what was set and its own data.
  void bind(const Client& client, const SizeValues& set) {
    const SizeValues own = bind_client(program_, client, set);
    for (const auto& [record_set, count] : record_counts(program_, client)) {
      if (record_set != ir::client_set) partition_[record_set].push_back(count);
    }
    partition_[ir::client_set].push_back(1);
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

  ir::Program program_;
  const std::vector<Client>& clients_;
  const Settings& settings_;
  SizeValues sizes_;
  Partition partition_;
  std::map<std::string, std::string> size_from_;  // the client that a size was first known from
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

std::size_t batch_size(double size, Span where) {
  constexpr double most = 4294967295.0;
  if (!(size >= 1) || size != std::floor(size))
    throw RunError("the size of a batch must be a whole number of at least 1", where);
  return static_cast<std::size_t>(std::min(size, most));
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

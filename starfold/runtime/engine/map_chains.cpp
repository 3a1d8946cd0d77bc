#include "starfold/runtime/engine/map_chains.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "starfold/runtime/apply.h"
#include "starfold/runtime/kernels/kernels.h"

namespace starfold {
namespace {

using ir::NodeId;

// The four that all programs are full of; others are called for each entry.
bool has_kernel(const Op& op) {
  return op.standard && op.name.size() == 1 &&
         std::string_view("+-*/").find(op.name[0]) != std::string_view::npos;
}

const kernels::Binary& kernel_of(const Op& op) {
  static const kernels::Binary add = kernels::binary("+");
  static const kernels::Binary subtract = kernels::binary("-");
  static const kernels::Binary multiply = kernels::binary("*");
  static const kernels::Binary divide = kernels::binary("/");
  switch (op.name[0]) {
    case '+':
      return add;
    case '-':
      return subtract;
    case '*':
      return multiply;
    default:
      return divide;
  }
}

bool is_map(const ir::Node& node) {
  if (node.kind != ir::Kind::apply || node.types.size() != 1 || node.federated()) return false;
  const Op& op = *node.op;
  return (node.args.size() == 1 && op.map1 != nullptr && op.kernel == Kernel::unary) ||
         (node.args.size() == 2 && op.map2 != nullptr && op.kernel == Kernel::binary);
}

// A map of values of its own shape and of numbers.
bool is_plain(const ir::Program& program, NodeId id) {
  const ir::Node& node = program.graph[id];
  if (!is_map(node) || node.type().dims.empty()) return false;
  return std::all_of(node.args.begin(), node.args.end(), [&](NodeId arg) {
    const Type& type = program.graph[arg].type();
    return type.dims.empty() || type == node.type();
  });
}

// How many ask for each value: nodes, each time, and whoever is not one.
std::vector<int> count_readers(const ir::Program& program) {
  std::vector<int> readers(program.graph.size());
  const auto note = [&](NodeId id) {
    if (id != ir::no_node) ++readers[id];
  };
  for (NodeId id = 0; id < program.graph.size(); ++id) {
    for (const NodeId arg : program.graph[id].args) note(arg);
  }
  // Twice, so that it is more than the one reader of a value that passes.
  const auto keep = [&](NodeId id) {
    note(id);
    note(id);
  };
  for (const ir::Input& input : program.inputs) keep(input.fallback);
  for (const ir::Output& output : program.outputs) keep(output.node);
  for (const ir::Output& kept : program.keeps) keep(kept.node);
  for (const ir::Trace& trace : program.traces) keep(trace.node);
  for (const ir::Loop& loop : program.loops) {
    keep(loop.count);
    keep(loop.until);
    for (const ir::Carried& carried : loop.carried) {
      keep(carried.init);
      keep(carried.next);
    }
  }
  return readers;
}

}  // namespace

void map_entries(const Op& op, MapOperand a, MapOperand b, double* out, std::size_t count) {
  const auto one = [&](std::size_t i) {
    return op.map2(a.entries[a.number ? 0 : i], b.entries[b.number ? 0 : i]);
  };
  std::size_t done = 0;
  if (has_kernel(op)) {
    const kernels::Binary& kernel = kernel_of(op);
    done = count / kernels::kPad * kernels::kPad;  // they take whole groups
    if (a.number && b.number) {
      std::fill_n(out, done, one(0));
    } else if (a.number) {
      kernel.number_left(op.map2, *a.entries, b.entries, out, done);
    } else if (b.number) {
      kernel.number_right(op.map2, a.entries, *b.entries, out, done);
    } else {
      kernel.columns(op.map2, a.entries, b.entries, out, done);
    }
  }
  for (std::size_t i = done; i < count; ++i) out[i] = one(i);
}

void map_entries(const Op& op, const double* a, double* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = op.map1(a[i]);
}

class MapChains::Finding {
 public:
  Finding(const Plan& plan, const SizeValues& sizes, MapChains& chains)
      : program_(plan.program),
        sizes_(sizes),
        readers_(count_readers(plan.program)),
        chains_(chains) {
    find(plan.body);
  }

 private:
  void find(const Block& block) {
    find_in(block.prelude);
    for (const Step& step : block.steps) {
      find_in(step.decoder);
      if (const auto* loop = std::get_if<LoopStep>(&step.action)) find(loop->body.front());
    }
  }

  // Fewer entries stay in the cache by themselves.
  bool is_long(NodeId id) const {
    constexpr std::int64_t least = 2048;
    return is_plain(program_, id) &&
           element_count(cell_shape(program_.graph[id].type(), sizes_)) >= least;
  }

  void find_in(const std::vector<NodeId>& nodes) {
    constexpr std::size_t longest = 64;  // maps: a chain is found by recursion
    const std::set<NodeId> here(nodes.begin(), nodes.end());
    std::map<NodeId, std::size_t> lengths;  // of those that end at a map
    std::vector<NodeId> readers;
    for (const NodeId id : nodes) {
      if (!is_long(id)) continue;
      std::size_t& length = lengths[id] = 1;
      for (const NodeId arg : program_.graph[id].args) {
        const std::size_t before = lengths.count(arg) != 0 ? lengths[arg] : 1;
        const bool passes = readers_[arg] == 1 && is_plain(program_, arg) && here.count(arg) != 0 &&
                            program_.graph[arg].type() == program_.graph[id].type() &&
                            length + before <= longest;
        chains_.passing_[arg] = passes;
        length += passes ? before : 0;
      }
      if (length > 1) readers.push_back(id);
    }
    for (const NodeId id : readers) {
      if (!chains_.passes(id)) add(id, chains_.chains_[id]);
    }
  }

  // Its place in the chain.
  int add(NodeId id, Chain& chain) const {
    const ir::Node& node = program_.graph[id];
    Map map{node.op, {}};
    for (const NodeId arg : node.args) {
      Operand operand;
      operand.node = arg;
      operand.number = program_.graph[arg].type().dims.empty();
      if (chains_.passes(arg)) operand.map = add(arg, chain);
      map.args.push_back(operand);
    }
    chain.push_back(std::move(map));
    return static_cast<int>(chain.size()) - 1;
  }

  const ir::Program& program_;
  const SizeValues& sizes_;
  const std::vector<int> readers_;
  MapChains& chains_;
};

MapChains::MapChains(const Plan& plan, const SizeValues& sizes)
    : passing_(plan.program.graph.size()) {
  Finding(plan, sizes, *this);
}

bool MapChains::compute(NodeId id, const Value& value,
                        const std::function<Tensor&()>& result) const {
  const auto found = chains_.find(id);
  if (found == chains_.end()) return false;
  const Chain& chain = found->second;
  constexpr std::size_t strip = 512;
  std::vector<double> strips((chain.size() - 1) * strip);
  const auto made_by = [&](std::size_t map) { return strips.data() + map * strip; };
  std::vector<std::array<const double*, 2>>
      from;  // by map: its operands; null where a map makes them
  for (const Map& map : chain) {
    std::array<const double*, 2>& operands = from.emplace_back();
    for (std::size_t i = 0; i < map.args.size(); ++i) {
      if (map.args[i].map < 0) operands[i] = value(map.args[i].node).data.data();
    }
  }
  Tensor& to = result();
  for (std::size_t first = 0; first < to.data.size(); first += strip) {
    const std::size_t count = std::min(strip, to.data.size() - first);
    for (std::size_t m = 0; m < chain.size(); ++m) {
      const Map& map = chain[m];
      double* const out = m + 1 == chain.size() ? to.data.data() + first : made_by(m);
      const auto operand = [&](std::size_t i) -> MapOperand {
        if (map.args[i].map >= 0)
          return {made_by(static_cast<std::size_t>(map.args[i].map)), false};
        return {from[m][i] + (map.args[i].number ? 0 : first), map.args[i].number};
      };
      if (map.args.size() == 1) {
        map_entries(*map.op, operand(0).entries, out, count);
      } else {
        map_entries(*map.op, operand(0), operand(1), out, count);
      }
    }
  }
  return true;
}

}  // namespace starfold

#include "starfold/diff/differentiate.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/error.h"
#include "starfold/diff/sweep.h"

namespace starfold {
namespace {

using ir::Kind;
using ir::LoopId;
using ir::no_node;
using ir::NodeId;

// What one derivative may add: derivatives of derivatives of derivatives grow fast.
constexpr std::size_t most_nodes = 100'000;

bool is_derivative(const ir::Node& node) {
  return node.kind == Kind::apply && node.op->family == Family::differentiation;
}

}  // namespace

namespace diff {

Reach reach(const ir::Program& program, NodeId of) {
  Reach found;
  std::vector<NodeId> pending = {of};
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (id == no_node || !found.nodes.insert(id).second) continue;
    const ir::Node& node = program.graph[id];
    pending.insert(pending.end(), node.args.begin(), node.args.end());
    if (node.kind != Kind::loop_result || !found.loops.insert(node.index).second) continue;
    for (const ir::Carried& carried : program.loops[node.index].carried) {
      pending.insert(pending.end(), {carried.init, carried.param, carried.next});
    }
  }
  return found;
}

ActiveStates active_states(const ir::Program& program, const Reach& from, NodeId by) {
  ActiveStates states;
  std::set<NodeId> active = {by};
  bool changed = !from.loops.empty();
  while (changed) {
    changed = false;
    for (const NodeId id : from.nodes) {
      const ir::Node& node = program.graph[id];
      bool moves = (node.kind == Kind::loop_param || node.kind == Kind::loop_result) &&
                   states.count({node.index, node.slot}) != 0;
      for (std::size_t i = 0; i < node.args.size(); ++i) {
        moves = moves ||
                (active.count(node.args[i]) != 0 && (node.op == nullptr || !node.op->flat_in(i)));
      }
      if (moves) active.insert(id);
    }
    for (const LoopId loop : from.loops) {
      const auto& carried = program.loops[loop].carried;
      for (std::uint32_t slot = 0; slot < carried.size(); ++slot) {
        const bool moves =
            active.count(carried[slot].init) != 0 || active.count(carried[slot].next) != 0;
        if (moves) changed = states.emplace(loop, slot).second || changed;
      }
    }
  }
  return states;
}

}  // namespace diff

namespace {

class Differentiator {
 public:
  Differentiator(const ir::Program& program, Diagnostics& diagnostics)
      : program_(program), diagnostics_(diagnostics) {}

  ir::Program run() {
    return ir::rebuild(program_, [&](ir::Program& to, ir::Node node) {
      const NodeId old = next_++;
      return is_derivative(node) ? expand(to, node, program_.graph[old])
                                 : to.graph.add(std::move(node));
    });
  }

 private:
  NodeId expand(ir::Program& to, const ir::Node& node, const ir::Node& old) {
    ir::Builder build(to, node.span);
    if (too_large_) return zero(build, node.type());
    const diff::Reach from = diff::reach(program_, old.args[0]);
    const diff::ActiveStates states = diff::active_states(program_, from, old.args[1]);
    const auto name = to.names.find(node.args[1]);
    diff::Report report{diagnostics_, node.span, name == to.names.end() ? "" : name->second,
                        to.graph.size() + most_nodes, false};
    const int times = node.op->order;
    NodeId value = node.args[0];
    bool varies = false;
    try {
      for (int i = 0; i < times && value != no_node; ++i) {
        diff::Sweep sweep(build, value, node.args[1], states, report);
        value = sweep.run();
        varies = varies || sweep.varies();
      }
    } catch (const ir::TooLarge& error) {
      return fail_too_large(build, node, error.what());
    }
    if (value == no_node) {
      if (!report.failed && varies) warn_zero(report, node);  // check has said the rest
      return zero(build, node.type());
    }
    if (!(build.type(value) == node.type())) throw Bug("a derivative has the wrong type");
    return value;
  }

  static NodeId zero(ir::Builder& build, const Type& type) {
    ir::Algebra algebra(build);
    ir::Product nothing;
    nothing.number = 0;
    return algebra.node(nothing, algebra.labels(type));
  }

  void warn_zero(const diff::Report& report, const ir::Node& node) {
    const bool second = node.op->order == 2;
    const std::string variable =
        report.variable.empty() ? "the variable" : "`" + report.variable + "`";
    diagnostics_.report(
        {Code::ZeroGradient,
         fmt::format("this {} is zero everywhere", node.op->name),
         {report.call, fmt::format("{} does not change with {}",
                                   second ? "the gradient" : "the value", variable)},
         {},
         second ? "a linear function has no second derivative" : "",
         ""});
  }

  NodeId fail_too_large(ir::Builder& build, const ir::Node& node, const char* why) {
    too_large_ = true;
    diagnostics_.report(
        {Code::DerivativeTooLarge,
         "this derivative grows too large when it is written out",
         {node.span, why},
         {},
         "each derivative is a program of its own, and derivatives of derivatives multiply",
         "differentiate a smaller expression, or fewer times"});
    return zero(build, node.type());
  }

  const ir::Program& program_;
  Diagnostics& diagnostics_;
  NodeId next_ = 0;
  bool too_large_ = false;
};

// A program whose blocks have no derivatives left.
ir::Program differentiate_flat(const ir::Program& program, Diagnostics& diagnostics) {
  bool any = false;
  for (NodeId id = 0; id < program.graph.size(); ++id)
    any = any || is_derivative(program.graph[id]);
  return any ? Differentiator(program, diagnostics).run() : program;
}

}  // namespace

ir::Program differentiate(const ir::Program& program, Diagnostics& diagnostics) {
  const auto flat = [&](const ir::Program& body) { return differentiate_flat(body, diagnostics); };
  bool blocks = false;
  for (NodeId id = 0; id < program.graph.size(); ++id)
    blocks = blocks || program.graph[id].block != nullptr;
  return flat(blocks ? ir::map_blocks(program, flat) : program);
}

}  // namespace starfold

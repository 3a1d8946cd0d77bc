#include <algorithm>
#include <set>

#include "starfold/base/error.h"
#include "starfold/ir/visit.h"
#include "starfold/merge/exact.h"
#include "starfold/opt/passes.h"
#include "starfold/plan/lowered.h"

namespace starfold {
namespace {

using ir::Kind;
using ir::LoopId;
using ir::no_loop;
using ir::no_node;
using ir::NodeId;

// When a node's value is there: after `round` rounds of the gap before loop number `gap` of its region.
struct Moment {
  int gap = 0;
  int round = 0;
  friend auto operator<=>(const Moment&, const Moment&) = default;
};

class Planner {
 public:
  Planner(ir::Program program, bool exact)
      : program_(std::move(program)), homes_(ir::find_homes(program_)), exact_(exact) {
    const std::size_t count = program_.graph.size();
    is_fold_.resize(count);
    constant_.resize(count);
    for (NodeId id = 0; id < count; ++id) {
      const ir::Node& node = program_.graph[id];
      is_fold_[id] = ir::is_fold(program_.graph, node);
      constant_[id] = !node.federated() && is_constant(node);
      by_home_[homes_.of_node[id]].push_back(id);
    }
    for (LoopId loop = 0; loop < program_.loops.size(); ++loop)
      children_[homes_.of_loop[loop]].push_back(loop);
  }

  Plan run() {
    Plan plan;
    plan.body = region(no_loop, 0);
    plan.rounds = next_round_;
    plan.exact = exact_;
    plan.program = std::move(program_);
    return plan;
  }

 private:
  // Made of literals and sizes only, so that every client can make it itself.
  bool is_constant(const ir::Node& node) const {
    if (node.kind == Kind::constant || node.kind == Kind::size) return true;
    if (node.kind != Kind::apply && node.kind != Kind::project) return false;
    return std::all_of(node.args.begin(), node.args.end(),
                       [&](NodeId arg) { return constant_[arg]; });
  }

  // The child loop of `region` that contains `loop`; no_loop when it is the region itself or outside.
  LoopId child_containing(LoopId region, LoopId loop) const {
    while (loop != no_loop && loop != region) {
      if (homes_.of_loop[loop] == region) return loop;
      loop = homes_.of_loop[loop];
    }
    return no_loop;
  }

  // The nodes of the region that each of its loops needs before it can start.
  std::map<LoopId, std::vector<NodeId>> loop_needs(LoopId region) const {
    std::map<LoopId, std::vector<NodeId>> needs;
    const auto note = [&](LoopId user, NodeId id) {
      if (id == no_node || homes_.of_node[id] != region) return;
      const LoopId child = child_containing(region, user);
      if (child != no_loop) needs[child].push_back(id);
    };
    for (NodeId id = 0; id < program_.graph.size(); ++id) {
      const LoopId home = homes_.of_node[id];
      if (home == region) continue;
      for (const NodeId arg : program_.graph[id].args) note(home, arg);
    }
    for (LoopId loop = 0; loop < program_.loops.size(); ++loop) {
      const ir::Loop& l = program_.loops[loop];
      note(loop, l.count);
      note(loop, l.until);
      for (const ir::Carried& carried : l.carried) {
        note(loop, carried.init);
        note(loop, carried.next);
      }
    }
    for (const ir::Trace& trace : program_.traces) {
      if (trace.loop != no_loop) note(trace.loop, trace.node);
      if (trace.kind != ir::Trace::Kind::require) continue;
      // What must hold is known before a loop that is written after it: operands have smaller numbers.
      for (LoopId loop = 0; loop < program_.loops.size(); ++loop) {
        const ir::Loop& l = program_.loops[loop];
        if (l.parent == trace.loop && !l.carried.empty() && trace.node < l.carried.front().param)
          note(loop, trace.node);
      }
    }
    return needs;
  }

  // Moments of a region's nodes and the order of its loops, with as few rounds as possible: next comes
  // the loop that waits for the fewest rounds, the gap before it gets only these, and folds that nobody
  // waits for yet use them too. A loop whose results another one needs is never the later of the two.
  struct Schedule {
    std::vector<LoopId> loops;
    std::map<NodeId, Moment> moments;
  };
  Schedule schedule(LoopId region) {
    std::vector<LoopId> open = children_[region];
    const std::map<LoopId, std::vector<NodeId>> needs = loop_needs(region);
    Schedule result;
    for (int gap = 0;; ++gap) {
      std::map<NodeId, Moment> trial;
      int rounds = 0;
      for (const NodeId id : by_home_[region]) {
        if (result.moments.count(id) != 0) continue;
        if (const std::optional<Moment> moment = earliest(id, region, gap, result, trial)) {
          trial.emplace(id, *moment);
          rounds = std::max(rounds, moment->round);
        }
      }
      std::size_t next = open.size();
      for (std::size_t i = 0; i < open.size(); ++i) {
        const auto found = needs.find(open[i]);
        const std::optional<int> wait =
            found == needs.end() ? 0 : rounds_before(found->second, result.moments, trial);
        if (!wait || (next < open.size() && *wait >= rounds)) continue;
        next = i;
        rounds = *wait;
      }
      for (const auto& [id, moment] : trial) {
        if (moment.round <= rounds) result.moments.emplace(id, moment);
      }
      if (open.empty()) return result;
      if (next == open.size()) throw Bug("loops wait for each other");
      result.loops.push_back(open[next]);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(next));
    }
  }

  // How many rounds of a gap must end before these values are there; nullopt when a loop must run first.
  static std::optional<int> rounds_before(const std::vector<NodeId>& needed,
                                          const std::map<NodeId, Moment>& done,
                                          const std::map<NodeId, Moment>& trial) {
    int rounds = 0;
    for (const NodeId id : needed) {
      if (done.count(id) != 0) continue;
      const auto at = trial.find(id);
      if (at == trial.end()) return std::nullopt;
      rounds = std::max(rounds, at->second.round);
    }
    return rounds;
  }

  std::optional<Moment> earliest(NodeId id, LoopId region, int gap, const Schedule& so_far,
                                 const std::map<NodeId, Moment>& trial) const {
    const ir::Node& node = program_.graph[id];
    const std::vector<LoopId>& ran = so_far.loops;
    if (node.kind == Kind::loop_result &&
        std::find(ran.begin(), ran.end(), node.index) == ran.end())
      return std::nullopt;
    Moment moment{gap, 0};
    for (const NodeId arg : node.args) {
      if (homes_.of_node[arg] != region || so_far.moments.count(arg) != 0) continue;
      const auto at = trial.find(arg);
      if (at == trial.end()) return std::nullopt;
      moment = std::max(moment, at->second);
    }
    if (is_fold_[id]) ++moment.round;
    return moment;
  }

  Block region(LoopId region_loop, int depth) {
    const auto [loops, moments] = schedule(region_loop);
    std::map<Moment, std::vector<NodeId>> folds;
    std::map<Moment, std::vector<NodeId>> decoders;
    std::map<int, int> rounds_in_gap;
    for (const auto& [id, moment] : moments) {
      if (is_fold_[id]) {
        folds[moment].push_back(id);
        rounds_in_gap[moment.gap] = std::max(rounds_in_gap[moment.gap], moment.round);
      } else if (!program_.graph[id].federated() && program_.graph[id].kind != Kind::loop_param) {
        decoders[moment].push_back(id);
      }
    }
    std::map<Moment, std::vector<Store>> stores;
    for (const Store& store : stores_of(region_loop)) {
      const auto ready = moments.find(store.node);
      const Moment moment = round_after(ready == moments.end() ? Moment{} : ready->second,
                                        static_cast<int>(loops.size()), rounds_in_gap);
      stores[moment].push_back(store);
    }
    Block block;
    block.prelude = decoders[{0, 0}];
    for (int gap = 0; gap <= static_cast<int>(loops.size()); ++gap) {
      for (int round = 1; round <= rounds_in_gap[gap]; ++round) {
        Step step;
        step.action = make_round(folds[{gap, round}], stores[{gap, round}], region_loop, depth);
        step.decoder = decoders[{gap, round}];
        block.steps.push_back(std::move(step));
      }
      if (gap == static_cast<int>(loops.size())) break;
      Step step;
      LoopStep loop;
      loop.loop = loops[static_cast<std::size_t>(gap)];
      loop.body.push_back(region(loop.loop, depth + 1));
      step.action = std::move(loop);
      step.decoder = decoders[{gap + 1, 0}];
      block.steps.push_back(std::move(step));
    }
    return block;
  }

  // What is laid down at clients in a region: results where there is no loop, states at the end of an iteration.
  std::vector<Store> stores_of(LoopId region) const {
    std::vector<Store> stores;
    if (region != no_loop) {
      const ir::Loop& loop = program_.loops[region];
      for (std::uint32_t slot = 0; slot < loop.carried.size(); ++slot) {
        if (loop.carried[slot].type.federated())
          stores.push_back({Store::What::state, loop.carried[slot].next, region, slot});
      }
      return stores;
    }
    const auto add = [&](Store::What what, const std::vector<ir::Output>& outputs) {
      for (std::uint32_t i = 0; i < outputs.size(); ++i) {
        if (program_.graph[outputs[i].node].federated())
          stores.push_back({what, outputs[i].node, i, 0});
      }
    };
    add(Store::What::result, program_.outputs);
    add(Store::What::keep, program_.keeps);
    return stores;
  }

  // The first round of a region after a moment; one more at the end where there is none.
  static Moment round_after(Moment ready, int last_gap, std::map<int, int>& rounds_in_gap) {
    for (int gap = ready.gap; gap <= last_gap; ++gap) {
      const int round = gap == ready.gap ? ready.round + 1 : 1;
      if (round <= rounds_in_gap[gap]) return {gap, round};
    }
    return {last_gap, ++rounds_in_gap[last_gap]};
  }

  Round make_round(const std::vector<NodeId>& folds, const std::vector<Store>& stores,
                   LoopId region_loop, int depth) {
    Round round;
    round.number = next_round_++;
    round.loop_depth = depth;
    std::set<NodeId> encoders;
    std::set<NodeId> receives;
    std::set<NodeId> constants;
    std::set<NodeId> steady;
    std::vector<NodeId> pending;
    for (const NodeId fold : folds) {
      if (program_.graph[fold].kind == Kind::local) {
        round.passes.push_back(fold);
      } else {
        const Op& op = *program_.graph[fold].op;
        const bool products = op.family == Family::matmul;
        round.merges.push_back({fold, exact_ ? &exact::form_of(*op.monoid, products) : op.monoid});
      }
      pending.push_back(fold);
    }
    round.stores = stores;
    for (const Store& store : stores) {
      if (encoders.insert(store.node).second) pending.push_back(store.node);
      // A client must know which iteration a state belongs to.
      if (store.what == Store::What::state)
        receives.insert(
            program_.graph[program_.loops[store.index].carried[store.slot].param].args[0]);
    }
    while (!pending.empty()) {
      const NodeId id = pending.back();
      pending.pop_back();
      std::vector<NodeId> needed = program_.graph[id].args;
      // A private state has its first value until a client has computed another.
      if (program_.graph[id].kind == Kind::loop_param ||
          program_.graph[id].kind == Kind::loop_result)
        needed.push_back(
            program_.loops[program_.graph[id].index].carried[program_.graph[id].slot].init);
      for (const NodeId arg : needed) {
        if (!program_.graph[arg].federated()) {
          (constant_[arg] ? constants : receives).insert(arg);
          continue;
        }
        const bool changes = homes_.of_node[id] == region_loop || is_fold_[id];
        const bool unchanged = region_loop != no_loop && homes_.of_node[arg] != region_loop;
        if (changes && unchanged && program_.graph[arg].kind == Kind::apply) steady.insert(arg);
        if (encoders.insert(arg).second) pending.push_back(arg);
      }
    }
    close_constants(constants);
    round.encoders.assign(encoders.begin(), encoders.end());
    round.receives.assign(receives.begin(), receives.end());
    round.constants.assign(constants.begin(), constants.end());
    round.steady.assign(steady.begin(), steady.end());
    return round;
  }

  void close_constants(std::set<NodeId>& constants) const {
    ir::visit(program_.graph, {constants.begin(), constants.end()}, [&](NodeId id) {
      constants.insert(id);
      return true;
    });
  }

  ir::Program program_;
  ir::Homes homes_;
  std::vector<bool> is_fold_;
  std::vector<bool> constant_;
  std::map<LoopId, std::vector<NodeId>> by_home_;
  std::map<LoopId, std::vector<LoopId>> children_;
  bool exact_;
  int next_round_ = 0;
};

void collect_rounds(const Block& block, std::vector<const Round*>& rounds) {
  for (const Step& step : block.steps) {
    if (const auto* round = std::get_if<Round>(&step.action)) rounds.push_back(round);
    if (const auto* loop = std::get_if<LoopStep>(&step.action))
      collect_rounds(loop->body.front(), rounds);
  }
}

}  // namespace

// With the plans of its blocks.
Plan plan_lowered(ir::Program program, bool exact) {
  name_locals(program);
  Plan plan = Planner(std::move(program), exact).run();
  for (NodeId id = 0; id < plan.program.graph.size(); ++id) {
    const ir::Node& node = plan.program.graph[id];
    if (node.block)
      plan.blocks.emplace(id, std::make_shared<const Plan>(plan_lowered(node.block->body, exact)));
  }
  return plan;
}

Plan make_plan(const ir::Program& program, const Planning& planning) {
  return plan_lowered(opt::pipeline(program, planning), planning.exact);
}

bool is_array(const ir::Program& program, NodeId id) {
  const ir::Node& node = program.graph[id];
  return node.federated() && node.kind != Kind::apply;
}

std::vector<const Round*> rounds_of(const Plan& plan) {
  std::vector<const Round*> rounds;
  collect_rounds(plan.body, rounds);
  return rounds;
}

}  // namespace starfold

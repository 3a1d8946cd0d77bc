// Rounds are as few as they can be, region by region: in the program itself and in the body of every
// loop. The oracle knows nothing of schedules; it lets everything happen as soon as it can.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

using ir::Kind;
using ir::LoopId;
using ir::no_loop;
using ir::no_node;
using ir::NodeId;
using Loops = std::set<LoopId>;

// Where each value changes: the loops whose states it depends on.
class Regions {
 public:
  explicit Regions(const ir::Program& program) : p_(program) {
    for (NodeId id = 0; id < p_.graph.size(); ++id) of_node_.push_back(innermost(changes(id)));
    for (LoopId loop = 0; loop < p_.loops.size(); ++loop)
      of_loop_.push_back(innermost(changes_of_loop(loop)));
  }
  LoopId of_node(NodeId id) const { return of_node_[id]; }
  LoopId of_loop(LoopId loop) const { return of_loop_[loop]; }

  // The loop that runs directly in `region` and holds `inner`, or is it; no_loop when none does.
  LoopId child(LoopId region, LoopId inner) const {
    while (inner != no_loop && inner != region) {
      if (of_loop_[inner] == region) return inner;
      inner = of_loop_[inner];
    }
    return no_loop;
  }

 private:
  // Whether a loop is another one or is written in it.
  bool within(LoopId loop, LoopId outer) const {
    while (loop != no_loop && loop != outer) loop = p_.loops[loop].parent;
    return loop == outer;
  }
  std::size_t depth(LoopId loop) const {
    std::size_t count = 0;
    for (; loop != no_loop; loop = p_.loops[loop].parent) ++count;
    return count;
  }
  LoopId innermost(const Loops& loops) const {
    LoopId found = no_loop;
    for (const LoopId loop : loops) {
      if (depth(loop) > depth(found)) found = loop;
    }
    return found;
  }

  Loops changes(NodeId id) {
    if (id == no_node) return {};
    const auto known = known_.find(id);
    if (known != known_.end()) return known->second;
    const ir::Node& node = p_.graph[id];
    Loops loops;
    if (node.kind == Kind::loop_param) loops = {node.index};
    if (node.kind == Kind::loop_result) loops = changes_of_loop(node.index);
    for (const NodeId arg : node.args) loops.merge(changes(arg));
    return known_[id] = loops;
  }

  // A loop as a whole: what it begins with, computes and asks, without its own states.
  Loops changes_of_loop(LoopId id) {
    const ir::Loop& loop = p_.loops[id];
    Loops loops = changes(loop.count);
    loops.merge(changes(loop.until));
    for (const ir::Carried& carried : loop.carried) {
      loops.merge(changes(carried.init));
      loops.merge(changes(carried.next));
    }
    for (const ir::Trace& trace : p_.traces) {
      if (trace.loop == no_loop || !within(trace.loop, id)) continue;
      // What is traced is recorded every time, so the loop runs where it is written.
      loops.merge(changes(trace.node));
      for (LoopId outer = loop.parent; outer != no_loop; outer = p_.loops[outer].parent)
        loops.insert(outer);
    }
    std::erase_if(loops, [&](LoopId each) { return within(each, id); });
    return loops;
  }

  const ir::Program& p_;
  std::map<NodeId, Loops> known_;
  std::vector<LoopId> of_node_;
  std::vector<LoopId> of_loop_;
};

bool is_fold(const ir::Program& p, NodeId id) {
  const ir::Node& node = p.graph[id];
  return node.kind == Kind::apply && !node.federated() &&
         std::any_of(node.args.begin(), node.args.end(),
                     [&](NodeId arg) { return p.graph[arg].federated(); });
}

// One region as a game: values are there as soon as their operands are, loops run as soon as they
// can, and a round gives all folds whose operands are there. Nothing that is there is ever lost, so
// no order of loops and rounds needs fewer rounds than this one.
class Game {
 public:
  Game(const ir::Program& p, const Regions& regions, LoopId region)
      : p_(p), regions_(regions), region_(region), there_(p.graph.size()) {
    for (NodeId id = 0; id < p.graph.size(); ++id) {
      there_[id] = regions.of_node(id) != region;
      if (!there_[id]) own_.push_back(id);
    }
    for (LoopId loop = 0; loop < p.loops.size(); ++loop) {
      if (regions.of_loop(loop) == region) waiting_[loop];
    }
    for (NodeId id = 0; id < p.graph.size(); ++id) {
      for (const NodeId arg : p.graph[id].args) needs(regions.of_node(id), arg);
    }
    for (LoopId loop = 0; loop < p.loops.size(); ++loop) {
      const ir::Loop& l = p.loops[loop];
      needs(loop, l.count);
      needs(loop, l.until);
      for (const ir::Carried& carried : l.carried) {
        needs(loop, carried.init);
        needs(loop, carried.next);
      }
    }
    for (const ir::Trace& trace : p.traces) needs(trace.loop, trace.node);
  }

  int rounds() {
    int count = 0;
    for (settle(); !finished(); settle()) {
      std::vector<NodeId> merged;
      for (const NodeId id : own_) {
        if (!there_[id] && is_fold(p_, id) && operands_there(id)) merged.push_back(id);
      }
      if (merged.empty()) return -1;
      for (const NodeId id : merged) there_[id] = true;
      ++count;
    }
    return count;
  }

 private:
  void needs(LoopId user, NodeId id) {
    if (id == no_node || regions_.of_node(id) != region_) return;
    const LoopId child = regions_.child(region_, user);
    if (child != no_loop) waiting_.at(child).push_back(id);
  }
  bool operands_there(NodeId id) const {
    const ir::Node& node = p_.graph[id];
    if (node.kind == Kind::loop_param) return true;
    if (node.kind == Kind::loop_result && waiting_.count(node.index) != 0) return false;
    return std::all_of(node.args.begin(), node.args.end(), [&](NodeId arg) { return there_[arg]; });
  }
  bool finished() const {
    return waiting_.empty() &&
           std::all_of(own_.begin(), own_.end(), [&](NodeId id) { return there_[id]; });
  }
  void settle() {
    for (bool again = true; again;) {
      again = false;
      for (const NodeId id : own_) {
        if (there_[id] || is_fold(p_, id) || !operands_there(id)) continue;
        there_[id] = again = true;
      }
      again = std::erase_if(waiting_,
                            [&](const auto& loop) {
                              return std::all_of(loop.second.begin(), loop.second.end(),
                                                 [&](NodeId id) { return there_[id]; });
                            }) > 0 ||
              again;
    }
  }

  const ir::Program& p_;
  const Regions& regions_;
  LoopId region_;
  std::vector<bool> there_;
  std::vector<NodeId> own_;
  std::map<LoopId, std::vector<NodeId>> waiting_;  // loops that did not run, and what they wait for
};

// Looks at a block and the loops in it; returns how many loops there were.
struct Walk {
  const ir::Program& p;
  const Regions& regions;
  int loops = 0;

  Verdict block(const Block& block, LoopId region) {
    int rounds = 0;
    for (const Step& step : block.steps) {
      if (const auto* round = std::get_if<Round>(&step.action)) {
        ++rounds;
        for (const Merge& merge : round->merges) {
          if (regions.of_node(merge.fold) != region)
            return "a fold is done in a loop that does not change it: " +
                   ir::print_expr(p, merge.fold);
        }
        for (const NodeId id : round->steady) {
          if (regions.of_node(id) == region)
            return "what changes in a loop is kept: " + ir::print_expr(p, id);
        }
      }
      if (const auto* loop = std::get_if<LoopStep>(&step.action)) {
        ++loops;
        if (regions.of_loop(loop->loop) != region) return "a loop runs where it does not belong";
        if (const Verdict broken = this->block(loop->body.front(), loop->loop)) return broken;
      }
    }
    const int least = Game(p, regions, region).rounds();
    if (rounds == least) return std::nullopt;
    return fmt::format("{} rounds {}, but {} would do", rounds,
                       region == no_loop ? "outside loops" : fmt::format("in loop {}", region),
                       least);
  }
};

int loops_seen = 0;

// thm:iterative-shared-state-factorization, with as few rounds as the program's folds allow.
Verdict rounds_are_minimal(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  for (const bool optimize : {true, false}) {
    const Plan plan = make_plan(program.program->compilation.program, Planning{optimize});
    const Regions regions(plan.program);
    Walk walk{plan.program, regions};
    if (const Verdict broken = walk.block(plan.body, no_loop)) return broken;
    if (walk.loops != static_cast<int>(plan.program.loops.size())) return "a loop never runs";
    loops_seen += walk.loops;
  }
  return std::nullopt;
}

TEST(Laws, RoundsAreMinimal) {
  loops_seen = 0;
  GeneratorOptions options;
  options.statements = 10;
  options.depth = 3;
  check_law("Laws.RoundsAreMinimal", options, 1200, rounds_are_minimal);
  if (law_programs(1200) >= 1200) {
    EXPECT_GT(loops_seen, 1000);
  }
}

}  // namespace
}  // namespace starfold::laws

#include <algorithm>

#include "starfold/ir/ir.h"

namespace starfold::ir {
namespace {

using Loops = std::vector<LoopId>;  // sorted; an outer loop has a smaller id than the loops in it

void merge_into(Loops& into, const Loops& from) {
  if (from.empty() || into == from) return;
  Loops merged;
  std::set_union(into.begin(), into.end(), from.begin(), from.end(), std::back_inserter(merged));
  into = std::move(merged);
}

class Finder {
 public:
  explicit Finder(const Program& program)
      : program_(program),
        of_node_(program.graph.size()),
        of_loop_(program.loops.size()),
        known_(program.loops.size()) {
    // A traced loop records every time it runs, so it stays where it was written.
    pinned_.resize(program.loops.size());
    for (const Trace& trace : program.traces) {
      for (LoopId loop = trace.loop; loop != no_loop; loop = program.loops[loop].parent)
        pinned_[loop] = true;
    }
  }

  Homes run() {
    for (NodeId id = 0; id < program_.graph.size(); ++id) {
      const Node& node = program_.graph[id];
      if (node.kind == Kind::loop_param) of_node_[id] = {node.index};
      if (node.kind == Kind::loop_result) of_node_[id] = of_loop(node.index);
      for (const NodeId arg : node.args) merge_into(of_node_[id], of_node_[arg]);
    }
    Homes homes;
    for (const Loops& loops : of_node_)
      homes.of_node.push_back(loops.empty() ? no_loop : loops.back());
    for (LoopId id = 0; id < program_.loops.size(); ++id) {
      const Loops& loops = of_loop(id);
      homes.of_loop.push_back(loops.empty() ? no_loop : loops.back());
    }
    return homes;
  }

 private:
  // The outer loops whose iteration a loop as a whole depends on.
  const Loops& of_loop(LoopId id) {
    if (known_[id]) return of_loop_[id];
    known_[id] = true;
    const Loop& loop = program_.loops[id];
    Loops all = of_node_[loop.count];
    if (loop.until != no_node) merge_into(all, of_node_[loop.until]);
    for (const Carried& carried : loop.carried) {
      merge_into(all, of_node_[carried.init]);
      merge_into(all, of_node_[carried.next]);
    }
    for (const Trace& trace : program_.traces) {
      if (trace.loop == id) merge_into(all, of_node_[trace.node]);
    }
    if (pinned_[id]) {
      for (LoopId outer = loop.parent; outer != no_loop; outer = program_.loops[outer].parent)
        merge_into(all, {outer});
    }
    std::erase_if(all, [&](LoopId at) { return at >= id; });
    return of_loop_[id] = std::move(all);
  }

  const Program& program_;
  std::vector<Loops> of_node_;
  std::vector<Loops> of_loop_;
  std::vector<bool> known_;
  std::vector<bool> pinned_;
};

}  // namespace

Homes find_homes(const Program& program) { return Finder(program).run(); }

}  // namespace starfold::ir

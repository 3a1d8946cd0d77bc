#include "starfold/ir/visit.h"

#include <set>

namespace starfold::ir {
namespace {

// With a program also what is behind the states of its loops.
void visit_all(const Graph& graph, const Program* program, std::vector<NodeId> pending,
               const std::function<bool(NodeId)>& goes_on) {
  std::set<NodeId> seen;
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (id == no_node || !seen.insert(id).second || !goes_on(id)) continue;
    const Node& node = graph[id];
    pending.insert(pending.end(), node.args.begin(), node.args.end());
    const bool state = node.kind == Kind::loop_param || node.kind == Kind::loop_result;
    if (program == nullptr || !state) continue;
    const Loop& loop = program->loops[node.index];
    const Carried& carried = loop.carried[node.slot];
    pending.insert(pending.end(), {loop.count, loop.until, carried.init, carried.next});
  }
}

}  // namespace

void visit(const Graph& graph, std::vector<NodeId> from,
           const std::function<bool(NodeId)>& goes_on) {
  visit_all(graph, nullptr, std::move(from), goes_on);
}

void visit(const Program& program, std::vector<NodeId> from,
           const std::function<bool(NodeId)>& goes_on) {
  visit_all(program.graph, &program, std::move(from), goes_on);
}

}  // namespace starfold::ir

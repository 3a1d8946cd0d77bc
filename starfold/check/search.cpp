#include <unordered_set>

#include "starfold/check/checker.h"

namespace starfold {

// Whether a node depends on one that `on` names, none of which is older than `oldest`. `smoothly`:
// through operations with a derivative that is not zero everywhere. Says yes when it has searched
// too much, for then nothing is worth a warning.
bool Checker::varies_with(ir::NodeId node, const std::function<bool(ir::NodeId)>& on,
                          ir::NodeId oldest, bool smoothly) {
  std::vector<ir::NodeId> pending = {node};
  std::unordered_set<ir::NodeId> seen;
  while (!pending.empty()) {
    const ir::NodeId id = pending.back();
    pending.pop_back();
    // Operands are older than their users.
    if (id == ir::no_node || id < oldest || !seen.insert(id).second) continue;
    if (on(id) || ++searched_ > max_searched) return true;
    const ir::Node& at = program_.graph[id];
    for (std::size_t i = 0; i < at.args.size(); ++i) {
      if (!smoothly || at.op == nullptr || !at.op->flat_in(i)) pending.push_back(at.args[i]);
    }
    if (at.kind != ir::Kind::loop_result) continue;
    const ir::Loop& loop = program_.loops[at.index];
    if (!smoothly) pending.insert(pending.end(), {loop.count, loop.until});
    for (const ir::Carried& carried : loop.carried) {
      pending.insert(pending.end(), {carried.init, carried.next});
    }
  }
  return false;
}

}  // namespace starfold

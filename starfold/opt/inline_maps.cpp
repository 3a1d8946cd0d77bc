#include "starfold/opt/passes.h"

namespace starfold::opt {

ir::Program inline_maps(const ir::Program& program) {
  return ir::rebuild(program, [](ir::Program& to, ir::Node node) {
    if (node.block) node = ir::inline_maps(to, node, [](ir::NodeId) { return true; });
    return to.graph.add(std::move(node));
  });
}

}  // namespace starfold::opt

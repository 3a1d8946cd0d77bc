#include "starfold/opt/passes.h"

namespace starfold::opt {

ir::Program erase_variables(const ir::Program& program) {
  return ir::rebuild(program, [](ir::Program& to, ir::Node node) {
    return node.kind == ir::Kind::variable ? node.args[0] : to.graph.add(std::move(node));
  });
}

}  // namespace starfold::opt

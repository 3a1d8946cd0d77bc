// A private state is read at clients, which must know which iteration its value belongs to. So every loop around one
// gets a clock: a shared state that counts its iterations, after the counts of the loops around it.
#include <set>

#include "starfold/ir/builder.h"
#include "starfold/opt/passes.h"

namespace starfold::opt {
namespace {

using ir::Kind;
using ir::LoopId;
using ir::no_loop;
using ir::NodeId;

class Clocks {
 public:
  explicit Clocks(const ir::Program& program) : program_(program) {
    for (LoopId id = 0; id < program.loops.size(); ++id) {
      for (const ir::Carried& carried : program.loops[id].carried) {
        if (!carried.type.federated()) continue;
        for (LoopId loop = id; loop != no_loop; loop = program.loops[loop].parent)
          ticking_.insert(loop);
      }
    }
  }

  ir::Program run() {
    if (ticking_.empty()) return program_;
    ir::Program to = ir::rebuild(program_, [&](ir::Program& into, ir::Node node) {
      const bool state = node.kind == Kind::loop_param || node.kind == Kind::loop_result;
      if (state && node.federated()) node.args = {clock(into, node.index, node.kind)};
      return into.graph.add(std::move(node));
    });
    for (const LoopId loop : ticking_) {
      const NodeId param = clock(to, loop, Kind::loop_param);
      ir::Builder build(to, to.loops[loop].span);
      const std::size_t depth = depth_of(loop);
      Tensor tick(Shape{static_cast<std::int64_t>(depth)});
      tick.data.back() = 1;
      NodeId init = build.constant(Tensor(Shape{1}));
      if (depth > 1)
        init = build.call("concat",
                          {clock(to, program_.loops[loop].parent, Kind::loop_param), init}, {0});
      const NodeId next = build.add(param, build.constant(tick));
      to.loops[loop].carried.push_back({"iteration", to.graph[param].type(), init, param, next});
    }
    return to;
  }

 private:
  std::size_t depth_of(LoopId loop) const {
    std::size_t depth = 0;
    for (; loop != no_loop; loop = program_.loops[loop].parent) ++depth;
    return depth;
  }

  NodeId clock(ir::Program& to, LoopId loop, Kind kind) const {
    ir::Node node;
    node.kind = kind;
    node.types = {Type::shared({Size(static_cast<std::int64_t>(depth_of(loop)))})};
    node.index = loop;
    node.slot = static_cast<std::uint32_t>(program_.loops[loop].carried.size());
    node.span = program_.loops[loop].span;
    return to.graph.add(std::move(node));
  }

  const ir::Program& program_;
  std::set<LoopId> ticking_;
};

}  // namespace

ir::Program add_clocks(const ir::Program& program) { return Clocks(program).run(); }

}  // namespace starfold::opt

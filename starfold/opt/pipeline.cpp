#include "starfold/opt/passes.h"

namespace starfold::opt {
namespace {

struct Pass {
  const char* name;
  ir::Program (*run)(const ir::Program&);
  bool needed;  // for a plan, not only for speed
};

// Until the bodies of blocks are what they will be.
constexpr Pass before[] = {
    {"erase_variables", erase_variables, true}, {"prune", ir::prune, true},
    {"add_clocks", add_clocks, true},           {"trim_blocks", trim_blocks, true},
    {"inline_maps", inline_maps, false},
};
constexpr Pass after[] = {
    {"lower_aggregations", lower_aggregations, true},
    {"simplify", simplify, false},
    {"contract_sums", contract_sums, false},
    {"simplify again", simplify, false},
    {"prune again", ir::prune, true},
};

template <std::size_t N>
ir::Program run(ir::Program program, const Pass (&passes)[N], const Planning& planning,
                bool inside) {
  for (const Pass& pass : passes) {
    if (!planning.optimize && !pass.needed) continue;
    program = pass.run(program);
    ir::verify(program, pass.name, inside);
  }
  return program;
}

ir::Program all(const ir::Program& program, const Planning& planning, bool inside);

// Each block's body is a program like any other.
ir::Program blocks(const ir::Program& program, const Planning& planning) {
  return ir::rebuild(program, [&](ir::Program& to, ir::Node node) {
    if (node.block) {
      ir::Local block = *node.block;
      block.body = all(block.body, planning, true);
      node.block = ir::make_local(std::move(block));
    }
    return to.graph.add(std::move(node));
  });
}

ir::Program all(const ir::Program& program, const Planning& planning, bool inside) {
  const ir::Program ready = blocks(run(program, before, planning, inside), planning);
  return run(ready, after, planning, inside);
}

}  // namespace

ir::Program pipeline(const ir::Program& program, const Planning& planning) {
  return all(program, planning, false);
}

}  // namespace starfold::opt

#include "starfold/opt/passes.h"

namespace starfold::opt {
namespace {

struct Pass {
  const char* name;
  ir::Program (*run)(const ir::Program&);
  enum { always, for_sums, for_speed } when;
};

// Until the bodies of blocks are what they will be.
constexpr Pass before[] = {
    {"erase_variables", erase_variables, Pass::always}, {"prune", ir::prune, Pass::always},
    {"add_clocks", add_clocks, Pass::always},           {"trim_blocks", trim_blocks, Pass::always},
    {"inline_maps", inline_maps, Pass::for_speed},
};
constexpr Pass after[] = {
    {"lower_aggregations", lower_aggregations, Pass::always},
    {"lower_to_sums", lower_to_sums, Pass::for_sums},
    {"simplify", simplify, Pass::for_speed},
    {"contract_sums", contract_sums, Pass::for_speed},
    {"simplify again", simplify, Pass::for_speed},
    {"prune again", ir::prune, Pass::always},
};

template <std::size_t N>
ir::Program run(ir::Program program, const Pass (&passes)[N], const Planning& planning,
                bool inside) {
  for (const Pass& pass : passes) {
    if (pass.when == Pass::for_speed && !planning.optimize) continue;
    // Sums are for what leaves: nothing of a block does by itself.
    if (pass.when == Pass::for_sums && (!planning.additive || inside)) continue;
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

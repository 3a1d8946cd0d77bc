#include "starfold/opt/passes.h"

namespace starfold::opt {

ir::Program pipeline(const ir::Program& program, const Planning& planning) {
  struct Pass {
    const char* name;
    ir::Program (*run)(const ir::Program&);
    bool needed;  // for a plan, not only for speed
  };
  static constexpr Pass passes[] = {
      {"erase_variables", erase_variables, true},
      {"prune", ir::prune, true},
      {"lower_aggregations", lower_aggregations, true},
      {"simplify", simplify, false},
      {"contract_sums", contract_sums, false},
      {"simplify again", simplify, false},
      {"prune again", ir::prune, true},
  };
  ir::Program result = program;
  for (const Pass& pass : passes) {
    if (!planning.optimize && !pass.needed) continue;
    result = pass.run(result);
    ir::verify(result, pass.name);
  }
  return result;
}

}  // namespace starfold::opt

#include "starfold/opt/passes.h"

namespace starfold::opt {

ir::Program pipeline(const ir::Program& program, const Planning& planning) {
  struct Pass {
    const char* name;
    ir::Program (*run)(const ir::Program&);
    enum { always, for_sums, for_speed } when;
  };
  static constexpr Pass passes[] = {
      {"erase_variables", erase_variables, Pass::always},
      {"prune", ir::prune, Pass::always},
      {"lower_aggregations", lower_aggregations, Pass::always},
      {"lower_to_sums", lower_to_sums, Pass::for_sums},
      {"simplify", simplify, Pass::for_speed},
      {"contract_sums", contract_sums, Pass::for_speed},
      {"simplify again", simplify, Pass::for_speed},
      {"prune again", ir::prune, Pass::always},
  };
  ir::Program result = program;
  for (const Pass& pass : passes) {
    if (pass.when == Pass::for_speed && !planning.optimize) continue;
    if (pass.when == Pass::for_sums && !planning.additive) continue;
    result = pass.run(result);
    ir::verify(result, pass.name);
  }
  return result;
}

}  // namespace starfold::opt

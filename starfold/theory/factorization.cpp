#include "starfold/theory/factorization.h"

#include <algorithm>

namespace starfold {
namespace {

Factorization factor_round(const Plan& plan, const Round& round,
                           const std::vector<ir::NodeId>& decoder) {
  Factorization result;
  result.round = round.number;
  result.loop_depth = round.loop_depth;
  result.theta = round.receives;
  result.phi = round.encoders;
  result.psi = decoder;
  for (const Merge& merge : round.merges) {
    const ir::Node& fold = plan.program.graph[merge.fold];
    Component component;
    component.fold = merge.fold;
    component.expression = describe_fold(plan, merge.fold);
    for (const Dim& dim : fold.type().dims) component.shape.push_back(dim.size);
    component.merge = merge.monoid;
    for (const ir::NodeId arg : fold.args) {
      if (plan.program.graph[arg].federated()) component.encoded.push_back(arg);
    }
    result.state.push_back(std::move(component));
  }
  return result;
}

void factor_block(const Plan& plan, const Block& block, std::vector<Factorization>& found) {
  for (const Step& step : block.steps) {
    if (const auto* round = std::get_if<Round>(&step.action))
      found.push_back(factor_round(plan, *round, step.decoder));
    if (const auto* loop = std::get_if<LoopStep>(&step.action))
      factor_block(plan, loop->body.front(), found);
  }
}

}  // namespace

std::vector<Factorization> factor(const Plan& plan) {
  std::vector<Factorization> found;
  factor_block(plan, plan.body, found);
  return found;
}

}  // namespace starfold

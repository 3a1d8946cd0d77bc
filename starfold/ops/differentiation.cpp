// Derivatives, typed by their argument (def:representably-differentiable-loss): of a shared number
// the derivative is shared, of one number per record it is one derivative per record.
#include <fmt/format.h>

#include "starfold/ops/standard.h"
#include "starfold/signature/typing.h"

namespace starfold {
namespace {

Types derivative_type(TypeQuery& query, bool scalar_only, int times) {
  const Type& of = query.args[0];
  const Type& variable = query.args[1];
  if (variable.federated()) {
    return query.fail(
        {Code::NotDifferentiableVariable,
         fmt::format("`{}` with respect to a federated value", query.op.name),
         {query.arg_spans[1], fmt::format("{} is split across clients", variable.to_string())},
         {},
         "a derivative is taken with respect to a parameter that all clients share",
         "differentiate with respect to a shared input, state or let"});
  }
  const bool scalar = of.is_scalar() || (of.rank() == 1 && of.federated());
  if (scalar_only && !scalar) {
    return query.fail(
        {Code::NotDifferentiableValue,
         fmt::format("`{}` needs a number, shared or one per record, not {}", query.op.name,
                     of.to_string()),
         {query.arg_spans[0], of.to_string()},
         {},
         "",
         of.federated()
             ? "fold its ordinary axes first, for example with `sum[2](...)`, or use `jacobian`"
             : "fold it first, for example with `sum(...)`, or use `jacobian`"});
  }
  Type type = of;
  for (int i = 0; i < times; ++i)
    type.dims.insert(type.dims.end(), variable.dims.begin(), variable.dims.end());
  return std::vector<Type>{std::move(type)};
}

Op row(std::string name, bool scalar_only, int times, std::string rule, std::string doc) {
  Op op;
  op.surface = name + "(e, v)";
  op.name = std::move(name);
  op.family = Family::differentiation;
  op.min_args = op.max_args = 2;
  op.order = times;
  op.rule = std::move(rule);
  op.doc = std::move(doc);
  op.type = [scalar_only, times](TypeQuery& query) {
    return derivative_type(query, scalar_only, times);
  };
  return op;
}

}  // namespace

std::vector<Op> differentiation_ops() {
  return {
      row("grad", true, 1, "[], S -> S; [*], S -> [*, S]",
          "the gradient of a number, shared or one per record, by a shared name"),
      row("jacobian", false, 1, "T, S -> [T, S]", "all first derivatives of e by a shared name"),
      row("hessian", true, 2, "[], S -> [S, S]; [*], S -> [*, S, S]",
          "all second derivatives of a number by a shared name"),
  };
}

}  // namespace starfold

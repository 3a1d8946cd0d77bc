// `check --base`: exactly the paper's base signature (def:base-primitive-signature).
#include <fmt/format.h>

#include "starfold/check/checker.h"

namespace starfold {
namespace {

// Why an application lies outside the base signature; empty when it does not.
std::string outside_base(const Op& op, const std::vector<Type>& args) {
  switch (op.family) {
    case Family::unary:
    case Family::permutation:
      return {};
    case Family::binary:
    case Family::comparison:
      return broadcast_is_base(args[0], args[1]) ? "" : fmt::format("`{}` stretches a federated operand", op.name);
    case Family::aggregation:
      return op.name == "records" ? "`records` is an extension" : "";
    case Family::matmul: {
      const bool matrices = args[0].rank() == 2 && args[1].rank() == 2;
      if (!matrices) return "`@` with a vector or with more than two axes is an extension";
      if (!args[0].federated() && !args[1].federated()) return "shared `@` is a shared-only extension";
      return {};
    }
    case Family::client_local:
      return fmt::format("`{}` is a client-local extension", op.name);
    case Family::shared_only:
      return fmt::format("`{}` is a shared-only extension", op.name);
    case Family::differentiation:
      return fmt::format("`{}` is an extension", op.name);
  }
  return {};
}

}  // namespace

void Checker::check_base(const Op& op, const std::vector<Type>& args, Span span) {
  const std::string why = outside_base(op, args);
  if (why.empty()) return;
  report({Code::OutsideBase,
          fmt::format("outside the base signature: {}", why),
          {span, fmt::format("family: {}", to_string(op.family))},
          {},
          "the base signature has element-wise maps, comparisons, aggregations, permutations and three matrix products",
          ""});
}

}  // namespace starfold

// `check --base`: exactly the paper's base signature (def:base-primitive-signature).
#include <fmt/format.h>

#include "starfold/check/checker.h"

namespace starfold {
namespace {

// Why an application lies outside the base signature; empty when it does not.
std::string outside_base(const Op& op, const Attrs& attrs, const std::vector<Type>& args) {
  switch (op.family) {
    case Family::unary:
    case Family::permutation:
      return {};
    case Family::binary:
    case Family::comparison:
      if (broadcast_is_base(args[0], args[1])) return {};
      return fmt::format("`{}` of {} and {} stretches a federated operand", op.name,
                         args[0].to_string(), args[1].to_string());
    case Family::aggregation:
      if (op.name == "records" || args.size() != 1)
        return fmt::format("`{}` is an extension", op.name);
      if (attrs.axes.size() == 1) return {};
      return fmt::format("`{}` over {} axes at once", op.name, attrs.axes.size());
    case Family::matmul: {
      const bool matrices = args[0].rank() == 2 && args[1].rank() == 2;
      if (!matrices)
        return fmt::format("`@` of {} and {}", args[0].to_string(), args[1].to_string());
      if (!args[0].federated() && !args[1].federated()) return "`@` of two shared matrices";
      return {};
    }
    case Family::client_local:
      if (op.name == "[:]") return "indexing is a client-local extension";
      if (op.name == "[e]") return "looking up a table is a client-local extension";
      if (op.name == "[,]") return "a literal of computed elements is a client-local extension";
      return fmt::format("`{}` is a client-local extension", op.name);
    case Family::shared_only:
      return fmt::format("`{}` is a shared-only extension", op.name);
    case Family::differentiation:
      return fmt::format("`{}` is an extension", op.name);
  }
  return {};
}

// What the base signature has instead.
std::string_view base_help(const Op& op, const std::vector<Type>& args) {
  switch (op.family) {
    case Family::aggregation:
      return args.size() == 1 && op.name != "records" ? "fold one axis at a time" : "";
    case Family::matmul:
      return "the base signature has [*, p] @ [p, q], [q, p] @ [p, *] and [a, *] @ [*, b]";
    case Family::binary:
    case Family::comparison:
      return "two federated operands must have the same type, and a shared one must fit into it";
    default:
      return "";
  }
}

}  // namespace

void Checker::check_base(const Op& op, const Attrs& attrs, const std::vector<Type>& args,
                         Span span) {
  const std::string why = outside_base(op, attrs, args);
  if (why.empty()) return;
  report({Code::OutsideBase,
          fmt::format("outside the base signature: {}", why),
          {span, fmt::format("{}", to_string(op.family))},
          {},
          "the base signature has element-wise maps, comparisons, aggregations, permutations and "
          "three matrix products",
          std::string(base_help(op, args))});
}

}  // namespace starfold

// `check --base`: the paper's base signature (def:base-primitive-signature) and its programs
// (def:one-round-typed-program, def:iterative-typed-program). docs/theory.md says how the cases that the
// paper leaves open were decided.
#include <fmt/format.h>

#include "starfold/check/checker.h"

namespace starfold {
namespace {

// What people call an operation.
std::string plain_name(const Op& op) {
  switch (op.notation) {
    case Notation::slices:
      return "indexing";
    case Notation::lookup:
      return "looking up a table";
    case Notation::list:
      return "a literal of computed elements";
    default:
      return "`" + op.name + "`";
  }
}

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
      if (op.axes == Op::Axes::none || args.size() != 1)
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
      return fmt::format("{} is a client-local extension", plain_name(op));
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
      return args.size() == 1 && op.axes != Op::Axes::none ? "fold one axis at a time" : "";
    case Family::matmul:
      return "the base signature has [*, p] @ [p, q], [q, p] @ [p, *] and [a, *] @ [*, b]";
    case Family::binary:
    case Family::comparison:
      return "two federated operands must have the same type, and a shared one must fit into it";
    default:
      return "";
  }
}

bool is_elementwise(const Op& op) {
  return op.family == Family::unary || op.family == Family::binary ||
         op.family == Family::comparison;
}

}  // namespace

void Checker::report_base(const std::string& why, Span span, std::string label, std::string help) {
  report({Code::OutsideBase,
          "outside the base signature: " + why,
          {span, std::move(label)},
          {},
          "the base signature has element-wise maps, comparisons, aggregations, permutations and "
          "three matrix products",
          std::move(help)});
}

// A number is a literal, a size, or made of them element by element. The signature has no constants, but
// with a number an element-wise map is another map of U: t -> 2 * t.
bool Checker::is_base_number(ir::NodeId id) const {
  const ir::Node& node = program_.graph[id];
  const bool leaf = node.kind == ir::Kind::constant || node.kind == ir::Kind::size;
  return (leaf && node.type().is_scalar()) || base_numbers_.count(id) != 0;
}

void Checker::check_base(const Op& op, const Attrs& attrs, const std::vector<Type>& args,
                         const std::vector<ir::NodeId>& nodes, const std::vector<Span>& spans,
                         Span span) {
  const std::string why = outside_base(op, attrs, args);
  if (!why.empty())
    return report_base(why, span, fmt::format("{}", to_string(op.family)),
                       std::string(base_help(op, args)));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!is_elementwise(op) || !is_base_number(nodes[i])) check_base_value(nodes[i], spans[i]);
  }
}

// What stands where only an expression may: a variable, or a primitive applied to expressions.
void Checker::check_base_value(ir::NodeId id, Span span) {
  const bool constant = program_.graph[id].kind == ir::Kind::constant;
  if (!constant && !is_base_number(id)) return;
  report_base(constant ? "a literal is no expression"
                       : "a number made of literals and sizes is no "
                         "expression",
              span, "a constant", "declare it as a shared input, with this value as its default");
}

// def:iterative-typed-program: T rounds, T an integer that is fixed before anything runs.
void Checker::check_base_loop(const ast::Repeat& repeat, ir::NodeId count) {
  const ir::Node& node = program_.graph[count];
  const bool fixed =
      node.kind == ir::Kind::size || (node.kind == ir::Kind::constant && node.value.item() >= 1);
  if (!fixed)
    report_base("the number of iterations is not a fixed positive integer", repeat.count->span,
                "known only during the run, or zero", "write the number, or a size");
  if (repeat.until)
    report_base("`until` ends a loop early", repeat.until->span,
                "the iterative programs of the paper run a fixed number of rounds",
                "leave `until` out");
}

// def:one-round-typed-program: one federated input. Several inputs of one record set are the parts of
// one tensor of records; two record sets are not.
void Checker::check_base_input(const Type& type, Span span) {
  if (!type.federated()) return;
  for (const ir::Input& other : program_.inputs) {
    if (!other.type.federated() || other.type.record_set() == type.record_set()) continue;
    report_base("a second record set", span, "records of another kind than those before",
                "give each record set a program of its own");
    return;
  }
}

}  // namespace starfold

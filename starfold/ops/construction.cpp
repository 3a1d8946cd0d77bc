// Shared-only constructions: values made from sizes and seeds, and rearrangements of shared axes.
#include "starfold/ops/derivative.h"
#include "starfold/ops/meaning.h"
#include "starfold/ops/row.h"
#include "starfold/ops/standard.h"
#include "starfold/signature/typing.h"

namespace starfold {
namespace {

Op row(std::string name, int min_args, int max_args, int first_size_arg, std::string surface,
       std::string rule, std::string doc, TypeRule type, Meaning meaning,
       DerivativeRule derivative = nullptr) {
  Op op = begin_row(Family::shared_only, min_args, max_args,
                    {std::move(name), std::move(surface), std::move(rule), std::move(doc)},
                    std::move(type), std::move(meaning), derivative);
  op.first_size_arg = first_size_arg;
  return op;
}

Types sizes_type(TypeQuery& query) { return std::vector<Type>{Type::shared(query.attrs.sizes)}; }

Op filled(std::string name, double value, Meaning meaning) {
  std::string surface = name + "(sizes...)";
  std::string doc = name;
  Op op = row(std::move(name), 0, -1, 0, std::move(surface), "[sizes...]", std::move(doc),
              sizes_type, std::move(meaning));
  op.fill = value;
  op.range = range::filled(value);
  return op;
}

// A value or seed first, then the sizes.
Types seeded_type(TypeQuery& query) {
  if (!typing::require_shared(query)) return std::nullopt;
  if (!typing::require_shared_scalar(query, 0, query.op.name == "full" ? "the value" : "the seed"))
    return std::nullopt;
  return sizes_type(query);
}

Types eye_type(TypeQuery& query) {
  return std::vector<Type>{Type::shared({query.attrs.sizes[0], query.attrs.sizes[0]})};
}

Types linspace_type(TypeQuery& query) {
  if (!typing::require_shared(query)) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    if (!typing::require_shared_scalar(query, i, "an end")) return std::nullopt;
  }
  return sizes_type(query);
}

Types sort_type(TypeQuery& query) {
  if (!typing::require_shared(query)) return std::nullopt;
  if (query.args[0].is_scalar()) {
    typing::require_rank(query, 0, 1, "a vector");
    return std::nullopt;
  }
  return std::vector<Type>{query.args[0]};
}

Types cumsum_type(TypeQuery& query) {
  const std::optional<std::size_t> axis =
      typing::ordinary_axis(query, Code::StarScanned, "run along");
  if (!axis || !typing::require_shared(query)) return std::nullopt;
  query.attrs.axes = {static_cast<std::int64_t>(*axis)};
  return std::vector<Type>{query.args[0]};
}

}  // namespace

std::vector<Op> construction_ops() {
  Op cumsum = row("cumsum", 1, 1, -1, "cumsum[j](e)", "S -> S", "running sums along an axis",
                  cumsum_type, meaning::cumsum, derivative::cumsum);
  cumsum.axes = Op::Axes::required;
  std::vector<Op> ops = {
      filled("zeros", 0, meaning::zeros),
      filled("ones", 1, meaning::ones),
      row("full", 1, -1, 1, "full(v, sizes...)", "[] -> [sizes...]", "v everywhere", seeded_type,
          meaning::full, derivative::full),
      row("eye", 1, 1, 0, "eye(n)", "[n, n]", "the identity matrix", eye_type, meaning::eye),
      row("linspace", 3, 3, 2, "linspace(a, b, n)", "[], [] -> [n]",
          "n evenly spaced numbers from a to b", linspace_type, meaning::linspace,
          derivative::linspace),
      row("normal", 1, -1, 1, "normal(seed, sizes...)", "[] -> [sizes...]",
          "standard normal numbers, the same for the same seed on every machine", seeded_type,
          meaning::normal),
      row("uniform", 1, -1, 1, "uniform(seed, sizes...)", "[] -> [sizes...]",
          "uniform numbers in [0, 1), the same for the same seed on every machine", seeded_type,
          meaning::uniform),
      row("sort", 1, 1, -1, "sort(e)", "S -> S", "ascending along the last axis, nan last",
          sort_type, meaning::sort, derivative::order_statistic),
      std::move(cumsum),
  };
  const std::pair<std::string_view, RangeRule> ranges[] = {
      {"full", range::first_operand},   {"eye", range::unit},
      {"linspace", range::any_operand}, {"uniform", range::unit},
      {"sort", range::first_operand},
  };
  for (const auto& [name, rule] : ranges) {
    for (Op& op : ops) {
      if (op.name == name) op.range = rule;
    }
  }
  for (Op& op : ops) {
    if (op.name == "normal" || op.name == "uniform") {
      op.flat = 1U;  // seeds are whole numbers
      op.refuses = true;
    }
    if (op.name == "sort") {
      op.naming = Naming::sorted;
      op.norms = norms::selected;
    }
    if (op.name == "eye") op.norms = norms::identity;
  }
  return ops;
}

}  // namespace starfold

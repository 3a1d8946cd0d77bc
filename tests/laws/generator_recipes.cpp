// How an application of each row is written: which operands give the wanted type, and in which
// ranges they must lie.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "tests/laws/generator_expressions.h"

namespace starfold::laws {
namespace {

// Infix operators and how strongly they bind; 0 for operations written as calls.
int infix(const Op& op) {
  if (op.name == "or") return 1;
  if (op.name == "and") return 2;
  if (op.family == Family::comparison) return 4;
  if (op.name == "+" || op.name == "-") return 5;
  if (op.name == "*" || op.name == "/" || op.name == "@") return 6;
  if (op.name == "^") return 8;
  return 0;
}

Written infix_text(const Op& op, const Written& a, const Written& b, Type type, Facts facts) {
  const int own = infix(op);
  const int left = own == 8 ? 9 : (own == 4 ? 5 : own);
  const int right = own == 8 ? 8 : own + 1;
  return {fmt::format("{} {} {}", ExpressionWriter::operand(a, left), op.name,
                      ExpressionWriter::operand(b, right)),
          own, std::move(type), facts, std::max(a.rounds, b.rounds)};
}

}  // namespace

// --- U, B, G

std::optional<Written> ExpressionWriter::unary(Scope& scope, const Op& op, const Want& want) {
  Want inner = want.with(want.type);
  inner.exact = want.exact || jumps(op);
  Maybe a = write(scope, inner);
  if (!a) return std::nullopt;
  // A row without a domain of its own is tried on smaller and smaller ranges.
  for (const Interval range : {domain(op, 0), Interval{-2, 2}, Interval{0.5, 2}}) {
    const Written fitted = jumps(op) ? *a : fit(*a, range);
    if (inner.exact && !fitted.facts.exact()) return std::nullopt;
    const Facts facts = unary_facts(op, fitted.facts);
    if (!usable(facts)) continue;
    if (op.name == "-") return Written{"-" + operand(fitted, 8), 7, want.type, facts, a->rounds};
    if (op.name == "not")
      return Written{"not " + operand(fitted, 3), 3, want.type, facts, a->rounds};
    return applied(op.name, fitted.text, want.type, facts, a->rounds);
  }
  return std::nullopt;
}

std::optional<Written> ExpressionWriter::binary(Scope& scope, const Op& op, const Want& want) {
  const Types types = split(want.type, 2);
  std::vector<Written> args;
  for (std::size_t i = 0; i < 2; ++i) {
    Want inner = want.with(types[i]);
    inner.exact = want.exact || jumps(op);
    Maybe arg = write(scope, inner);
    if (!arg) return std::nullopt;
    if (!jumps(op) || op.name == "mod") arg = fit(*arg, domain(op, i));
    if (inner.exact && !arg->facts.exact()) return std::nullopt;
    args.push_back(std::move(*arg));
  }
  const Facts facts = op.name == "*" ? product_facts(args[0].facts, args[1].facts)
                                     : binary_facts(op, args[0].facts, args[1].facts);
  if (infix(op) != 0) return infix_text(op, args[0], args[1], want.type, facts);
  return applied(op.name, args[0].text + ", " + args[1].text, want.type, facts,
                 std::max(args[0].rounds, args[1].rounds));
}

// --- A

std::optional<Written> ExpressionWriter::aggregation(Scope& scope, const Op& op, const Want& want) {
  const std::vector<std::string> sets = record_sets(scope);
  const bool star = !want.type.federated() && want.folds && op.monoid != nullptr && !sets.empty() &&
                    random_.chance(65);
  // The wanted axes, with the folded ones put in between.
  std::vector<std::pair<Dim, bool>> dims;
  for (const Dim& dim : want.type.dims) dims.emplace_back(dim, false);
  const auto insert = [&](Dim dim) {
    const int at = random_.between(0, static_cast<int>(dims.size()));
    dims.insert(dims.begin() + at, {std::move(dim), true});
  };
  if (star) insert(Dim::record(random_.pick(sets)));
  const int more = random_.chance(star ? 25 : 50) && !options_.base ? 1 : 0;
  const int ordinary = (star ? 0 : 1) + more;
  for (int i = 0; i < ordinary && dims.size() < 4; ++i) insert(Dim::of(random_size(scope)));
  Type of;
  std::vector<std::int64_t> axes;
  std::int64_t count = 1;
  std::int64_t fewest = 1;
  for (const auto& [dim, folded] : dims) {
    if (folded) axes.push_back(static_cast<std::int64_t>(of.rank()));
    if (folded) count *= most(scope, dim);
    if (folded && !dim.star) fewest *= least(scope, dim);
    of.dims.push_back(dim);
  }
  if (axes.empty() || !small(scope, of)) return std::nullopt;
  if ((op.name == "var" || op.name == "std") && !star && fewest < 2) return std::nullopt;
  const bool every = axes.size() == of.rank() && !of.federated() && random_.chance(60);
  random_.shuffle(axes);

  Want inner = want.with(of);
  inner.exact = want.exact || jumps(op);
  inner.folds = want.folds && !(options_.one_round && star);
  Maybe a = write(scope, inner);
  if (!a) return std::nullopt;
  if (op.name == "prod") {
    if (inner.exact && !(count <= 4 && usable(aggregation_facts("prod", a->facts, count)))) {
      a->text = fmt::format("sign({})", a->text);
      a->binds = 10;
      a->facts = {-1, 1, 0, 0};
    } else if (!inner.exact) {
      const double slack = 4.0 / static_cast<double>(count);
      a = fit(*a, {1 - std::min(slack, 0.5), 1 + slack});
    }
  }
  if (op.name == "logsumexp" || op.name == "var" || op.name == "norm") a = fit(*a, {-20, 20});
  if (inner.exact && !a->facts.exact()) return std::nullopt;
  const Facts facts = aggregation_facts(op.name, a->facts, count);
  return applied(op.name + (every ? "" : axis_list(of, axes)), a->text, want.type, facts,
                 a->rounds + (star ? 1 : 0));
}

// Records of one set along the star of both operands, wherever it stands.
std::optional<Written> ExpressionWriter::covariance(Scope& scope, const Op& op, const Want& want) {
  const std::vector<std::string> sets = record_sets(scope);
  const bool one = op.max_args == 1;
  if (want.type.federated() || want.type.rank() != 2 || !want.folds || want.exact || sets.empty() ||
      options_.base || (one && !(want.type.dims[0] == want.type.dims[1])))
    return std::nullopt;
  const Dim star = Dim::record(random_.pick(sets));
  std::string text;
  std::string axes;
  Facts facts{-20, 20, 0, -1};
  int rounds = 0;
  for (std::size_t i = 0; i < (one ? 1U : 2U); ++i) {
    const Type of = with_axis(Type{{want.type.dims[i]}}, random_.chance(50) ? 0 : 1, star);
    Want inner = want.with(of);
    inner.folds = want.folds && !options_.one_round;
    Maybe a = write(scope, inner);
    if (!a) return std::nullopt;
    a = fit(*a, {-20, 20});
    if (!a) return std::nullopt;
    if (i == 0) axes = axis_list(of, {static_cast<std::int64_t>(*of.record_axis())});
    text += (i == 0 ? "" : ", ") + a->text;
    facts.error = std::max(facts.error, a->facts.error);
    rounds = std::max(rounds, a->rounds);
  }
  Facts result = aggregation_facts("var", facts, 1);
  result.lo = -result.hi;
  return applied(op.name + axes, text, want.type, result, rounds + 1);
}

std::optional<Written> ExpressionWriter::quantile(Scope& scope, const Op& op, const Want& want) {
  Type of = want.type;
  Written q = number(random_.pick(std::vector<double>{0, 0.25, 0.5, 0.8, 1}));
  const bool several =
      !of.dims.empty() && !of.dims.back().star && random_.chance(50) && !options_.base;
  if (several) {
    Want inner = want.with(Type{{of.dims.back()}});
    inner.depth = std::min(inner.depth, 1);
    Maybe vector = fit(write(scope, inner), {0.05, 0.95});
    if (!vector) return std::nullopt;
    q = *vector;
    of.dims.pop_back();
  }
  const auto axis = static_cast<std::size_t>(random_.between(0, static_cast<int>(of.rank())));
  of = with_axis(of, axis, Dim::of(random_size(scope)));
  if (!small(scope, of)) return std::nullopt;
  Maybe a = write(scope, want.with(of));
  if (!a) return std::nullopt;
  Facts facts = aggregation_facts(op.name, a->facts, most(scope, of.dims[axis]));
  facts.error += 20 * a->facts.size() * q.facts.error;
  return applied(op.name + axis_list(of, {static_cast<std::int64_t>(axis)}),
                 a->text + ", " + q.text, want.type, facts, std::max(a->rounds, q.rounds));
}

std::optional<Written> ExpressionWriter::records(Scope& scope, const Want& want) {
  if (!want.type.is_scalar() || !want.folds || record_sets(scope).empty()) return std::nullopt;
  Want inner = want.with(random_type(scope, true, 2));
  inner.depth = std::min(inner.depth, 1);
  inner.folds = !options_.one_round;
  Maybe a = write(scope, inner);
  if (!a) return std::nullopt;
  return applied("records", a->text, want.type, {0, max_records, 0, 0}, 1);
}

// --- P and MatMul

std::optional<Written> ExpressionWriter::permutation(Scope& scope, const Want& want) {
  const std::size_t rank = want.type.rank();
  if (rank == 0) return std::nullopt;
  std::vector<std::int64_t> order(rank);
  std::iota(order.begin(), order.end(), 1);
  random_.shuffle(order);
  Type of = want.type;
  for (std::size_t i = 0; i < rank; ++i) {
    of.dims[static_cast<std::size_t>(order[i] - 1)] = want.type.dims[i];
  }
  Maybe a = write(scope, want.with(of));
  if (!a) return std::nullopt;
  if (rank == 2 && order[0] == 2 && random_.chance(75)) {
    return Written{operand(*a, 9) + "'", 9, want.type, a->facts, a->rounds};
  }
  return applied(fmt::format("permute[{}]", fmt::join(order, ", ")), a->text, want.type, a->facts,
                 a->rounds);
}

std::optional<Written> ExpressionWriter::matmul(Scope& scope, const Op& op, const Want& want) {
  const std::size_t rank = want.type.rank();
  const bool left_vector = !options_.base && (rank == 0 || random_.chance(25));
  const bool right_vector =
      !options_.base && (rank == 0 || (rank == 1 && !left_vector) || random_.chance(25));
  const std::size_t own = (left_vector ? 0U : 1U) + (right_vector ? 0U : 1U);
  if (own > rank || (own == 0 && rank > 0)) return std::nullopt;

  const std::vector<std::string> sets = record_sets(scope);
  const bool star = !want.type.federated() && want.folds && !sets.empty() && random_.chance(70);
  const Dim contracted = star ? Dim::record(random_.pick(sets)) : Dim::of(random_size(scope));
  Type lead;
  lead.dims.assign(want.type.dims.begin(), want.type.dims.end() - static_cast<std::ptrdiff_t>(own));
  const bool split_lead = !left_vector && !right_vector && !lead.dims.empty();
  const Types leads = split_lead ? split(lead, 2) : Types{lead, lead};
  Type a = left_vector ? Type{} : leads[0];
  Type b = right_vector ? Type{} : leads[1];
  if (!left_vector) a.dims.push_back(want.type.dims[lead.rank()]);
  a.dims.push_back(contracted);
  b.dims.push_back(contracted);
  if (!right_vector) b.dims.push_back(want.type.dims.back());
  const std::optional<Type> result = typed(op, {a, b});
  if (!result || !(*result == want.type) || !small(scope, a) || !small(scope, b))
    return std::nullopt;
  if (options_.base && (a.rank() != 2 || b.rank() != 2 || (!a.federated() && !b.federated()))) {
    return std::nullopt;
  }

  std::vector<Written> args;
  for (const Type& type : {a, b}) {
    Want inner = want.with(type);
    inner.folds = want.folds && !(options_.one_round && star);
    Maybe arg = fit(write(scope, inner), {-8, 8});
    if (!arg || (want.exact && !arg->facts.exact())) return std::nullopt;
    args.push_back(std::move(*arg));
  }
  const Facts facts =
      sum_facts(product_facts(args[0].facts, args[1].facts), most(scope, contracted));
  Written e = infix_text(op, args[0], args[1], want.type, facts);
  e.rounds += star ? 1 : 0;
  return e;
}

// --- within a record

std::optional<Written> ExpressionWriter::ternary(Scope& scope, const Op& op, const Want& want) {
  const Types types = split(want.type, 3);
  std::vector<Written> args;
  for (std::size_t i = 0; i < 3; ++i) {
    Want inner = want.with(types[i]);
    inner.exact = want.exact || (op.name == "where" && i == 0);
    Maybe arg = write(scope, inner);
    if (!arg || (inner.exact && !arg->facts.exact())) return std::nullopt;
    args.push_back(std::move(*arg));
  }
  Facts facts = either(args[1].facts, args[2].facts);
  if (op.name == "clip") facts = either(facts, args[0].facts);
  return applied(op.name, fmt::format("{}, {}, {}", args[0].text, args[1].text, args[2].text),
                 want.type, facts, std::max({args[0].rounds, args[1].rounds, args[2].rounds}));
}

std::optional<Written> ExpressionWriter::clip_norm(Scope& scope, const Want& want) {
  Maybe a = write(scope, want.with(want.type));
  Want inner = want.with(Type::scalar());
  inner.depth = std::min(inner.depth, 1);
  Maybe bound = fit(write(scope, inner), {0.5, 3});
  if (!a || !bound) return std::nullopt;
  Facts facts = a->facts;
  facts.grain = -1;
  facts.lo = std::min(facts.lo, 0.0);
  facts.hi = std::max(facts.hi, 0.0);
  facts.error = 4 * facts.error + 2 * bound->facts.error + 1e-14;
  return applied("clip_norm", a->text + ", " + bound->text, want.type, facts,
                 std::max(a->rounds, bound->rounds));
}

std::optional<Written> ExpressionWriter::one_hot(Scope& scope, const Want& want) {
  if (want.type.dims.empty() || want.type.dims.back().star) return std::nullopt;
  Want inner = want.with(without_axis(want.type, want.type.rank() - 1));
  inner.exact = true;
  Maybe a = write(scope, inner);
  if (!a || !a->facts.exact()) return std::nullopt;
  // Labels are 1 to k; only nan may stand beside them.
  const std::string k = want.type.dims.back().to_string();
  return applied("one_hot", fmt::format("1 + mod(floor({}), {}), {}", a->text, k, k), want.type,
                 {0, 1, 0, 0}, a->rounds);
}

std::optional<Written> ExpressionWriter::along_axis(Scope& scope, const Op& op, const Want& want) {
  std::vector<std::int64_t> axes;
  for (std::size_t k = 0; k < want.type.rank(); ++k) {
    if (!want.type.dims[k].star) axes.push_back(static_cast<std::int64_t>(k));
  }
  if (axes.empty()) return std::nullopt;
  Maybe a = fit(write(scope, want.with(want.type)), domain(op, 0));
  if (!a) return std::nullopt;
  const bool logs = op.name == "log_softmax";
  const Facts facts{logs ? -25.0 : 0.0, logs ? 0.0 : 1.0, 4 * a->facts.error + 1e-14, -1};
  return applied(fmt::format("{}[{}]", op.name, random_.pick(axes) + 1), a->text, want.type, facts,
                 a->rounds);
}

std::optional<Written> ExpressionWriter::like(Scope& scope, const Op& op, const Want& want) {
  Want inner = want.with(want.type);
  if (op.name != "stop_gradient") {
    inner.exact = false;
    inner.depth = std::min(inner.depth, 1);
  }
  if (options_.special) inner.exact = true;
  Maybe a = write(scope, inner);
  if (!a) return std::nullopt;
  Facts facts = a->facts;
  if (op.name == "zeros_like") facts = constant_facts(0);
  if (op.name == "ones_like") facts = constant_facts(1);
  return applied(op.name, a->text, want.type, facts, a->rounds);
}

// --- rows of users

// A row without a recipe: operand types are tried until its own rule gives the wanted type, and
// nothing is assumed of its values.
std::optional<Written> ExpressionWriter::unknown(Scope& scope, const Op& op, const Want& want) {
  if (want.exact || op.axes != Op::Axes::none || op.first_size_arg >= 0) return std::nullopt;
  const int arity = op.max_args < 0 ? std::max(op.min_args, 2) : op.max_args;
  for (int attempt = 0; attempt < 12; ++attempt) {
    Types types;
    for (int i = 0; i < arity; ++i) {
      const bool same = attempt % 3 == 0 || random_.chance(30);
      const bool federated = want.type.federated() && random_.chance(70);
      types.push_back(same ? want.type : random_type(scope, federated, 3));
    }
    if (typed(op, types) != want.type) continue;
    std::vector<std::string> texts;
    Facts facts{-1, 1, 1e-14, -1};
    int rounds = 0;
    for (std::size_t i = 0; i < types.size(); ++i) {
      Maybe arg = fit(write(scope, want.with(types[i])), domain(op, i));
      if (!arg) return std::nullopt;
      texts.push_back(arg->text);
      rounds = std::max(rounds, arg->rounds);
      facts.error += 100 * arg->facts.error;
    }
    return applied("tanh", fmt::format("{}({})", op.name, fmt::join(texts, ", ")), want.type, facts,
                   rounds);
  }
  return std::nullopt;
}

// --- functions

std::optional<Written> ExpressionWriter::call(Scope& scope, const Want& want) {
  const Callable callable = random_.pick(scope.callables);
  const std::vector<std::string> sets = record_sets(scope);
  for (int attempt = 0; attempt < 6; ++attempt) {
    std::map<std::string, Size, std::less<>> sizes;
    for (const std::string& name : callable.sizes) {
      const Size size = random_size(scope);
      if (most(scope, Dim::of(size)) > 4) return std::nullopt;
      sizes.emplace(name, size);
    }
    std::map<std::string, std::string> renamed;
    for (const std::string& set : callable.record_sets) {
      if (sets.empty()) return std::nullopt;
      renamed[set] = random_.pick(sets);
    }
    const auto instantiated = [&](const Type& type) {
      Type result = type;
      for (Dim& dim : result.dims) {
        if (dim.star) {
          dim.record_set = renamed[dim.record_set];
        } else {
          dim.size = *dim.size.substitute(sizes);
        }
      }
      return result;
    };
    std::vector<std::size_t> fitting;
    for (std::size_t i = 0; i < callable.results.size(); ++i) {
      if (instantiated(callable.results[i].type) == want.type) fitting.push_back(i);
    }
    if (fitting.empty()) continue;
    const std::size_t chosen = random_.pick(fitting);
    const Named& result = callable.results[chosen];
    if (result.rounds > 0 && !want.folds) return std::nullopt;
    std::vector<std::string> texts;
    int rounds = 0;
    for (const Named& param : callable.params) {
      Want inner = want.with(instantiated(param.type));
      inner.exact = param.facts.exact();
      inner.folds = want.folds && !(options_.one_round && result.rounds > 0);
      Maybe arg = fit(write(scope, inner), {param.facts.lo, param.facts.hi});
      if (!arg || arg->facts.error > param.facts.error || !small(scope, arg->type))
        return std::nullopt;
      if (inner.exact && (!arg->facts.exact() || arg->facts.grain > param.facts.grain))
        return std::nullopt;
      texts.push_back(arg->text);
      rounds = std::max(rounds, arg->rounds);
    }
    const std::string text = fmt::format("{}({})", callable.name, fmt::join(texts, ", "));
    if (callable.results.size() == 1) {
      return Written{text, 10, want.type, result.facts, rounds + result.rounds};
    }
    std::vector<std::string> names;
    for (const Named& each : callable.results) {
      names.push_back(fresh("r"));
      scope.names.push_back(
          {names.back(), instantiated(each.type), each.facts, rounds + each.rounds});
    }
    scope.lines.push_back(fmt::format("let ({}) = {}", fmt::join(names, ", "), text));
    return Written{names[chosen], 10, want.type, result.facts, rounds + result.rounds};
  }
  return std::nullopt;
}

}  // namespace starfold::laws

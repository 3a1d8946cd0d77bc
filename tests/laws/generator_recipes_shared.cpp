// How what only shared values have is written: linear algebra, constructions, distributions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "tests/laws/generator_expressions.h"

namespace starfold::laws {

std::optional<Written> ExpressionWriter::positive_definite(Scope& scope, const Size& n,
                                                           const Want& want) {
  const Type type = Type::shared({Size(random_.between(1, 2)), n});
  Maybe m = fit(write(scope, want.with(type)), {-1, 1});
  if (!m) return std::nullopt;
  const Written root = hoist(scope, *m);
  const auto rows = static_cast<double>(type.dims[0].size.constant());
  Written e;
  e.text = fmt::format("{0}' @ {0} + eye({1})", root.text, n.to_string());
  e.type = Type::shared({n, n});
  e.facts = {-rows, rows + 1, 4 * rows * root.facts.error + 1e-15, -1};
  e.rounds = root.rounds;
  return hoist(scope, e);
}

std::optional<Written> ExpressionWriter::linear_algebra(Scope& scope, const Op& op,
                                                        const Want& want) {
  const Type& type = want.type;
  const std::string& name = op.name;
  const bool square = type.rank() == 2 && type.dims[0] == type.dims[1];
  if (name == "diag") {
    if (type.rank() != 1 && !square) return std::nullopt;
    const Type of = type.rank() == 1 ? Type{{type.dims[0], type.dims[0]}} : Type{{type.dims[0]}};
    if (!small(scope, of)) return std::nullopt;
    Maybe a = write(scope, want.with(of));
    if (!a) return std::nullopt;
    return applied(name, a->text, type, either(a->facts, constant_facts(0)), a->rounds);
  }
  if (name == "trace_of") {
    const Dim n = Dim::of(random_size(scope));
    if (!type.is_scalar() || !small(scope, Type{{n, n}})) return std::nullopt;
    Maybe a = write(scope, want.with(Type{{n, n}}));
    if (!a) return std::nullopt;
    return applied(name, a->text, type, sum_facts(a->facts, most(scope, n)), a->rounds);
  }
  Size n = random_size(scope);
  if (name == "solve") {
    if (type.rank() != 1 && type.rank() != 2) return std::nullopt;
    n = type.dims[0].size;
  } else if (name == "cholesky" || name == "inv") {
    if (!square) return std::nullopt;
    n = type.dims[0].size;
  } else if (!type.is_scalar()) {
    return std::nullopt;
  }
  const auto order = static_cast<double>(most(scope, Dim::of(n)));
  if (order > 6) return std::nullopt;
  Maybe a = positive_definite(scope, n, want);
  if (!a) return std::nullopt;
  const double top = 1 + 2 * order;  // no eigenvalue is larger
  const double error = 20 * order * (a->facts.error + 1e-15);
  if (name == "solve") {
    Maybe b = fit(write(scope, want.with(type)), {-20, 20});
    if (!b) return std::nullopt;
    const double bound = order * b->facts.size();
    const Facts facts{-bound, bound, 4 * order * b->facts.error + bound * error, -1};
    return applied(name, a->text + ", " + b->text, type, facts, std::max(a->rounds, b->rounds));
  }
  Facts facts{-top, top, error, -1};
  if (name == "logdet") facts = {0, order * std::log(top), error * order, -1};
  if (name == "det") facts = {0, std::pow(top, order), error * std::pow(top, order), -1};
  return applied(name, a->text, type, facts, a->rounds);
}

// Only what does not depend on the signs and the order of vectors.
std::optional<Written> ExpressionWriter::factored(Scope& scope, const Op& op, const Want& want) {
  const Type& type = want.type;
  if (type.rank() != 1 && type.rank() != 2) return std::nullopt;
  const Dim n = type.dims.back();
  const bool square = type.rank() == 2 && type.dims[0] == n;
  const auto order = static_cast<double>(most(scope, n));
  if (order > 6) return std::nullopt;
  const std::string a = fresh("a");
  const std::string b = fresh("b");
  const std::string c = fresh("c");
  Written e{"", 6, type, {}, 0};
  if (op.name == "eigh") {
    if (type.rank() == 2 && !square) return std::nullopt;
    Maybe m = positive_definite(scope, n.size, want);
    if (!m) return std::nullopt;
    scope.lines.push_back(fmt::format("let ({}, {}) = eigh({})", a, b, m->text));
    e.rounds = m->rounds;
    e.facts = {-1, 1, 50 * order * (m->facts.error + 1e-15), -1};
    e.text = fmt::format("{1} @ diag(tanh({0})) @ {1}'", a, b);
    if (type.rank() == 1) {
      e.text = a;
      e.binds = 10;
      e.facts.lo = 0.5;
      e.facts.hi = 2 + 2 * order;
    }
    return e;
  }
  if (op.name == "svd") {
    Dim m = square || type.rank() == 1 ? Dim::of(random_size(scope)) : type.dims[0];
    if (least(scope, m) < most(scope, n) || !small(scope, Type{{m, n}})) return std::nullopt;
    Maybe matrix = fit(write(scope, want.with(Type{{m, n}})), {-2, 2});
    if (!matrix) return std::nullopt;
    scope.lines.push_back(fmt::format("let ({}, {}, {}) = svd({})", a, b, c, matrix->text));
    e.rounds = matrix->rounds;
    const double bound = 2.1 * std::sqrt(static_cast<double>(most(scope, m)) * order);
    e.facts = {-bound, bound, 20 * order * (matrix->facts.error + 1e-15), -1};
    e.text = fmt::format("{} @ diag({}) @ {}'", square && !(m == n) ? c : a, b, c);
    if (type.rank() == 1) {
      e.text = b;
      e.binds = 10;
    }
    return e;
  }
  // qr of a matrix whose columns are far from dependent: two identities above anything small.
  if (type.rank() != 2) return std::nullopt;
  std::optional<Size> rows = subtract(type.dims[0].size, n.size);
  if (square) rows = Size(random_.between(1, 2));
  if (!rows || !never_below(scope, *rows, 1)) return std::nullopt;
  Maybe below = fit(write(scope, want.with(Type{{Dim::of(*rows), n}})), {-1, 1});
  if (!below) return std::nullopt;
  scope.lines.push_back(fmt::format("let ({}, {}) = qr(concat[1](2 * eye({}), {}))", a, b,
                                    n.to_string(), below->text));
  e.rounds = below->rounds;
  e.binds = 10;
  e.text = square ? b : a;
  const double bound = square ? 2 + std::sqrt(order) * 3 : 1.01;
  e.facts = {-bound, bound, 50 * order * (below->facts.error + 1e-15), -1};
  return e;
}

std::optional<Written> ExpressionWriter::construction(Scope& scope, const Op& op,
                                                      const Want& want) {
  const Type& type = want.type;
  const std::string& name = op.name;
  const std::string sizes = size_list(type);
  if (name == "sort" || name == "cumsum") {
    if (type.is_scalar()) return std::nullopt;
    Maybe a = write(scope, want.with(type));
    if (!a) return std::nullopt;
    if (name == "sort") return applied(name, a->text, type, a->facts, a->rounds);
    const auto axis = static_cast<std::size_t>(random_.below(static_cast<int>(type.rank())));
    const Facts facts = either(a->facts, sum_facts(a->facts, most(scope, type.dims[axis])));
    return applied(fmt::format("cumsum[{}]", axis + 1), a->text, type, facts, a->rounds);
  }
  if (name == "zeros" || name == "ones") {
    return applied(name, sizes, type, constant_facts(name == "ones" ? 1 : 0), 0);
  }
  if (name == "eye") {
    if (type.rank() != 2 || !(type.dims[0] == type.dims[1])) return std::nullopt;
    return applied(name, type.dims[0].to_string(), type, {0, 1, 0, 0}, 0);
  }
  if (name == "normal" || name == "uniform") {
    const std::string seed = std::to_string(random_.below(1 << 20));
    const Facts facts = name == "normal" ? Facts{-8, 8, 0, -1} : Facts{0, 1, 0, -1};
    return applied(name, seed + (sizes.empty() ? "" : ", " + sizes), type, facts, 0);
  }
  Maybe a = write(scope, want.with(Type::scalar()));
  if (!a) return std::nullopt;
  if (name == "full") {
    return applied(name, a->text + (sizes.empty() ? "" : ", " + sizes), type, a->facts, a->rounds);
  }
  if (type.rank() != 1) return std::nullopt;  // linspace
  Maybe b = write(scope, want.with(Type::scalar()));
  if (!b) return std::nullopt;
  Facts facts = either(a->facts, b->facts);
  facts.grain = -1;
  facts.error = 2 * facts.error + 1e-15 * facts.size();
  return applied(name, fmt::format("{}, {}, {}", a->text, b->text, sizes), type, facts,
                 std::max(a->rounds, b->rounds));
}

std::optional<Written> ExpressionWriter::distribution(Scope& scope, const Op& op,
                                                      const Want& want) {
  const Types types = split(want.type, static_cast<std::size_t>(op.max_args));
  std::vector<Written> args;
  std::vector<std::string> texts;
  Facts facts{0, 1, 0, -1};
  int rounds = 0;
  for (std::size_t i = 0; i < types.size(); ++i) {
    Maybe arg = fit(write(scope, want.with(types[i])), domain(op, i));
    if (!arg) return std::nullopt;
    texts.push_back(arg->text);
    rounds = std::max(rounds, arg->rounds);
    facts.error += 4 * arg->facts.error;
    args.push_back(std::move(*arg));
  }
  if (op.map1 != nullptr) facts = unary_facts(op, args[0].facts);
  if (op.map2 != nullptr) facts = binary_facts(op, args[0].facts, args[1].facts);
  facts.error += 1e-14;
  return applied(op.name, fmt::format("{}", fmt::join(texts, ", ")), want.type, facts, rounds);
}

}  // namespace starfold::laws

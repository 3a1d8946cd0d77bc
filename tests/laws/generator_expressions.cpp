#include "tests/laws/generator_expressions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "starfold/ops/standard.h"

namespace starfold::laws {

// --- texts

std::string ExpressionWriter::operand(const Written& e, int at_least) {
  return e.binds >= at_least ? e.text : "(" + e.text + ")";
}

Written ExpressionWriter::applied(const std::string& name, const std::string& inside, Type type,
                                  Facts facts, int rounds) {
  return {fmt::format("{}({})", name, inside), 10, std::move(type), facts, rounds};
}

Written ExpressionWriter::number(double value) {
  return {fmt::format("{}", value), value < 0 ? 7 : 10, Type::scalar(), constant_facts(value), 0};
}

std::string ExpressionWriter::size_list(const Type& type) const {
  std::vector<std::string> sizes;
  for (const Dim& dim : type.dims) {
    if (!dim.star) sizes.push_back(dim.size.to_string());
  }
  return fmt::format("{}", fmt::join(sizes, ", "));
}

std::string ExpressionWriter::axis_list(const Type& of, const std::vector<std::int64_t>& axes) {
  std::vector<std::string> written;
  for (const std::int64_t axis : axes) {
    const Dim& dim = of.dims[static_cast<std::size_t>(axis)];
    const bool by_star = dim.star && random_.chance(75);
    written.push_back(by_star ? (random_.chance(50) ? dim.to_string() : "*")
                              : std::to_string(axis + 1));
  }
  return fmt::format("[{}]", fmt::join(written, ", "));
}

Written ExpressionWriter::hoist(Scope& scope, Written e) {
  const std::string name = fresh("h");
  scope.lines.push_back(fmt::format("let {} = {}", name, e.text));
  scope.names.push_back({name, e.type, e.facts, e.rounds});
  return {name, 10, e.type, e.facts, e.rounds};
}

// --- types

std::int64_t ExpressionWriter::most(const Scope& scope, const Dim& dim) {
  return dim.star ? max_records : dim.size.evaluate(scope.most).value_or(1000);
}

std::int64_t ExpressionWriter::least(const Scope& scope, const Dim& dim) {
  return dim.star ? 0 : dim.size.evaluate(scope.least).value_or(0);
}

bool ExpressionWriter::small(const Scope& scope, const Type& type) const {
  std::int64_t cell = 1;
  for (const Dim& dim : type.dims) {
    if (!dim.star) cell *= most(scope, dim);
  }
  return cell <= 40 && type.rank() <= 4;
}

std::vector<std::string> ExpressionWriter::record_sets(const Scope& scope) const {
  std::vector<std::string> sets;
  for (const Named& named : scope.names) {
    if (!named.type.federated()) continue;
    if (std::find(sets.begin(), sets.end(), named.type.record_set()) == sets.end()) {
      sets.push_back(named.type.record_set());
    }
  }
  return sets;
}

Size ExpressionWriter::random_size(Scope& scope) { return random_.pick(scope.sizes); }

Type ExpressionWriter::random_size_type(Scope& scope, int max_rank) {
  Type type;
  const int rank = std::min(max_rank, random_.pick(std::vector<int>{0, 0, 1, 1, 1, 2, 2, 2, 3}));
  for (int i = 0; i < rank; ++i) {
    Type longer = type;
    longer.dims.push_back(Dim::of(random_size(scope)));
    if (small(scope, longer)) type = std::move(longer);
  }
  return type;
}

Type ExpressionWriter::random_type(Scope& scope, bool federated, int max_rank) {
  const std::vector<std::string> sets = record_sets(scope);
  federated = federated && !sets.empty();
  if (options_.base) {
    // Only what the names in scope can be folded and permuted to.
    std::vector<Type> types;
    for (const Named& named : scope.names) {
      if (named.type.federated() || !federated) types.push_back(named.type);
    }
    if (types.empty()) return Type::scalar();
    Type type = random_.pick(types);
    for (std::size_t axis = type.rank(); axis-- > 0;) {
      const bool star = type.dims[axis].star;
      if (star ? !federated : random_.chance(30)) type = without_axis(type, axis);
    }
    if (random_.chance(30)) random_.shuffle(type.dims);
    return type;
  }
  if (random_.chance(45)) {
    std::vector<Type> types;
    for (const Named& named : scope.names) {
      const bool fits = static_cast<int>(named.type.rank()) <= max_rank;
      if (fits && named.type.federated() == federated) types.push_back(named.type);
    }
    if (!types.empty()) return random_.pick(types);
  }
  Type type = random_size_type(scope, federated ? max_rank - 1 : max_rank);
  if (federated) {
    const int axis = random_.chance(50) ? 0 : random_.between(0, static_cast<int>(type.rank()));
    type = with_axis(type, static_cast<std::size_t>(axis), Dim::record(random_.pick(sets)));
  }
  return type;
}

ExpressionWriter::Types ExpressionWriter::split(const Type& type, std::size_t operands) {
  Types parts(operands, type);
  const auto full = static_cast<std::size_t>(random_.below(static_cast<int>(operands)));
  for (std::size_t axis = 0; axis < type.rank(); ++axis) {
    const auto owner = static_cast<std::size_t>(random_.below(static_cast<int>(operands)));
    for (std::size_t i = 0; i < operands; ++i) {
      if (i != owner && random_.chance(30)) parts[i].dims[axis] = Dim::of(1);
    }
  }
  if (options_.base && type.federated()) {
    // No federated operand stretches: each is of the type itself, or shared.
    parts[full] = type;
    for (Type& part : parts) {
      if (part.federated()) part = type;
    }
  }
  for (std::size_t i = 0; i < operands; ++i) {
    if (i == full || (options_.base && parts[i].federated())) continue;
    while (!parts[i].dims.empty() && parts[i].dims[0].is_one() && random_.chance(70)) {
      parts[i] = without_axis(parts[i], 0);
    }
  }
  return parts;
}

std::optional<Type> ExpressionWriter::typed(const Op& op, const Types& args,
                                            const std::vector<std::int64_t>& axes,
                                            const std::vector<Size>& sizes) const {
  Diagnostics ignored;
  TypeQuery query{op, args, {}, {}, std::nullopt, {}, {}, {}, ignored, {}};
  query.arg_spans.resize(args.size());
  query.arg_texts.resize(args.size());
  query.attrs.sizes = sizes;
  if (!axes.empty()) {
    query.axes.emplace();
    for (const std::int64_t axis : axes) query.axes->push_back({false, {}, axis + 1, {}});
  }
  const auto types = op.type(query);
  if (!types) return std::nullopt;
  return types->front();
}

// --- the choice of a row

bool ExpressionWriter::fits(const Written& e, const Want& want) const {
  return e.type == want.type && usable(e.facts) && (e.facts.exact() || !want.exact) &&
         (want.folds || e.rounds == 0);
}

bool ExpressionWriter::row_allowed(const Op& op, const Want& want) const {
  if (op.family == Family::differentiation) return false;
  if (want.exact && !keeps_exact(op)) return false;
  if (op.family == Family::shared_only && want.type.federated()) return false;
  if (options_.base) {
    return op.family != Family::client_local && op.family != Family::shared_only &&
           op.max_args == (op.family == Family::aggregation ? 1 : op.max_args) &&
           op.name != "records";
  }
  if (options_.wide && !selects(op)) return false;
  if (options_.derivatives && op.name == "stop_gradient") return false;  // no difference sees it
  if (options_.core) {
    return op.family != Family::client_local && op.family != Family::shared_only &&
           op.name != "quantile";
  }
  return true;
}

std::optional<Written> ExpressionWriter::write(Scope& scope, const Want& want) {
  if (want.depth <= 0 || random_.chance(8)) return leaf(scope, want);
  const auto& rows = options_.signature->ops();
  for (int attempt = 0; attempt < 8; ++attempt) {
    Maybe e;
    if (!scope.callables.empty() && random_.chance(12)) {
      e = call(scope, want);
    } else {
      // The rows that carry most programs come up more often than one row in a hundred.
      static const std::vector<std::string> common = {"+", "-", "*", "sum", "@", "@", "permute"};
      const Op* op = random_.pick(rows).get();
      const std::size_t standard = standard_signature().ops().size();
      if (rows.size() > standard && random_.chance(30)) {
        op = rows[standard +
                  static_cast<std::size_t>(random_.below(static_cast<int>(rows.size() - standard)))]
                 .get();
      }
      if (random_.chance(35)) {
        const std::string& name = random_.pick(common);
        op = options_.signature->find(name, name == "sum" || name == "permute" ? 1 : 2,
                                      name == "sum" || name == "permute");
      }
      if (op == nullptr || !row_allowed(*op, want)) continue;
      e = try_row(scope, *op, want);
    }
    if (e && fits(*e, want)) return e;
  }
  return leaf(scope, want);
}

std::optional<Written> ExpressionWriter::try_row(Scope& scope, const Op& op, const Want& want) {
  const std::string& name = op.name;
  static const std::set<std::string> algebra = {"solve", "cholesky", "logdet",  "det",
                                                "inv",   "diag",     "trace_of"};
  static const std::set<std::string> made = {"zeros",  "ones",    "full", "eye",   "linspace",
                                             "normal", "uniform", "sort", "cumsum"};
  switch (op.family) {
    case Family::unary:
      return unary(scope, op, want);
    case Family::binary:
    case Family::comparison:
      return binary(scope, op, want);
    case Family::aggregation:
      if (name == "records") return records(scope, want);
      if (name == "cov") return covariance(scope, op, want);
      return name == "quantile" ? quantile(scope, op, want) : aggregation(scope, op, want);
    case Family::permutation:
      return permutation(scope, want);
    case Family::matmul:
      return matmul(scope, op, want);
    case Family::differentiation:
      return std::nullopt;
    case Family::client_local:
    case Family::shared_only:
      break;
  }
  if (name == "[:]") return index(scope, want);
  if (name == "[e]") return lookup(scope, want);
  if (name == "[,]") return stack(scope, want);
  if (name == "concat") return concat(scope, op, want);
  if (name == "reshape") return reshape(scope, op, want);
  if (name == "outer") return outer(scope, op, want);
  if (name == "where" || name == "clip") return ternary(scope, op, want);
  if (name == "clip_norm") return clip_norm(scope, want);
  if (name == "one_hot") return one_hot(scope, want);
  if (name == "softmax" || name == "log_softmax") return along_axis(scope, op, want);
  if (name == "zeros_like" || name == "ones_like" || name == "stop_gradient") {
    return like(scope, op, want);
  }
  if (name == "eigh" || name == "svd" || name == "qr") return factored(scope, op, want);
  if (algebra.count(name) != 0) return linear_algebra(scope, op, want);
  if (made.count(name) != 0) return construction(scope, op, want);
  if (name.find("_cdf") != std::string::npos || name.find("_sf") != std::string::npos ||
      name.find("_quantile") != std::string::npos) {
    return distribution(scope, op, want);
  }
  return unknown(scope, op, want);
}

// --- ranges

Written ExpressionWriter::fit(Written e, Interval range) {
  if (e.facts.within(range)) return e;
  const auto bounded = [&](double lo, double hi) {
    Facts facts = e.facts;
    const Facts bounds = either(constant_facts(lo), constant_facts(hi));
    facts.lo = std::clamp(facts.lo, lo, hi);
    facts.hi = std::clamp(facts.hi, lo, hi);
    if (facts.exact()) facts.grain = bounds.exact() ? std::max(facts.grain, bounds.grain) : -1;
    const std::string low = number(lo).text;
    const std::string high = number(hi).text;
    const bool clip = !options_.base && !options_.core && random_.chance(50);
    e.text = clip ? fmt::format("clip({}, {}, {})", e.text, low, high)
                  : fmt::format("min(max({}, {}), {})", e.text, low, high);
    e.binds = 10;
    e.facts = facts;
    return e;
  };
  if (e.facts.exact()) {
    const double lo = std::ceil(range.lo * 2) / 2;
    const double hi = std::floor(range.hi * 2) / 2;
    if (lo <= hi) return bounded(lo, hi);
  }
  if (random_.chance(25)) return bounded(range.lo, range.hi);
  // Smooth: the middle of the range and a part of its width.
  const double half = std::min((range.hi - range.lo) / 2, 2.0);
  const double middle = std::clamp(0.0, range.lo + half, range.hi - half);
  Facts facts{-half, half, half * e.facts.error + 1e-15, -1};
  std::string text = fmt::format("{}({})", random_.chance(70) ? "tanh" : "sin", e.text);
  e.binds = 10;
  if (half != 1) {
    text = fmt::format("{} * {}", half, text);
    e.binds = 6;
  }
  if (middle != 0) {
    text = fmt::format("{} + {}", middle, text);
    e.binds = 5;
  }
  facts.lo += middle;
  facts.hi += middle;
  e.text = std::move(text);
  e.facts = facts;
  return e;
}

std::optional<Written> ExpressionWriter::fit(std::optional<Written> e, Interval range) {
  if (!e) return std::nullopt;
  return fit(std::move(*e), range);
}

// --- leaves

std::optional<Written> ExpressionWriter::from_name(Scope& scope, const Want& want) {
  std::vector<const Named*> fitting;
  for (const Named& named : scope.names) {
    const Written e{named.name, 10, named.type, named.facts, named.rounds};
    if (fits(e, want)) fitting.push_back(&named);
  }
  if (fitting.empty()) return std::nullopt;
  const Named& named = *random_.pick(fitting);
  return Written{named.name, 10, named.type, named.facts, named.rounds};
}

std::optional<Written> ExpressionWriter::leaf(Scope& scope, const Want& want) {
  if (random_.chance(80)) {
    if (Maybe named = from_name(scope, want)) return named;
  }
  if (options_.base && !want.type.is_scalar()) {
    Maybe e = base_leaf(scope, want);
    return e && fits(*e, want) ? e : std::nullopt;
  }
  return want.type.federated() ? federated_leaf(scope, want) : shared_leaf(scope, want);
}

std::optional<Written> ExpressionWriter::shared_leaf(Scope& scope, const Want& want) {
  const std::vector<double> grid = {0, 1, 2, -1, 0.5, -2, 1.5, 3, -0.5};
  const std::vector<double> plain = {0.3, -0.7, 1.1, 0.1, 2.3, -1.9};
  const auto literal = [&] {
    return random_.pick(want.exact || random_.chance(60) ? grid : plain);
  };
  if (want.type.is_scalar()) {
    if (!scope.size_names.empty() && random_.chance(15)) {
      const std::string& name = random_.pick(scope.size_names);
      const Dim dim = Dim::of(Size::variable(name));
      Facts facts{static_cast<double>(least(scope, dim)), static_cast<double>(most(scope, dim)), 0,
                  0};
      return Written{name, 10, Type::scalar(), facts, 0};
    }
    if (options_.special && random_.chance(8)) {
      const std::string text = random_.pick(std::vector<std::string>{"nan", "inf", "-inf"});
      return Written{text, text[0] == '-' ? 7 : 10, Type::scalar(), {0, 0, 0, 0}, 0};
    }
    if (!want.exact && random_.chance(5))
      return Written{"pi", 10, Type::scalar(), {3, 4, 0, -1}, 0};
    return number(literal());
  }
  const bool constant = std::all_of(want.type.dims.begin(), want.type.dims.end(), [](const Dim& d) {
    return d.size.is_constant() && d.size.constant() <= 3;
  });
  if (constant && want.type.rank() <= 2 && (options_.base || random_.chance(50))) {
    Facts facts = constant_facts(literal());
    const auto list = [&](const auto& self, std::size_t axis) -> std::string {
      if (axis == want.type.rank()) {
        const Written value = number(literal());
        facts = either(facts, value.facts);
        return value.text;
      }
      std::vector<std::string> parts;
      for (std::int64_t i = 0; i < want.type.dims[axis].size.constant(); ++i) {
        parts.push_back(self(self, axis + 1));
      }
      return fmt::format("[{}]", fmt::join(parts, ", "));
    };
    std::string text = list(list, 0);
    return Written{std::move(text), 10, want.type, facts, 0};
  }
  if (options_.base) return std::nullopt;
  const std::string sizes = size_list(want.type);
  const std::string seeded = fmt::format("{}, {}", random_.below(1000), sizes);
  if (random_.chance(25)) {
    const Written value = number(literal());
    return applied("full", value.text + ", " + sizes, want.type, value.facts, 0);
  }
  if (want.exact || random_.chance(30)) {
    return Written{
        fmt::format("floor(5 * uniform({})) - 2", seeded), 5, want.type, {-2, 2, 0, 0}, 0};
  }
  if (random_.chance(50)) return applied("normal", seeded, want.type, {-7, 7, 0, -1}, 0);
  return applied("uniform", seeded, want.type, {0, 1, 0, -1}, 0);
}

// Any federated name of the record set: one number of each record, spread over the wanted shape.
std::optional<Written> ExpressionWriter::federated_leaf(Scope& scope, const Want& want) {
  std::vector<const Named*> fitting;
  for (const Named& named : scope.names) {
    if (!named.type.federated() || named.type.record_set() != want.type.record_set()) continue;
    if (want.folds || named.rounds == 0) fitting.push_back(&named);
  }
  if (fitting.empty()) return std::nullopt;
  std::vector<const Named*> exact;
  for (const Named* each : fitting) {
    if (each->facts.exact()) exact.push_back(each);
  }
  const Named& named = *random_.pick(want.exact && !exact.empty() ? exact : fitting);
  Written e{named.name, 10, named.type, named.facts, named.rounds};
  if (e.type.rank() > 1) {
    std::vector<std::string> slices;
    for (const Dim& dim : e.type.dims) {
      slices.push_back(
          dim.star ? ":" : std::to_string(random_.between(1, static_cast<int>(least(scope, dim)))));
    }
    e.text = fmt::format("{}[{}]", e.text, fmt::join(slices, ", "));
    e.type = Type{{Dim::record(want.type.record_set())}};
  }
  if (want.exact && !e.facts.exact()) {
    const bool ones = random_.chance(50);
    e.text = fmt::format("{}({})", ones ? "ones_like" : "isnan", e.text);
    e.facts = ones ? constant_facts(1) : Facts{0, 1, 0, 0};
  }
  if (want.type == e.type) return e;
  std::vector<std::string> slices;
  Type other = want.type;
  bool plain = true;
  for (Dim& dim : other.dims) {
    slices.push_back(dim.star ? ":" : "new");
    plain = plain && (dim.star || dim.is_one());
    if (dim.star) dim = Dim::of(1);
  }
  e.text = fmt::format("{}[{}]", e.text, fmt::join(slices, ", "));
  e.type = want.type;
  if (plain) return e;
  const bool times = random_.chance(50);
  e.text = times ? fmt::format("{} * ones({})", e.text, size_list(other))
                 : fmt::format("zeros({}) + {}", size_list(other), e.text);
  e.binds = times ? 6 : 5;
  return e;
}

// A name whose axes cover the wanted ones: the others are folded, the rest permuted.
std::optional<Written> ExpressionWriter::base_leaf(Scope& scope, const Want& want) {
  for (int attempt = 0; attempt < 6; ++attempt) {
    const Named& named = random_.pick(scope.names);
    if (named.rounds > 0 && !want.folds) continue;
    std::vector<std::int64_t> order;
    for (const Dim& dim : want.type.dims) {
      std::vector<std::int64_t> places;
      for (std::size_t k = 0; k < named.type.rank(); ++k) {
        const auto at = static_cast<std::int64_t>(k);
        const bool taken = std::find(order.begin(), order.end(), at) != order.end();
        if (named.type.dims[k] == dim && !taken) places.push_back(at);
      }
      if (places.empty()) break;
      order.push_back(random_.pick(places));
    }
    if (order.size() != want.type.rank()) continue;
    // Folded one at a time, the last one first, so that the others keep their places.
    Written e{named.name, 10, named.type, named.facts, named.rounds};
    std::vector<std::int64_t> rest;
    for (std::size_t k = named.type.rank(); k-- > 0;) {
      const auto at = static_cast<std::int64_t>(k);
      if (std::find(order.begin(), order.end(), at) != order.end()) continue;
      const Dim& dim = named.type.dims[k];
      const std::string op = random_.pick(std::vector<std::string>{"max", "min", "sum"});
      e.text = fmt::format("{}{}({})", op, axis_list(e.type, {at}), e.text);
      e.type = without_axis(e.type, k);
      e.facts = aggregation_facts(op, e.facts, most(scope, dim));
      e.rounds += dim.star ? 1 : 0;
      rest.push_back(at);
    }
    if (e.rounds > 0 && !want.folds) continue;
    std::vector<std::int64_t> axes;
    for (const std::int64_t at : order) {
      axes.push_back(at + 1 -
                     std::count_if(rest.begin(), rest.end(), [&](auto r) { return r < at; }));
    }
    if (!std::is_sorted(axes.begin(), axes.end())) {
      e.text = fmt::format("permute[{}]({})", fmt::join(axes, ", "), e.text);
    }
    e.type = want.type;
    if (want.exact && !e.facts.exact()) continue;
    return e;
  }
  return options_.base && !want.type.federated() ? shared_leaf(scope, want) : std::nullopt;
}

}  // namespace starfold::laws

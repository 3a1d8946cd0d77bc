// How what rearranges entries is written: slices, lookups, joined and reshaped values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/laws/generator_expressions.h"

namespace starfold::laws {

bool ExpressionWriter::never_below(const Scope& scope, const Size& size, std::int64_t bound) {
  const std::vector<std::string> names = size.variables();
  const bool fixed = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return scope.least.at(name) == scope.most.at(name);
  });
  return (fixed || names.size() == 1) && size.evaluate(scope.least).value_or(-1) >= bound &&
         size.evaluate(scope.most).value_or(-1) >= bound;
}

std::optional<Written> ExpressionWriter::index(Scope& scope, const Want& want) {
  Type of;
  std::vector<std::string> slices;
  bool picks = false;
  const auto pick_one = [&] {
    const Dim dim = Dim::of(random_size(scope));
    const auto room = static_cast<int>(least(scope, dim));
    slices.push_back(random_.chance(25) ? dim.to_string()
                                        : std::to_string(random_.between(1, room)));
    of.dims.push_back(dim);
    picks = true;
  };
  for (const Dim& dim : want.type.dims) {
    if (random_.chance(25)) pick_one();
    if (dim.is_one() && random_.chance(60)) {
      slices.emplace_back("new");
      picks = true;
      continue;
    }
    std::vector<Size> longer;
    for (const Size& size : scope.sizes) {
      const std::optional<Size> rest = subtract(size, dim.size);
      if (rest && never_below(scope, *rest, 0)) longer.push_back(size);
    }
    if (dim.star || longer.empty() || random_.chance(50)) {
      slices.emplace_back(":");
      of.dims.push_back(dim);
      continue;
    }
    const Size size = random_.pick(longer);
    const std::optional<Size> before = subtract(size, dim.size);
    const std::optional<Size> first = add(*before, 1);
    const bool at_end = random_.chance(50);
    const std::string from = at_end ? first->to_string() : "1";
    const std::string to = at_end ? size.to_string() : dim.size.to_string();
    slices.push_back(at_end && random_.chance(20)    ? from + ":"
                     : !at_end && random_.chance(20) ? ":" + to
                                                     : from + ":" + to);
    of.dims.push_back(Dim::of(size));
    picks = true;
  }
  if (!picks || random_.chance(10)) pick_one();
  while (slices.size() > 1 && slices.back() == ":" && random_.chance(50)) slices.pop_back();
  if (!small(scope, of) || of.rank() > 3) return std::nullopt;
  Maybe a = write(scope, want.with(of));
  if (!a) return std::nullopt;
  return Written{fmt::format("{}[{}]", operand(*a, 9), fmt::join(slices, ", ")), 9, want.type,
                 a->facts, a->rounds};
}

std::optional<Written> ExpressionWriter::lookup(Scope& scope, const Want& want) {
  if (options_.special) return std::nullopt;
  const std::optional<std::size_t> star = want.type.record_axis();
  const int least_rank = star ? static_cast<int>(*star) + 1 : 0;
  const auto leading =
      static_cast<std::ptrdiff_t>(random_.between(least_rank, static_cast<int>(want.type.rank())));
  const Size k = random_size(scope);
  Type table{{Dim::of(k)}};
  table.dims.insert(table.dims.end(), want.type.dims.begin() + leading, want.type.dims.end());
  Type places;
  places.dims.assign(want.type.dims.begin(), want.type.dims.begin() + leading);
  if (!small(scope, table)) return std::nullopt;
  Maybe values = write(scope, want.with(table));
  Want inner = want.with(places);
  inner.exact = true;
  Maybe position = write(scope, inner);
  if (!values || !position || !position->facts.exact()) return std::nullopt;
  const auto room = static_cast<double>(least(scope, Dim::of(k)));
  const bool in_place = position->facts.grain == 0 && position->facts.within({1, room}) &&
                        position->text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == 0;
  if (!in_place) {
    position->text = fmt::format("1 + mod(floor({}), {})", position->text, k.to_string());
  }
  return Written{fmt::format("{}[{}]", operand(*values, 9), position->text), 9, want.type,
                 values->facts, std::max(values->rounds, position->rounds)};
}

std::optional<Written> ExpressionWriter::concat(Scope& scope, const Op& op, const Want& want) {
  struct Way {
    std::size_t axis;
    Size first, second;
  };
  std::vector<Way> ways;
  for (std::size_t axis = 0; axis < want.type.rank(); ++axis) {
    if (want.type.dims[axis].star) continue;
    for (const Size& a : scope.sizes) {
      for (const Size& b : scope.sizes) {
        if (add(a, b) == want.type.dims[axis].size) ways.push_back({axis, a, b});
      }
    }
  }
  if (ways.empty()) return std::nullopt;
  const Way way = random_.pick(ways);
  const std::optional<std::size_t> star = want.type.record_axis();
  const int federated = random_.below(2);
  std::vector<std::string> texts;
  Facts facts;
  int rounds = 0;
  Types types;
  for (int i = 0; i < 2; ++i) {
    Type part = want.type;
    part.dims[way.axis].size = i == 0 ? way.first : way.second;
    if (star && i != federated && random_.chance(50)) {
      if (random_.chance(70)) {
        part = without_axis(part, *star);
      } else {
        part.dims[*star] = Dim::of(1);
      }
    }
    types.push_back(part);
    Maybe e = write(scope, want.with(part));
    if (!e) return std::nullopt;
    texts.push_back(e->text);
    facts = i == 0 ? e->facts : either(facts, e->facts);
    rounds = std::max(rounds, e->rounds);
  }
  const auto axis = static_cast<std::int64_t>(way.axis);
  if (typed(op, types, {axis}) != want.type) return std::nullopt;
  return applied(fmt::format("concat[{}]", axis + 1), fmt::format("{}", fmt::join(texts, ", ")),
                 want.type, facts, rounds);
}

std::optional<Written> ExpressionWriter::stack(Scope& scope, const Want& want) {
  if (want.type.dims.empty() || want.type.dims[0].star) return std::nullopt;
  const Size& size = want.type.dims[0].size;
  if (!size.is_constant() || size.constant() > 3) return std::nullopt;
  std::vector<std::string> texts;
  Facts facts;
  int rounds = 0;
  for (std::int64_t i = 0; i < size.constant(); ++i) {
    Maybe e = write(scope, want.with(without_axis(want.type, 0)));
    if (!e) return std::nullopt;
    texts.push_back(e->text);
    facts = i == 0 ? e->facts : either(facts, e->facts);
    rounds = std::max(rounds, e->rounds);
  }
  return Written{fmt::format("[{}]", fmt::join(texts, ", ")), 10, want.type, facts, rounds};
}

std::optional<Written> ExpressionWriter::reshape(Scope& scope, const Op& op, const Want& want) {
  const std::optional<std::size_t> star = want.type.record_axis();
  if (star && *star != 0 && *star + 1 != want.type.rank()) return std::nullopt;
  std::vector<Size> sizes;
  for (const Dim& dim : want.type.dims) {
    if (!dim.star) sizes.push_back(dim.size);
  }
  // Neighbours multiplied, a product taken apart, or an axis of 1 put in or taken out.
  std::vector<std::vector<Size>> ways;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    std::vector<Size> merged = sizes;
    const std::optional<Size> product = multiply(sizes[i], sizes[i + 1]);
    if (!product) continue;
    merged[i] = *product;
    merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    ways.push_back(merged);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (const Size& a : scope.sizes) {
      for (const Size& b : scope.sizes) {
        if (a.is_one() || b.is_one() || multiply(a, b) != sizes[i]) continue;
        std::vector<Size> apart = sizes;
        apart[i] = a;
        apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(i) + 1, b);
        ways.push_back(apart);
      }
    }
    if (sizes[i].is_one()) {
      std::vector<Size> fewer = sizes;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      ways.push_back(fewer);
    }
  }
  std::vector<Size> more = sizes;
  more.insert(more.begin() + random_.between(0, static_cast<int>(sizes.size())), Size(1));
  ways.push_back(more);
  Type of = Type::shared(random_.pick(ways));
  if (star) {
    const bool first = *star == 0 && (want.type.rank() > 1 || random_.chance(50));
    of = with_axis(of, first ? 0 : of.rank(), want.type.dims[*star]);
  }
  if (!small(scope, of) || typed(op, {of}, {}, sizes) != want.type) return std::nullopt;
  Maybe a = write(scope, want.with(of));
  if (!a) return std::nullopt;
  const std::string list = size_list(want.type);
  return applied("reshape", a->text + (list.empty() ? "" : ", " + list), want.type, a->facts,
                 a->rounds);
}

std::optional<Written> ExpressionWriter::outer(Scope& scope, const Op& op, const Want& want) {
  const bool star = want.type.federated();
  if (want.type.rank() != (star ? 3U : 2U) || (star && *want.type.record_axis() != 0)) {
    return std::nullopt;
  }
  const std::size_t first = star ? 1 : 0;
  Types types = {Type{{want.type.dims[first]}}, Type{{want.type.dims[first + 1]}}};
  const int must = random_.below(2);
  for (int i = 0; i < 2 && star; ++i) {
    if (i != must && random_.chance(40)) continue;
    Type& type = types[static_cast<std::size_t>(i)];
    type = with_axis(type, random_.chance(70) ? 0 : 1, want.type.dims[0]);
  }
  if (typed(op, types) != want.type) return std::nullopt;
  Maybe a = fit(write(scope, want.with(types[0])), {-30, 30});
  Maybe b = fit(write(scope, want.with(types[1])), {-30, 30});
  if (!a || !b) return std::nullopt;
  return applied("outer", a->text + ", " + b->text, want.type, product_facts(a->facts, b->facts),
                 std::max(a->rounds, b->rounds));
}

}  // namespace starfold::laws

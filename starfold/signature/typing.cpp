#include "starfold/signature/typing.h"

#include <fmt/format.h>

#include <algorithm>

namespace starfold::typing {

std::string describe(const TypeQuery& query, std::size_t i) {
  return fmt::format("`{}` is {}", query.arg_texts[i], query.args[i].to_string());
}

std::vector<Label> origins(const TypeQuery& query, const Dim& a, const Dim& b) {
  std::vector<Label> labels;
  for (const Dim* dim : {&a, &b}) {
    if (dim->star || !query.size_origin) continue;
    const std::optional<Label> label = query.size_origin(dim->size);
    if (label && (labels.empty() || !(labels[0].span == label->span))) labels.push_back(*label);
  }
  return labels;
}

namespace {

// The axis of an operand that broadcasting puts at `axis` of the result.
const Dim& dim_at(const Type& type, std::size_t axis, std::size_t result_rank) {
  static const Dim one = Dim::of(1);
  const std::size_t padding = result_rank - type.rank();
  return axis < padding ? one : type.dims[axis - padding];
}

std::vector<Label> operand_labels(const TypeQuery& query, std::size_t i, std::size_t j) {
  return {{query.arg_spans[i], query.args[i].to_string()},
          {query.arg_spans[j], query.args[j].to_string()}};
}

// `[*]` against `[*, p]`: the usual slip, with its own remedy.
std::nullopt_t fail_missing_axis(TypeQuery& query, std::size_t narrow, std::size_t wide,
                                 const Dim& met, const std::string& fix) {
  return query.fail(
      {Code::MissingAxis,
       fmt::format(
           "{} and {} do not line up: the record axis of the first falls on {} of the second",
           query.args[narrow].to_string(), query.args[wide].to_string(), met.to_string()),
       {query.span, "axes are aligned from the right"},
       operand_labels(query, std::min(narrow, wide), std::max(narrow, wide)),
       "a star fits only the star of the same record set, or 1",
       fmt::format("put the missing axis in: `{}`", fix)});
}

std::string help_for_sizes(const Size& a, const Size& b) {
  if (a.as_variable() && b.as_variable()) {
    return fmt::format("if they are meant to be equal, write `{}` for both", a.to_string());
  }
  const Size& variable = a.as_variable() ? a : b;
  const Size& other = a.as_variable() ? b : a;
  if (!variable.as_variable() || !other.is_constant()) return "";
  return fmt::format("`{0}` may have any value; if it is always {1}, write {1} in its place",
                     variable.to_string(), other.to_string());
}

std::string help_for_star(const TypeQuery& query, std::size_t i, std::size_t j) {
  std::string fix = with_new_axes(query, i, j);
  if (fix.empty()) fix = with_new_axes(query, j, i);
  if (!fix.empty()) return fmt::format("put the missing axis in: `{}`", fix);
  return "fold the star first, for example with `sum[*]`, or permute the axes so that the stars "
         "meet";
}

}  // namespace

std::string atom(const TypeQuery& query, std::size_t i) {
  const std::string& text = query.arg_texts[i];
  int depth = 0;
  for (const char c : text) {
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (depth == 0 && std::string_view(" +-*/@^<>=!").find(c) != std::string_view::npos)
      return "(" + text + ")";
  }
  return text;
}

std::string fold_to_number(const Type& type, const std::string& text) {
  if (!type.federated()) return fmt::format("max({})", text);
  std::string axes;
  for (std::size_t axis = 0; axis < type.rank(); ++axis) {
    axes += axes.empty() ? "" : ",";
    axes += type.dims[axis].star ? "*" : std::to_string(axis + 1);
  }
  return fmt::format("mean[{}]({})", axes, text);
}

std::string with_new_axes(const TypeQuery& query, std::size_t i, std::size_t j) {
  const Type& narrow = query.args[i];
  const Type& wide = query.args[j];
  if (narrow.rank() == 0 || narrow.rank() >= wide.rank()) return {};
  const std::size_t missing = wide.rank() - narrow.rank();
  for (std::size_t at = narrow.rank() + 1; at-- > 0;) {
    Type candidate = narrow;
    for (std::size_t k = 0; k < missing; ++k) candidate = with_axis(candidate, at, Dim::of(1));
    if (broadcast(candidate, wide).clash != Clash::none) continue;
    std::string slices;
    for (std::size_t axis = 0; axis < at; ++axis) slices += slices.empty() ? ":" : ", :";
    for (std::size_t k = 0; k < missing; ++k) slices += slices.empty() ? "new" : ", new";
    for (std::size_t axis = at; axis < narrow.rank(); ++axis) slices += ", :";
    return fmt::format("{}[{}]", atom(query, i), slices);
  }
  return {};
}

std::nullopt_t fail_broadcast(TypeQuery& query, std::size_t i, std::size_t j,
                              const Broadcast& result) {
  const Type& a = query.args[i];
  const Type& b = query.args[j];
  const std::size_t rank = std::max(a.rank(), b.rank());
  const Dim& dim_a = dim_at(a, result.axis, rank);
  const Dim& dim_b = dim_at(b, result.axis, rank);
  const Label place = {query.span, "axes are aligned from the right"};
  switch (result.clash) {
    case Clash::star_against_size: {
      const std::size_t narrow = a.rank() < b.rank() ? i : j;
      const std::size_t wide = narrow == i ? j : i;
      const std::string fix = with_new_axes(query, narrow, wide);
      if (!fix.empty() && query.args[narrow].federated()) {
        return fail_missing_axis(query, narrow, wide, dim_a.star ? dim_b : dim_a, fix);
      }
      return query.fail(
          {Code::StarAgainstSize,
           fmt::format("the record axis of {} meets the ordinary axis {} of {}",
                       (dim_a.star ? a : b).to_string(), (dim_a.star ? dim_b : dim_a).to_string(),
                       (dim_a.star ? b : a).to_string()),
           place, operand_labels(query, i, j),
           "a star stands for another number of records on every client, so only the star of the "
           "same "
           "record set, or 1, fits it",
           help_for_star(query, i, j)});
    }
    case Clash::record_sets:
      return query.fail(
          {Code::DifferentRecordSets,
           fmt::format("{} and {} belong to different record sets", a.to_string(), b.to_string()),
           {query.span, "records of different sets cannot be paired"},
           operand_labels(query, i, j),
           "a client may hold a different number of records in each set",
           "fold one of them first, or declare both inputs with the same star"});
    case Clash::two_stars:
      return query.fail(
          {Code::TwoStars,
           fmt::format("{} and {} together would have two record axes", a.to_string(),
                       b.to_string()),
           {query.span, "the result would pair every record with every record"},
           operand_labels(query, i, j),
           "a value has at most one record axis, for it is split across clients along it",
           "bring the stars to the same place with `permute` or `'`, or fold one of them"});
    default: {
      std::vector<Label> others = operand_labels(query, i, j);
      for (Label& label : origins(query, dim_a, dim_b)) others.push_back(std::move(label));
      std::string fix = with_new_axes(query, i, j);
      if (fix.empty()) fix = with_new_axes(query, j, i);
      std::string help;
      if (!fix.empty()) help = fmt::format("put the missing axis in: `{}`", fix);
      if (fix.empty()) help = help_for_sizes(dim_a.size, dim_b.size);
      return query.fail({Code::SizeMismatch,
                         fmt::format("sizes {} and {} differ: {} against {}", dim_a.to_string(),
                                     dim_b.to_string(), a.to_string(), b.to_string()),
                         place, std::move(others), "equal sizes match, and 1 stretches",
                         std::move(help)});
    }
  }
}

std::optional<Type> broadcast_args(TypeQuery& query, std::size_t first) {
  Type type = query.args[first];
  for (std::size_t j = first + 1; j < query.args.size(); ++j) {
    const Broadcast result = broadcast(type, query.args[j]);
    if (result.clash != Clash::none) {
      // Blame a single operand rather than the accumulated shape where that explains the clash.
      for (std::size_t i = first; i < j; ++i) {
        const Broadcast pair = broadcast(query.args[i], query.args[j]);
        if (pair.clash != Clash::none) return fail_broadcast(query, i, j, pair);
      }
      return fail_broadcast(query, first, j, {result.clash, {}, 0});
    }
    type = result.type;
  }
  return type;
}

Types unchanged(TypeQuery& query) { return std::vector<Type>{query.args[0]}; }

Types broadcasting(TypeQuery& query) {
  std::optional<Type> type = broadcast_args(query);
  if (!type) return std::nullopt;
  return std::vector<Type>{std::move(*type)};
}

Types shared_broadcasting(TypeQuery& query) {
  if (!require_shared(query)) return std::nullopt;
  return broadcasting(query);
}

bool require_shared(TypeQuery& query) {
  for (std::size_t i = 0; i < query.args.size(); ++i) {
    const Type& type = query.args[i];
    if (!type.federated()) continue;
    const bool orders = query.op.naming == Naming::sorted;
    query.fail(
        {orders ? Code::StarSorted : Code::FederatedArgument,
         orders ? "records cannot be sorted"
                : fmt::format("`{}` works on shared values only", query.op.name),
         {query.arg_spans[i],
          fmt::format("{} is split across clients by its record axis", type.to_string())},
         {},
         orders ? "no client knows the order of all records, and no summary of fixed size tells it"
                : "it runs on values that everyone knows, and records never leave their client",
         orders ? "for quantiles, `import stats` and use `stats.quantile`: bisection over shared "
                  "counts"
                : fmt::format("fold the record axis first, for example: {}",
                              type.rank() == 2 && *type.record_axis() == 0
                                  ? fmt::format("{0}' @ {0}", atom(query, i))
                                  : fmt::format("sum[*]({})", query.arg_texts[i]))});
    return false;
  }
  return true;
}

bool require_rank(TypeQuery& query, std::size_t i, std::size_t rank, std::string_view what) {
  if (query.args[i].rank() == rank) return true;
  query.fail({Code::WrongRank,
              fmt::format("`{}` needs {}, not {}", query.op.name, what, query.args[i].to_string()),
              {query.arg_spans[i], fmt::format("this is {}", query.args[i].to_string())},
              {},
              "",
              fmt::format("`{}`: {}", query.op.surface, query.op.rule)});
  return false;
}

bool require_shared_scalar(TypeQuery& query, std::size_t i, std::string_view what) {
  const Type& type = query.args[i];
  if (type.is_scalar()) return true;
  query.fail(
      {type.federated() ? Code::FederatedScalar : Code::NotAScalar,
       fmt::format("{} of `{}` must be a single shared number, not {}", what, query.op.name,
                   type.to_string()),
       {query.arg_spans[i], fmt::format("this is {}", type.to_string())},
       {},
       "",
       fmt::format("fold it first, for example: {}", fold_to_number(type, query.arg_texts[i]))});
  return false;
}

bool require_equal(TypeQuery& query, const Dim& a, const Dim& b, std::string_view what) {
  if (a == b) return true;
  std::vector<Label> others;
  for (std::size_t i = 0; i < query.args.size(); ++i)
    others.push_back({query.arg_spans[i], query.args[i].to_string()});
  for (Label& label : origins(query, a, b)) others.push_back(std::move(label));
  query.fail(
      {Code::SizeMismatch,
       fmt::format("`{}`: {}, but {} is not {}", query.op.name, what, a.to_string(), b.to_string()),
       {query.span, fmt::format("{} and {} differ", a.to_string(), b.to_string())},
       std::move(others),
       fmt::format("`{}`: {}", query.op.surface, query.op.rule),
       ""});
  return false;
}

std::optional<std::vector<std::size_t>> resolve_axes(TypeQuery& query, std::size_t i) {
  const Type& type = query.args[i];
  std::vector<std::size_t> axes;
  for (const WrittenAxis& written : *query.axes) {
    std::size_t axis = 0;
    if (written.star) {
      const bool other_set = type.federated() && !written.record_set.empty() &&
                             type.record_set() != written.record_set;
      if (!type.federated() || other_set) {
        return query.fail({Code::AxisOutOfRange,
                           fmt::format("{} has no record axis{} to fold", type.to_string(),
                                       other_set ? " *" + written.record_set : ""),
                           {written.span, other_set ? "its star belongs to another record set"
                                          : type.is_scalar() ? "a single number"
                                                             : "the value is shared"},
                           {{query.arg_spans[i], describe(query, i)}},
                           "",
                           type.is_scalar() ? "a shared number needs no fold"
                           : other_set      ? "write `*`, the star of the value itself"
                                       : fmt::format("name an ordinary axis, for example `{}[1]`",
                                                     query.op.name)});
      }
      axis = *type.record_axis();
    } else if (written.number < 1 || written.number > static_cast<std::int64_t>(type.rank())) {
      return query.fail(
          {Code::AxisOutOfRange,
           fmt::format("{} has no axis {}", type.to_string(), written.number),
           {written.span, type.is_scalar()   ? "the value is a single number"
                          : type.rank() == 1 ? "its only axis is number 1"
                                             : fmt::format("axes count from 1 to {}", type.rank())},
           {{query.arg_spans[i], describe(query, i)}},
           "",
           ""});
    } else {
      axis = static_cast<std::size_t>(written.number) - 1;
    }
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) {
      return query.fail({Code::InvalidAxes,
                         fmt::format("axis {} is named twice", axis + 1),
                         {written.span, "already in the list"},
                         {},
                         "",
                         "name each axis once"});
    }
    axes.push_back(axis);
  }
  return axes;
}

std::optional<std::size_t> ordinary_axis(TypeQuery& query, Code along_star, std::string_view verb,
                                         std::size_t i) {
  const std::optional<std::vector<std::size_t>> axes = resolve_axes(query, i);
  if (!axes) return std::nullopt;
  if (axes->size() != 1) {
    return query.fail({Code::InvalidAxes,
                       fmt::format("`{}` works along one axis", query.op.name),
                       {query.span, fmt::format("{} axes were written", axes->size())},
                       {},
                       "",
                       fmt::format("write one axis, for example `{}[1](...)`", query.op.name)});
  }
  if (query.args[i].record_axis() == axes->front()) {
    return query.fail(
        {along_star,
         fmt::format("`{}` cannot {} the record axis", query.op.name, verb),
         {(*query.axes)[0].span, fmt::format("axis {} of {} is split across clients",
                                             axes->front() + 1, query.args[i].to_string())},
         {},
         "no client knows the records of the others, and their order means nothing",
         "use an ordinary axis, or fold the star with `sum[*]` or another aggregation"});
  }
  return axes->front();
}

}  // namespace starfold::typing

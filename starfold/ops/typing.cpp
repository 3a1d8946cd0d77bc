#include "starfold/ops/typing.h"

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
    if (const std::optional<Label> label = query.size_origin(dim->size)) labels.push_back(*label);
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
  return {{query.arg_spans[i], query.args[i].to_string()}, {query.arg_spans[j], query.args[j].to_string()}};
}

// `[*]` against `[*, p]`: the usual slip, with its own remedy.
std::nullopt_t fail_missing_axis(TypeQuery& query, std::size_t narrow, std::size_t wide) {
  const std::size_t missing = query.args[wide].rank() - query.args[narrow].rank();
  std::string fix = query.arg_texts[narrow] + "[:";
  for (std::size_t i = 0; i < missing; ++i) fix += ", new";
  fix += "]";
  return query.fail(
      {Code::MissingAxis,
       fmt::format("{} and {} do not line up: the record axis would meet an ordinary axis",
                   query.args[narrow].to_string(), query.args[wide].to_string()),
       {query.span, "axes are aligned from the right"},
       operand_labels(query, narrow, wide),
       "broadcasting aligns the last axes, so the star of a per-record number falls on the last axis of the "
       "other operand",
       fmt::format("give every record its own row of one column: `{}`", fix)});
}

}  // namespace

std::nullopt_t fail_broadcast(TypeQuery& query, std::size_t i, std::size_t j, const Broadcast& result) {
  const Type& a = query.args[i];
  const Type& b = query.args[j];
  const std::size_t rank = std::max(a.rank(), b.rank());
  const Dim& dim_a = dim_at(a, result.axis, rank);
  const Dim& dim_b = dim_at(b, result.axis, rank);
  switch (result.clash) {
    case Clash::star_against_size:
      if (a.federated() && b.federated() && a.record_set() == b.record_set() && a.rank() != b.rank()) {
        return a.rank() < b.rank() ? fail_missing_axis(query, i, j) : fail_missing_axis(query, j, i);
      }
      return query.fail({Code::StarAgainstSize,
                         fmt::format("the record axis of {} meets the ordinary axis {} of {}",
                                     (dim_a.star ? a : b).to_string(),
                                     (dim_a.star ? dim_b : dim_a).to_string(), (dim_a.star ? b : a).to_string()),
                         {query.span, "axes are aligned from the right"},
                         operand_labels(query, i, j),
                         "a star stands for a different number of records on every client, so only the star of "
                         "the same record set, or 1, fits it",
                         "fold the star first (`sum[*](...)`), or give the shared value a 1 in its place "
                         "(`[:, new]`)"});
    case Clash::record_sets:
      return query.fail({Code::DifferentRecordSets,
                         fmt::format("{} and {} belong to different record sets", a.to_string(), b.to_string()),
                         {query.span, "records of different sets cannot be paired"},
                         operand_labels(query, i, j),
                         "a client may hold a different number of records in each set",
                         "fold one of them first, or declare both inputs with the same star"});
    case Clash::two_stars:
      return query.fail({Code::TwoStars,
                         fmt::format("{} and {} together would have two record axes", a.to_string(), b.to_string()),
                         {query.span, "the result would pair every record with every record"},
                         operand_labels(query, i, j),
                         "a value that grows with the square of the number of records cannot be split across clients",
                         "move the stars to the same place (`permute` or `'`), or fold one of them"});
    default: {
      std::vector<Label> others = operand_labels(query, i, j);
      for (Label& label : origins(query, dim_a, dim_b)) others.push_back(std::move(label));
      return query.fail({Code::SizeMismatch,
                         fmt::format("sizes {} and {} differ: {} against {}", dim_a.to_string(), dim_b.to_string(),
                                     a.to_string(), b.to_string()),
                         {query.span, fmt::format("axis {} is {} on one side and {} on the other", result.axis + 1,
                                                  dim_a.to_string(), dim_b.to_string())},
                         std::move(others),
                         "axes are aligned from the right; equal sizes match and 1 stretches",
                         dim_a.size.is_constant() && dim_b.size.is_constant()
                             ? ""
                             : "use the same size variable in both types if the sizes are meant to be equal"});
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
      return fail_broadcast(query, first, j, result);
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
    const bool orders = query.op.name == "sort";
    query.fail({orders ? Code::StarSorted : Code::FederatedArgument,
                orders ? "records cannot be sorted across clients"
                       : fmt::format("`{}` works on shared values only", query.op.name),
                {query.arg_spans[i], fmt::format("{} is split across clients by its record axis", type.to_string())},
                {},
                orders ? "the order of all records is known to no client and has no fixed-size summary"
                       : "it needs the whole value in one place, and no client may see another's records",
                orders ? "`stats.quantile` finds order statistics from shared counts; fold the record axis for other "
                         "summaries"
                       : fmt::format("fold the record axis first, for example: {}",
                                     type.rank() == 2 && *type.record_axis() == 0
                                         ? fmt::format("`{0}' @ {0}`", query.arg_texts[i])
                                         : fmt::format("`sum[*]({})`", query.arg_texts[i]))});
    return false;
  }
  return true;
}

bool require_rank(TypeQuery& query, std::size_t i, std::size_t rank, std::string_view what) {
  if (query.args[i].rank() == rank) return true;
  query.fail({Code::WrongRank,
              fmt::format("`{}` needs {}, not {}", query.op.name, what, query.args[i].to_string()),
              {query.arg_spans[i], query.args[i].to_string()},
              {},
              "",
              ""});
  return false;
}

bool require_shared_scalar(TypeQuery& query, std::size_t i, std::string_view what) {
  const Type& type = query.args[i];
  if (type.is_scalar()) return true;
  query.fail({type.federated() ? Code::FederatedScalar : Code::NotAScalar,
              fmt::format("{} of `{}` must be a single shared number, not {}", what, query.op.name, type.to_string()),
              {query.arg_spans[i], type.to_string()},
              {},
              "",
              type.federated() ? "fold the record axis first" : ""});
  return false;
}

bool require_equal(TypeQuery& query, const Dim& a, const Dim& b, std::string_view what) {
  if (a == b) return true;
  query.fail({Code::SizeMismatch,
              fmt::format("`{}`: {}: {} against {}", query.op.name, what, a.to_string(), b.to_string()),
              {query.span, fmt::format("{} and {} differ", a.to_string(), b.to_string())},
              origins(query, a, b),
              "",
              ""});
  return false;
}

std::optional<std::vector<std::size_t>> resolve_axes(TypeQuery& query) {
  const Type& type = query.args[0];
  std::vector<std::size_t> axes;
  for (const WrittenAxis& written : *query.axes) {
    std::size_t axis = 0;
    if (written.star) {
      const bool other_set = type.federated() && !written.record_set.empty() && type.record_set() != written.record_set;
      if (!type.federated() || other_set) {
        return query.fail({Code::AxisOutOfRange,
                           fmt::format("{} has no record axis{} to fold", type.to_string(),
                                       other_set ? " *" + written.record_set : ""),
                           {written.span, other_set ? "its star belongs to another record set" : "the value is shared"},
                           {{query.arg_spans[0], describe(query, 0)}},
                           "",
                           type.is_scalar() ? "a shared number needs no fold"
                           : other_set      ? "write `*`, the star of the value itself"
                                            : fmt::format("name an ordinary axis, for example `{}[1]`", query.op.name)});
      }
      axis = *type.record_axis();
    } else if (written.number < 1 || written.number > static_cast<std::int64_t>(type.rank())) {
      return query.fail({Code::AxisOutOfRange,
                         fmt::format("{} has no axis {}", type.to_string(), written.number),
                         {written.span, type.is_scalar() ? "the value is a single number"
                                                         : fmt::format("axes count from 1 to {}", type.rank())},
                         {{query.arg_spans[0], describe(query, 0)}},
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

std::optional<std::size_t> ordinary_axis(TypeQuery& query, Code along_star, std::string_view verb) {
  const std::optional<std::vector<std::size_t>> axes = resolve_axes(query);
  if (!axes) return std::nullopt;
  if (axes->size() != 1) {
    return query.fail({Code::InvalidAxes,
                       fmt::format("`{}` works along one axis", query.op.name),
                       {query.span, fmt::format("{} axes were written", axes->size())},
                       {},
                       "",
                       fmt::format("write one axis, for example `{}[1](...)`", query.op.name)});
  }
  if (query.args[0].record_axis() == axes->front()) {
    return query.fail({along_star,
                       fmt::format("`{}` cannot {} the record axis", query.op.name, verb),
                       {(*query.axes)[0].span, fmt::format("axis {} of {} is split across clients", axes->front() + 1,
                                                           query.args[0].to_string())},
                       {},
                       "no client knows the records of the others, and no fixed-size summary could replace them",
                       "use an ordinary axis, or fold the star with `sum[*]` or another aggregation"});
  }
  return axes->front();
}

}  // namespace starfold::typing

// Family A: aggregations along axes (def:typing-aggregation). Along the record axis the distributive
// and algebraic ones produce shared state; the holistic ones have no fixed-size merge.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "starfold/ops/derivative.h"
#include "starfold/ops/meaning.h"
#include "starfold/ops/typing.h"

namespace starfold {
namespace {

std::nullopt_t fail_axes_not_written(TypeQuery& query) {
  return query.fail(
      {Code::AxesNotWritten,
       fmt::format("`{}` of a federated value must say which axes it folds", query.op.name),
       {query.span, typing::describe(query, 0)},
       {},
       "folding the record axis is what lets a value leave the clients, so it is always written",
       query.op.monoid == Monoid::none
           ? fmt::format("name an ordinary axis, for example `{}[2]`", query.op.name)
           : fmt::format("write `{0}[*]({1})` to fold the records{2}", query.op.name,
                         query.arg_texts[0],
                         query.args[0].rank() > 1 ? ", or name an ordinary axis" : "")});
}

std::nullopt_t fail_holistic(TypeQuery& query, std::size_t axis) {
  return query.fail(
      {Code::HolisticAlongStar,
       fmt::format("`{}` cannot fold the record axis", query.op.name),
       {query.span,
        fmt::format("axis {} of {} is the record axis", axis + 1, query.args[0].to_string())},
       {},
       "it is holistic: no summary of fixed size per client can be merged into the answer",
       query.op.name == "argmax"
           ? "`max[*]` finds the largest value; which record it was cannot leave a client"
           : "`import stats` and use `stats.quantile`: bisection over shared counts"});
}

// The axes to fold, counted from 0 and sorted.
std::optional<std::vector<std::size_t>> fold_axes(TypeQuery& query) {
  if (!query.axes) {
    if (query.args[0].federated()) {
      const bool holistic = query.op.monoid == Monoid::none && query.args[0].rank() == 1;
      return holistic ? fail_holistic(query, 0) : fail_axes_not_written(query);
    }
    std::vector<std::size_t> all(query.args[0].rank());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }
  std::optional<std::vector<std::size_t>> axes = typing::resolve_axes(query);
  if (axes && axes->empty()) {
    return query.fail(
        {Code::InvalidAxes,
         fmt::format("`{}[]` names no axis", query.op.name),
         {query.span, "the list of axes is empty"},
         {},
         "",
         fmt::format(
             "write `{}[1](...)`, or leave the brackets out to fold every axis of a shared value",
             query.op.name)});
  }
  if (axes) std::sort(axes->begin(), axes->end());
  return axes;
}

Types aggregation_type(TypeQuery& query) {
  const std::optional<std::vector<std::size_t>> axes = fold_axes(query);
  if (!axes) return std::nullopt;
  const std::optional<std::size_t> record_axis = query.args[0].record_axis();
  const bool folds_star =
      record_axis && std::find(axes->begin(), axes->end(), *record_axis) != axes->end();
  if (folds_star && query.op.monoid == Monoid::none) return fail_holistic(query, *record_axis);
  Type type = query.args[0];
  for (auto axis = axes->rbegin(); axis != axes->rend(); ++axis) type = without_axis(type, *axis);
  query.attrs.axes.assign(axes->begin(), axes->end());
  return std::vector<Type>{std::move(type)};
}

// quantile[j](e, q): a vector of probabilities adds a last axis.
Types quantile_type(TypeQuery& query) {
  const Type& probability = query.args[1];
  if (probability.federated()) {
    typing::require_shared_scalar(query, 1, "the probability");
    return std::nullopt;
  }
  if (probability.rank() > 1) {
    typing::require_rank(query, 1, 1, "a probability or a vector of them");
    return std::nullopt;
  }
  Types types = aggregation_type(query);
  if (types && probability.rank() == 1) types->front().dims.push_back(probability.dims[0]);
  return types;
}

Op aggregation(std::string name, double (*fold)(std::span<const double>), Monoid monoid,
               DerivativeRule derivative, std::string doc) {
  Op op;
  op.surface = name + "[axes](e)";
  op.name = std::move(name);
  op.family = Family::aggregation;
  op.axes = Op::Axes::optional;
  op.rule = monoid == Monoid::none ? "removes ordinary axes; never the star"
                                   : "removes axes; folding the star gives a shared value";
  op.doc = std::move(doc);
  op.type = aggregation_type;
  op.fold = fold;
  op.monoid = monoid;
  op.flat = derivative == nullptr ? 1U : 0U;
  op.derivative = derivative;
  op.meaning = [fold](const Application& a) { return meaning::aggregate(fold, a); };
  return op;
}

Op quantile() {
  Op op =
      aggregation("quantile", nullptr, Monoid::none, derivative::order_statistic,
                  "the q-quantile by linear interpolation (type 7); a vector q adds a last axis");
  op.surface = "quantile[axes](e, q)";
  op.min_args = op.max_args = 2;
  op.type = quantile_type;
  op.meaning = meaning::quantile;
  return op;
}

}  // namespace

std::vector<Op> aggregation_ops() {
  using namespace meaning;
  return {
      aggregation("sum", fold_sum, Monoid::sum, derivative::sum, "the sum; 0 for no elements"),
      aggregation("prod", fold_prod, Monoid::prod, derivative::prod, "the product; 1 for no elements"),
      aggregation("min", fold_min, Monoid::min, derivative::extreme,
                  "the smallest element; inf for none; nan if any is nan"),
      aggregation("max", fold_max, Monoid::max, derivative::extreme,
                  "the largest element; -inf for none; nan if any is nan"),
      aggregation("count", fold_count, Monoid::count, nullptr, "the number of elements"),
      aggregation("mean", fold_mean, Monoid::sum, derivative::mean, "the arithmetic mean; nan for no elements"),
      aggregation("var", fold_var, Monoid::moments, derivative::var,
                  "the variance with divisor n - 1; nan for fewer than two"),
      aggregation("std", fold_std, Monoid::moments, derivative::std, "the square root of var"),
      aggregation("logsumexp", fold_logsumexp, Monoid::logsumexp, derivative::logsumexp,
                  "log(sum(exp(e))) without overflow; -inf for none"),
      aggregation("any", fold_any, Monoid::any, nullptr, "1 if some element is not zero, else 0"),
      aggregation("all", fold_all, Monoid::all, nullptr, "1 if no element is zero, else 0"),
      aggregation("norm", fold_norm, Monoid::sum, derivative::norm, "the Euclidean norm"),
      aggregation("argmax", fold_argmax, Monoid::none, nullptr,
                  "the position of the largest element, counted from 1"),
      aggregation("median", fold_median, Monoid::none, derivative::order_statistic, "the median"),
      quantile(),
  };
}

}  // namespace starfold

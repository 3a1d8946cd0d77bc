// Family A: aggregations along axes (def:typing-aggregation). Along the record axis the distributive
// and algebraic ones produce shared state; the holistic ones have no fixed-size merge.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "starfold/base/error.h"
#include "starfold/ir/builder.h"
#include "starfold/merge/comoments.h"
#include "starfold/ops/derivative.h"
#include "starfold/ops/meaning.h"
#include "starfold/ops/standard.h"
#include "starfold/ops/support.h"
#include "starfold/signature/typing.h"

namespace starfold {
namespace {

std::nullopt_t fail_axes_not_written(TypeQuery& query) {
  return query.fail(
      {Code::AxesNotWritten,
       fmt::format("`{}` of a federated value must say which axes it folds", query.op.name),
       {query.span, typing::describe(query, 0)},
       {},
       "folding the record axis is what lets a value leave the clients, so it is always written",
       query.op.monoid == nullptr
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
      const bool holistic = query.op.monoid == nullptr && query.args[0].rank() == 1;
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
  if (folds_star && query.op.monoid == nullptr) return fail_holistic(query, *record_axis);
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

// cov[*](a) and cov[*](a, b): records along one axis of each matrix, variables along the other.
Types cov_type(TypeQuery& query) {
  for (std::size_t i = 0; i < query.args.size(); ++i) {
    if (!typing::require_rank(query, i, 2, "a matrix: one row of variables per record"))
      return std::nullopt;
  }
  const std::optional<std::vector<std::size_t>> axes = fold_axes(query);
  if (!axes) return std::nullopt;
  const Type& a = query.args.front();
  const Type& b = query.args.back();
  const std::optional<std::size_t> star = a.record_axis();
  if (axes->size() != 1 || (star && axes->front() != *star)) {
    return query.fail({Code::InvalidAxes,
                       "`cov` folds one axis, that of the records",
                       {query.span, typing::describe(query, 0)},
                       {},
                       "the other axis holds the variables",
                       "write `cov[*](x)` with `x : [*, p]`"});
  }
  const std::size_t axis = axes->front();
  const std::size_t other = b.federated() ? *b.record_axis() : axis;
  if (!(a.dims[axis] == b.dims[other])) {
    const bool stars = a.federated() && b.federated();
    return typing::fail_broadcast(query, 0, query.args.size() - 1,
                                  {stars ? Clash::record_sets : Clash::sizes, {}, 0});
  }
  query.attrs.axes = {static_cast<std::int64_t>(axis)};
  return std::vector<Type>{Type::shared({a.dims[1 - axis].size, b.dims[1 - other].size})};
}

// The definition is the merge's own: all records at once.
std::vector<Tensor> cov_meaning(const Monoid& monoid, const Application& a) {
  FoldedRecords records;
  records.axes = a.axes;
  Shape result;
  for (std::size_t i = 0; i < a.args.size(); ++i) {
    records.operands.push_back(a.args[i]);
    records.record_axes.push_back(a.record_axes[i] ? *a.record_axes[i]
                                                   : static_cast<std::size_t>(a.axes[0]));
  }
  for (const std::size_t i : {std::size_t{0}, a.args.size() - 1})
    result.push_back(a.arg(i).shape[1 - records.record_axes[i]]);
  MergeState state = zero(monoid, result);
  monoid.fold(records, state);
  return {monoid.finish(state)};
}

// --- folds of the record axis that other folds can express

using ir::NodeId;

// One count per record set: whatever value asks, the first input of its record set answers.
NodeId records_of(ir::Builder& build, const std::string& record_set) {
  if (record_set == ir::client_set) return build.call("records", {build.one_per_client()});
  for (const ir::Input& input : build.program().inputs) {
    if (input.type.federated() && input.type.record_set() == record_set)
      return build.call("records", {input.node});
  }
  throw Bug("a record set without an input");
}

// The number of elements that a fold takes in: records times the sizes of its ordinary axes.
NodeId folded_count(ir::Builder& build, const ir::Node& fold) {
  const Type of = build.type(fold.args[0]);
  NodeId count = records_of(build, of.record_set());
  for (const std::int64_t axis : fold.attrs.axes) {
    const Dim& dim = of.dims[static_cast<std::size_t>(axis)];
    if (!dim.star && !dim.is_one()) count = build.mul(count, build.size(dim.size));
  }
  return count;
}

NodeId mean_from_sum(ir::Builder& build, const ir::Node& fold) {
  // One after the other: plans, and so their hashes, must not depend on a compiler's order of arguments.
  const NodeId count = folded_count(build, fold);
  return build.div(build.call("sum", fold.args, fold.attrs.axes), count);
}

NodeId std_from_var(ir::Builder& build, const ir::Node& fold) {
  return build.call("sqrt", {build.call("var", fold.args, fold.attrs.axes)});
}

NodeId count_from_records(ir::Builder& build, const ir::Node& fold) {
  const NodeId count = folded_count(build, fold);
  std::vector<Size> sizes;
  for (const Dim& dim : fold.type().dims) sizes.push_back(dim.size);
  return sizes.empty() ? count : build.call("full", {count}, {}, std::move(sizes));
}

// --- folds by sums alone, for messages that must add up

NodeId sum_of(ir::Builder& build, const ir::Node& fold, NodeId e) {
  return build.call("sum", {e}, fold.attrs.axes);
}

// `squares` less what their mean explains, over n - 1; nan for fewer than two.
NodeId spread(ir::Builder& build, NodeId squares, NodeId explained, NodeId n) {
  const NodeId one = build.number(1);
  const NodeId freedom = build.sub(n, one);
  const NodeId value = build.div(build.sub(squares, explained), freedom);
  return build.call("where", {build.call(">", {n, one}), value,
                              build.number(std::numeric_limits<double>::quiet_NaN())});
}

// A difference of sums may fall below 0 by rounding, or by noise.
NodeId var_in_sums(ir::Builder& build, const ir::Node& fold) {
  const NodeId e = fold.args[0];
  const NodeId n = folded_count(build, fold);
  const NodeId sum = sum_of(build, fold, e);
  const NodeId squares = sum_of(build, fold, build.call("square", {e}));
  const NodeId explained = build.div(build.call("square", {sum}), n);
  return build.call("max", {spread(build, squares, explained, n), build.number(0)});
}

// The matrix with its star at this axis.
NodeId star_at(ir::Builder& build, NodeId e, std::size_t axis) {
  return *build.type(e).record_axis() == axis ? e : build.call("permute", {e}, {1, 0});
}

NodeId cov_in_sums(ir::Builder& build, const ir::Node& fold) {
  const NodeId a = star_at(build, fold.args.front(), 1);
  const NodeId b = star_at(build, fold.args.back(), 0);
  const NodeId n = records_of(build, build.type(a).record_set());
  const NodeId products = build.call("@", {a, b});
  const NodeId sums =
      build.call("outer", {build.call("sum", {a}, {1}), build.call("sum", {b}, {0})});
  return spread(build, products, build.div(sums, n), n);
}

NodeId norm_in_sums(ir::Builder& build, const ir::Node& fold) {
  return build.call("sqrt", {sum_of(build, fold, build.call("square", {fold.args[0]}))});
}

NodeId any_in_sums(ir::Builder& build, const ir::Node& fold) {
  const NodeId zero = build.number(0);
  const ir::Node& operand = build.node(fold.args[0]);
  const bool truth = operand.kind == ir::Kind::apply && operand.op->truth;
  const NodeId those = truth ? fold.args[0] : build.call("!=", {fold.args[0], zero});
  return build.call(">", {sum_of(build, fold, those), zero});
}

NodeId all_in_sums(ir::Builder& build, const ir::Node& fold) {
  const NodeId zero = build.number(0);
  const NodeId others = build.call("==", {fold.args[0], zero});
  return build.call("<=", {sum_of(build, fold, others), zero});
}

// Where the entries of a value lie, whatever records and sizes are.
Interval range_of(const ir::Graph& graph, NodeId id) {
  std::vector<Interval> known(id + 1);
  for (NodeId at = 0; at <= id; ++at) {
    const ir::Node& node = graph[at];
    if (node.kind == ir::Kind::constant && node.type().is_scalar())
      known[at] = {node.value.item(), node.value.item()};
    if (node.kind != ir::Kind::apply || !node.op->range || ir::is_fold(graph, node)) continue;
    std::vector<Interval> operands;
    for (const NodeId arg : node.args) operands.push_back(known[arg]);
    const bool folds = node.op->family == Family::aggregation || node.op->family == Family::matmul;
    known[at] = node.op->range(operands, folds ? std::numeric_limits<double>::infinity() : 1);
  }
  return known[id];
}

// Exponentials are taken relative to the largest that can be, where that is known: then none is above 1.
NodeId logsumexp_in_sums(ir::Builder& build, const ir::Node& fold) {
  const NodeId e = fold.args[0];
  const double top = range_of(build.program().graph, e).hi;
  if (!std::isfinite(top)) return build.call("log", {sum_of(build, fold, build.call("exp", {e}))});
  const NodeId most = build.number(top);
  const NodeId sum = sum_of(build, fold, build.call("exp", {build.sub(e, most)}));
  return build.add(build.call("log", {sum}), most);
}

// --- ranges

using Ranges = std::span<const Interval>;

Interval sum_range(Ranges x, double n) { return range::sum(x[0], n); }

// What rounding may add over so many elements, relative to the result; of an unknown number the mathematics is told.
double rounding(double n) {
  return std::isfinite(n) ? n * std::numeric_limits<double>::epsilon() : 0;
}

// Sums and products never fall where an operand rises, so each end is only off by its own rounding.
Interval rounded(Interval x, double n) {
  return range::outward(
      {x.lo - std::fabs(x.lo) * rounding(n), x.hi + std::fabs(x.hi) * rounding(n)});
}

Interval prod_range(Ranges x, double n) {
  const double top = std::pow(std::max(x[0].size(), 1.0), n);
  return rounded({x[0].lo >= 0 ? 0 : -top, top}, n);
}

// Of no elements it is inf or -inf; what a range speaks of are the values of elements.
Interval element_range(Ranges x, double /*n*/) { return x[0]; }

Interval mean_range(Ranges x, double n) { return rounded(x[0], n); }

Interval count_range(Ranges /*x*/, double n) { return {0, n}; }

// At most a quarter of the squared width, times n / (n - 1). Also elements that are all the same differ from their rounded mean.
Interval var_range(Ranges x, double n) {
  const double width = x[0].hi - x[0].lo + 2 * x[0].size() * rounding(n);
  return range::outward({0, width * width / 2});
}

Interval std_range(Ranges x, double n) {
  return range::outward({0, std::sqrt(var_range(x, n).hi)});
}

Interval norm_range(Ranges x, double n) { return rounded({0, std::sqrt(n) * x[0].size()}, n); }

Interval logsumexp_range(Ranges x, double n) {
  return range::outward({x[0].lo - rounding(n), x[0].hi + std::log(n) + rounding(n)});
}

Interval position_range(Ranges /*x*/, double n) { return {1, n}; }

// --- rows

Op aggregation(std::string name, RangeRule range, double (*fold)(std::span<const double>),
               const Monoid* monoid, DerivativeRule derivative, std::string doc) {
  Op op;
  op.surface = name + "[axes](e)";
  op.name = std::move(name);
  op.family = Family::aggregation;
  op.axes = Op::Axes::optional;
  op.rule = monoid == nullptr ? "removes ordinary axes; never the star"
                              : "removes axes; folding the star gives a shared value";
  op.doc = std::move(doc);
  op.type = aggregation_type;
  op.monoid = monoid;
  op.range = std::move(range);
  op.flat = derivative == nullptr ? 1U : 0U;
  op.derivative = derivative;
  op.meaning = [fold](const Application& a) { return meaning::aggregate(fold, a); };
  return op;
}

// At most the product of the half widths, times n / (n - 1).
Interval cov_range(Ranges x, double /*n*/) {
  const double most = (x.front().hi - x.front().lo) * (x.back().hi - x.back().lo) / 2;
  return range::outward({-most, most});
}

Op cov(int arity, const Monoid& monoid, std::string surface, std::string doc) {
  Op op = aggregation("cov", cov_range, nullptr, &monoid, derivative::cov, std::move(doc));
  op.surface = std::move(surface);
  op.rule = "[*, p] -> [p, p]; [*, p], [*, q] -> [p, q]";
  op.min_args = op.max_args = arity;
  op.naming = Naming::variables;
  op.type = cov_type;
  op.meaning = [&monoid](const Application& a) { return cov_meaning(monoid, a); };
  op.support = support_rules::comoments;
  op.in_sums = cov_in_sums;
  return op;
}

Op quantile() {
  Op op =
      aggregation("quantile", mean_range, nullptr, nullptr, derivative::order_statistic,
                  "the q-quantile by linear interpolation (type 7); a vector q adds a last axis");
  op.surface = "quantile[axes](e, q)";
  op.min_args = op.max_args = 2;
  op.type = quantile_type;
  op.refuses = true;
  op.meaning = meaning::quantile;
  return op;
}

Op with_kernel(Op op, Kernel kernel, std::string_view join = {}) {
  op.kernel = kernel;
  op.join = join;
  return op;
}

Op with_lowering(Op op, Lowering lowering) {
  op.lowering = lowering;
  return op;
}

Op with_sums(Lowering in_sums, Op op) {
  op.in_sums = in_sums;
  return op;
}

Op linear(Op op) {
  op.linear = Linear::jointly;
  return op;
}

Op counts(Op op) {
  op.shape_only = true;
  return op;
}

Op truth_valued(Op op) {
  op.truth = true;
  return op;
}

Op bounded_by(NormRule norms, Op op) {
  op.norms = norms;
  return op;
}

Op resting_on(SupportRule support, Op op) {
  op.support = support;
  return op;
}

}  // namespace

NodeId records_from_input(ir::Builder& build, const ir::Node& fold) {
  return records_of(build, build.type(fold.args[0]).record_set());
}

std::vector<Op> aggregation_ops() {
  using namespace meaning;
  namespace m = monoids;
  return {
      linear(bounded_by(
          norms::sum,
          resting_on(support_rules::sum,
                     with_kernel(aggregation("sum", sum_range, fold_sum, &m::sum, derivative::sum,
                                             "the sum; 0 for no elements"),
                                 Kernel::join, "+")))),
      resting_on(support_rules::product,
                 with_kernel(aggregation("prod", prod_range, fold_prod, &m::prod, derivative::prod,
                                         "the product; 1 for no elements"),
                             Kernel::join, "*")),
      bounded_by(
          norms::selected,
          resting_on(
              support_rules::extreme,
              with_kernel(aggregation("min", element_range, fold_min, &m::min, derivative::extreme,
                                      "the smallest element; inf for none; nan if any is nan"),
                          Kernel::join, "min"))),
      bounded_by(
          norms::selected,
          resting_on(
              support_rules::extreme,
              with_kernel(aggregation("max", element_range, fold_max, &m::max, derivative::extreme,
                                      "the largest element; -inf for none; nan if any is nan"),
                          Kernel::join, "max"))),
      counts(resting_on(
          support_rules::count,
          with_lowering(with_kernel(aggregation("count", count_range, fold_count, &m::count,
                                                nullptr, "the number of elements"),
                                    Kernel::count),
                        count_from_records))),
      linear(bounded_by(
          norms::mean,
          with_lowering(
              with_kernel(aggregation("mean", mean_range, fold_mean, &m::sum, derivative::mean,
                                      "the arithmetic mean; nan for no elements"),
                          Kernel::mean, "+"),
              mean_from_sum))),
      with_sums(var_in_sums,
                resting_on(support_rules::moments,
                           aggregation("var", var_range, fold_var, &m::moments, derivative::var,
                                       "the variance with divisor n - 1; nan for fewer than two"))),
      with_lowering(aggregation("std", std_range, fold_std, &m::moments, derivative::std,
                                "the square root of var"),
                    std_from_var),
      with_sums(
          logsumexp_in_sums,
          resting_on(support_rules::logsumexp,
                     with_kernel(aggregation("logsumexp", logsumexp_range, fold_logsumexp,
                                             &m::logsumexp, derivative::logsumexp,
                                             "log(sum(exp(e))) without overflow; -inf for none"),
                                 Kernel::logsumexp))),
      with_sums(any_in_sums,
                resting_on(support_rules::any,
                           truth_valued(with_kernel(
                               aggregation("any", range::unit, fold_any, &m::any, nullptr,
                                           "1 if some element is not zero, else 0"),
                               Kernel::join, "or")))),
      with_sums(all_in_sums, resting_on(support_rules::all,
                                        truth_valued(with_kernel(
                                            aggregation("all", range::unit, fold_all, &m::all,
                                                        nullptr, "1 if no element is zero, else 0"),
                                            Kernel::join, "and")))),
      bounded_by(
          norms::norm,
          with_sums(norm_in_sums, resting_on(support_rules::norm,
                                             aggregation("norm", norm_range, fold_norm, &m::norm,
                                                         derivative::norm, "the Euclidean norm")))),
      with_kernel(aggregation("argmax", position_range, fold_argmax, nullptr, nullptr,
                              "the position of the largest element, counted from 1"),
                  Kernel::argmax),
      cov(1, m::comoments, "cov[*](e)", "the covariances of the columns, with divisor n - 1"),
      cov(2, m::cross_comoments, "cov[*](a, b)",
          "the covariances of the columns of a with those of b, with divisor n - 1"),
      aggregation("median", mean_range, fold_median, nullptr, derivative::order_statistic,
                  "the median"),
      quantile(),
  };
}

}  // namespace starfold

// Client-local extensions: a federated operand gives a federated result
// (prop:conservative-signature-extensions).
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "starfold/ops/derivative.h"
#include "starfold/ops/meaning.h"
#include "starfold/ops/row.h"
#include "starfold/ops/standard.h"
#include "starfold/signature/typing.h"

namespace starfold {
namespace {

Op row(std::string name, Kernel kernel, RangeRule range, int arity, std::string surface,
       std::string rule, std::string doc, TypeRule type, Meaning meaning,
       DerivativeRule derivative = nullptr) {
  Op op = begin_row(Family::client_local, arity, arity,
                    {std::move(name), std::move(surface), std::move(rule), std::move(doc)},
                    std::move(type), std::move(meaning), derivative);
  op.kernel = kernel;
  op.range = std::move(range);
  return op;
}

using Ranges = std::span<const Interval>;

Interval log_softmax_range(Ranges, double) { return {-std::numeric_limits<double>::infinity(), 0}; }
Interval where_range(Ranges x, double) { return range::hull(x[1], x[2]); }
// min(max(e, lo), hi), which rises in all three.
Interval clip_range(Ranges x, double) {
  return {std::min(std::max(x[0].lo, x[1].lo), x[2].lo),
          std::min(std::max(x[0].hi, x[1].hi), x[2].hi)};
}
// Towards 0, to the bound at most.
Interval clip_norm_range(Ranges x, double) {
  const double most = std::max(x[1].hi, 0.0);
  return {std::max(std::min(x[0].lo, 0.0), -most), std::min(std::max(x[0].hi, 0.0), most)};
}

Types one_type(Type type) { return std::vector<Type>{std::move(type)}; }

// The cell of a value: what each record holds.
Type cell(const Type& type) {
  return type.federated() ? without_axis(type, *type.record_axis()) : type;
}

Types outer_type(TypeQuery& query) {
  const Type a = cell(query.args[0]);
  const Type b = cell(query.args[1]);
  for (std::size_t i = 0; i < 2; ++i) {
    const Type& part = i == 0 ? a : b;
    if (part.rank() == 1) continue;
    return query.fail({Code::WrongRank,
                       fmt::format("`outer` needs a vector, shared or one per record, not {}",
                                   query.args[i].to_string()),
                       {query.arg_spans[i], fmt::format("this is {}", query.args[i].to_string())},
                       {},
                       "`outer(a, b)`: [p], [q] -> [p, q]; [*, p], [*, q] -> [*, p, q]",
                       part.is_scalar() ? "to scale by a number, write `*`" : ""});
  }
  if (query.args[0].federated() && query.args[1].federated() &&
      query.args[0].record_set() != query.args[1].record_set()) {
    return typing::fail_broadcast(query, 0, 1, {Clash::record_sets, {}, 0});
  }
  Type result;
  for (const Type& arg : query.args) {
    if (arg.federated() && result.dims.empty()) result.dims.push_back(arg.dims[*arg.record_axis()]);
  }
  result.dims.push_back(a.dims[0]);
  result.dims.push_back(b.dims[0]);
  return one_type(std::move(result));
}

Types clip_norm_type(TypeQuery& query) {
  if (!typing::require_shared_scalar(query, 1, "the bound")) return std::nullopt;
  return one_type(query.args[0]);
}

Types one_hot_type(TypeQuery& query) {
  Type result = query.args[0];
  result.dims.push_back(Dim::of(query.attrs.sizes[0]));
  return one_type(std::move(result));
}

Types along_axis_type(TypeQuery& query) {
  const std::optional<std::size_t> axis =
      typing::ordinary_axis(query, Code::StarScanned, "run along");
  if (!axis) return std::nullopt;
  query.attrs.axes = {static_cast<std::int64_t>(*axis)};
  return one_type(query.args[0]);
}

// The same number for every entry of the operand.
Op filled(std::string name, double value, std::string doc, Meaning meaning) {
  std::string surface = name + "(e)";
  Op op = row(std::move(name), Kernel::constant, range::filled(value), 1, std::move(surface),
              "T -> T", std::move(doc), typing::unchanged, std::move(meaning));
  op.fill = value;
  op.shape_only = true;
  op.flat = 1U;
  return op;
}

}  // namespace

std::vector<Op> client_local_ops() {
  Op one_hot = row("one_hot", Kernel::one_hot, range::unit, 2, "one_hot(e, k)", "T -> [T, k]",
                   "1 in the column of the label, 0 elsewhere; a label outside 1..k is an error, "
                   "nan a row of zeros",
                   one_hot_type, meaning::one_hot);
  one_hot.truth = true;
  one_hot.refuses = true;
  one_hot.flat = 1U;
  one_hot.first_size_arg = 1;
  Op softmax = row("softmax", Kernel::softmax, range::unit, 1, "softmax[j](e)",
                   "T -> T; j is not the star", "exp(e) scaled to sum 1 along an ordinary axis",
                   along_axis_type, meaning::softmax, derivative::softmax);
  softmax.axes = Op::Axes::required;
  Op log_softmax =
      row("log_softmax", Kernel::log_softmax, log_softmax_range, 1, "log_softmax[j](e)",
          "T -> T; j is not the star", "log(softmax[j](e)) without overflow", along_axis_type,
          meaning::log_softmax, derivative::log_softmax);
  log_softmax.axes = Op::Axes::required;
  Op where =
      row("where", Kernel::ternary, where_range, 3, "where(c, a, b)", "broadcast(c, a, b)",
          "a where c is not zero, else b", typing::broadcasting, meaning::where, derivative::where);
  where.flat = 1U;  // in the condition
  Op outer =
      row("outer", Kernel::outer, range::product, 2, "outer(a, b)",
          "[p], [q] -> [p, q]; [*, p], [*, q] -> [*, p, q]",
          "all products of two vectors, per record", outer_type, meaning::outer, derivative::outer);
  outer.linear = Linear::singly;
  Op clip_norm = row("clip_norm", Kernel::clip_norm, clip_norm_range, 2, "clip_norm(e, c)",
                     "T, [] -> T", "each record scaled to Euclidean norm at most c", clip_norm_type,
                     meaning::clip_norm, derivative::clip_norm);
  clip_norm.refuses = true;
  Op stop_gradient = row("stop_gradient", Kernel::view, range::first_operand, 1, "stop_gradient(e)",
                         "T -> T", "e itself, constant for derivatives", typing::unchanged,
                         [](const Application& a) { return std::vector<Tensor>{a.arg(0)}; });
  stop_gradient.linear = Linear::jointly;
  stop_gradient.flat = 1U;
  one_hot.norms = norms::one_hot;
  softmax.norms = norms::softmax;
  where.norms = norms::where;
  outer.norms = norms::outer;
  clip_norm.norms = norms::clip_norm;
  clip_norm.clips = true;
  stop_gradient.norms = norms::no_larger;
  Op clip = row("clip", Kernel::ternary, clip_range, 3, "clip(e, lo, hi)", "broadcast(e, lo, hi)",
                "e moved into [lo, hi]", typing::broadcasting, meaning::clip, derivative::clip);
  clip.norms = norms::clip;
  clip.clips = true;
  std::vector<Op> ops = {
      filled("zeros_like", 0, "zeros in the shape of e", meaning::zeros_like),
      filled("ones_like", 1, "ones in the shape of e", meaning::ones_like),
      std::move(outer),
      std::move(where),
      std::move(clip),
      std::move(clip_norm),
      std::move(one_hot),
      std::move(softmax),
      std::move(log_softmax),
      std::move(stop_gradient),
  };
  for (Op& op : ops) op.cheap = op.kernel == Kernel::outer || op.kernel == Kernel::ternary;
  return ops;
}

}  // namespace starfold

#include "starfold/ops/support.h"

#include <algorithm>
#include <limits>

#include "starfold/ir/builder.h"

namespace starfold::support_rules {
namespace {

using ir::Builder;
using ir::NodeId;

bool folds(const ir::Node& fold, std::size_t axis) {
  const auto& axes = fold.attrs.axes;
  return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
}

// A number of the fold's result for every element that went into it.
NodeId spread(Builder& build, const ir::Node& fold, NodeId value) {
  if (build.type(value).is_scalar()) return value;
  std::vector<Slice> slices;
  for (std::size_t axis = 0; axis < build.type(fold.args[0]).rank(); ++axis)
    slices.push_back({folds(fold, axis) ? Slice::Kind::new_axis : Slice::Kind::all, {}, {}});
  return build.call("[:]", {value}, {}, {}, std::move(slices));
}

// The sum of these over what the fold takes in.
NodeId total(Builder& build, const ir::Node& fold, NodeId terms) {
  return build.call("sum", {terms}, fold.attrs.axes);
}

// The sum of a 1 for each record.
NodeId each(Builder& build, NodeId value) {
  std::vector<Slice> slices;
  for (const Dim& dim : Type(build.type(value)).dims) {
    if (dim.star) {
      slices.push_back({Slice::Kind::all, {}, {}});
    } else {
      slices.push_back({Slice::Kind::index, 1, 1});
    }
  }
  NodeId ones = build.call("ones_like", {value});
  if (slices.size() > 1) ones = build.call("[:]", {ones}, {}, {}, std::move(slices));
  return build.call("sum", {ones}, {0});
}

// What a record has as a whole, where the fold takes in several of its elements.
NodeId within_record(Builder& build, const ir::Node& fold, const char* op) {
  const Type type = build.type(fold.args[0]);
  std::vector<std::int64_t> others;
  for (const std::int64_t axis : fold.attrs.axes) {
    if (!type.dims[static_cast<std::size_t>(axis)].star) others.push_back(axis);
  }
  return others.empty() ? fold.args[0] : build.call(op, {fold.args[0]}, others);
}

// The sum over records of a value of one type per record.
NodeId over_records(Builder& build, NodeId terms) {
  const auto star = static_cast<std::int64_t>(*build.type(terms).record_axis());
  return build.call("sum", {terms}, {star});
}

// A matrix with its records along the given axis.
NodeId with_records(Builder& build, NodeId matrix, std::size_t axis) {
  const bool there = build.type(matrix).dims[axis].star;
  return there ? matrix : build.call("permute", {matrix}, {1, 0});
}

}  // namespace

Rests sum(Builder& build, const ir::Node& fold, State /*state*/) {
  return {{{total(build, fold, fold.args[0]), true}}};
}

Rests matmul(Builder& build, const ir::Node& fold, State /*state*/) {
  return {{{build.call("@", fold.args), true}}};
}

Rests records(Builder& build, const ir::Node& fold, State /*state*/) {
  return {{{each(build, fold.args[0])}}};
}

Rests count(Builder& build, const ir::Node& fold, State /*state*/) {
  return {{{total(build, fold, build.call("ones_like", {fold.args[0]}))}}};
}

// What a condition leaves out shows in the means already.
Rests moments(Builder& build, const ir::Node& fold, State state) {
  const NodeId deviations = build.sub(fold.args[0], spread(build, fold, state[1]));
  return {{{each(build, fold.args[0])}},
          {{total(build, fold, fold.args[0]), true}},
          {{total(build, fold, build.call("square", {deviations}))}}};
}

Rests comoments(Builder& build, const ir::Node& fold, State state) {
  Rests rests = {{{each(build, fold.args[0])}}};
  std::vector<NodeId> deviations;
  for (std::size_t i = 0; i < fold.args.size(); ++i) {
    const NodeId rows = with_records(build, fold.args[i], 0);
    rests.push_back({{over_records(build, rows), true}});
    deviations.push_back(build.sub(rows, state[1 + i]));
  }
  // The scales are those of the squared deviations.
  for (const NodeId deviation : deviations)
    rests.push_back({{over_records(build, build.call("square", {deviation}))}});
  const NodeId left = build.call("permute", {deviations.front()}, {1, 0});
  rests.push_back({{build.call("@", {left, deviations.back()})}});
  return rests;
}

Rests logsumexp(Builder& build, const ir::Node& fold, State state) {
  // Finite also where there is nothing, so that -inf has no term.
  const NodeId own =
      build.call("max", {state[0], build.number(std::numeric_limits<double>::lowest())});
  const NodeId relative = build.sub(fold.args[0], spread(build, fold, own));
  return {{{total(build, fold, build.call("exp", {relative})), true}}};
}

Rests norm(Builder& build, const ir::Node& fold, State /*state*/) {
  const Rest rest{total(build, fold, build.call("square", {fold.args[0]})), true};
  return {{rest}, {rest}};
}

// The values of records may be rounded otherwise here than they were for the state: an extreme that nobody has is a
// mistake, not a number of no records.
Rests extreme(Builder& build, const ir::Node& fold, State state) {
  const NodeId own = spread(build, fold, state[0]);
  return {{{total(build, fold, build.call("==", {fold.args[0], own})), false, true}}};
}

Rests product(Builder& build, const ir::Node& fold, State /*state*/) {
  const NodeId factor = within_record(build, fold, "prod");
  const NodeId zero = build.number(0);
  const NodeId logarithm = build.call("log", {build.call("abs", {factor})});
  return {{{over_records(build, build.call("==", {factor, zero}))},
           {over_records(build, logarithm), false, false, 1},
           {over_records(build, build.call("<", {factor, zero})), false, false, 1}}};
}

Rests any(Builder& build, const ir::Node& fold, State /*state*/) {
  const NodeId said = build.call("!=", {within_record(build, fold, "any"), build.number(0)});
  return {{{over_records(build, said), false, true}}};
}

Rests all(Builder& build, const ir::Node& fold, State /*state*/) {
  const NodeId denied = build.call("==", {within_record(build, fold, "all"), build.number(0)});
  return {{{over_records(build, denied), false, true}}};
}

}  // namespace starfold::support_rules

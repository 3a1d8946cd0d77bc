#include "starfold/privacy/noise/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "starfold/ir/builder.h"
#include "starfold/ir/forms.h"
#include "starfold/ops/quantize.h"
#include "starfold/plan/lowered.h"

namespace starfold::privacy {
namespace {

using ir::NodeId;

constexpr double room = most_units_in_all / most_records_in_all;
constexpr double finest = 0x1p30;  // units of the largest entry
constexpr double coarsest = 16;    // fewer, and little would be left

bool whole(const Tensor& value) {
  return std::all_of(value.data.begin(), value.data.end(),
                     [](double x) { return std::isfinite(x) && x == std::floor(x); });
}

// Whether a value is made of whole numbers and never nan, by the way it is computed: truth values, indicators, what only moves,
// multiplies or adds them.
bool is_whole(const ir::Program& program, NodeId id) {
  const ir::Node& node = program.graph[id];
  if (node.kind == ir::Kind::constant) return whole(node.value);
  if (node.kind != ir::Kind::apply) return false;
  const Op& op = *node.op;
  if (op.truth || op.kernel == Kernel::one_hot) return true;
  if (op.fill) return *op.fill == std::floor(*op.fill);
  const bool keeps = ir::only_moves_or_multiplies(node) || ir::is_sum(node);
  return keeps && std::all_of(node.args.begin(), node.args.end(),
                              [&](NodeId arg) { return is_whole(program, arg); });
}

// The smallest power of two that is at least x.
double power_at_least(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(1.0, mantissa == 0.5 ? exponent - 1 : exponent);
}

double number_of(const Bound& bound, const SizeValues& sizes, bool exactly) {
  const std::optional<double> value = exactly ? bound.value(sizes) : bound.evaluate(sizes);
  return value.value_or(HUGE_VAL);
}

// One operand, before and after its grid is known.
struct Part {
  std::size_t operand = 0;
  Box box;
  bool whole = false;
  double l1 = 0;
  double l2 = 0;
  double linf = 0;
  double cells = 1;
  double grid = 1;

  double rounding_l1() const { return whole ? 0 : cells / 2; }
  double rounding_l2() const { return whole ? 0 : std::sqrt(cells) / 2; }
  double units() const { return whole ? linf : linf / grid + 0.5; }
};

double cells_of(const Type& type, const SizeValues& sizes) {
  double count = 1;
  for (const Dim& dim : type.dims) {
    if (!dim.star) count *= static_cast<double>(dim.size.evaluate(sizes).value_or(1));
  }
  return count;
}

// The operand without a permutation, which changes nothing that matters here: so x' @ x keeps one operand, not two.
NodeId unpermuted(const ir::Program& program, NodeId id) {
  const ir::Node& node = program.graph[id];
  return ir::is_permutation(node) ? node.args[0] : id;
}

bool folds_more(const ir::Node& fold) { return ir::is_sum(fold) && fold.attrs.axes.size() > 1; }

// Where the star of an operand stands once the other folded axes are gone.
std::size_t star_among_rest(const ir::Node& operand, const ir::Node& fold) {
  const std::size_t star = *operand.type().record_axis();
  std::size_t before = 0;
  for (const std::int64_t axis : fold.attrs.axes)
    before += static_cast<std::size_t>(axis) < star ? 1 : 0;
  return star - before;
}

std::vector<Part> parts_of(const Plan& plan, const Bounds& bounds, NodeId id,
                           const SizeValues& sizes) {
  const ir::Program& program = plan.program;
  const ir::Node& fold = program.graph[id];
  std::vector<Part> parts;
  const auto add = [&](std::size_t operand, CellBound bound, bool whole, double cells) {
    Part part;
    part.operand = operand;
    part.whole = whole;
    part.cells = cells;
    part.l1 = number_of(bound.norms.l1, sizes, whole);
    part.l2 = number_of(bound.norms.l2, sizes, whole);
    part.linf = number_of(bound.norms.linf, sizes, whole);
    part.box = std::move(bound.box);
    parts.push_back(std::move(part));
  };
  if (fold.op->shape_only) {
    add(0, bounds.term(id), true, 1);
  } else if (folds_more(fold)) {
    CellBound term = bounds.term(id);
    const auto star =
        static_cast<std::ptrdiff_t>(star_among_rest(program.graph[fold.args[0]], fold));
    for (Tensor* side : {&term.box.lo, &term.box.hi})
      side->shape.insert(side->shape.begin() + star, 1);
    add(0, std::move(term), is_whole(program, fold.args[0]), cells_of(fold.type(), sizes));
  } else {
    for (std::size_t i = 0; i < fold.args.size(); ++i) {
      const NodeId arg = unpermuted(program, fold.args[i]);
      add(i, bounds[arg], is_whole(program, arg), cells_of(program.graph[arg].type(), sizes));
    }
  }
  return parts;
}

Tensor in_units(Tensor side, double linf, double grid, double sign) {
  for (double& x : side.data) x = sign * std::min(sign * x, linf) / grid;
  return side;
}

}  // namespace

GriddedFold choose_grid(const Plan& plan, const Bounds& bounds, NodeId id, const SizeValues& sizes,
                        double size, double most_size) {
  std::vector<Part> parts = parts_of(plan, bounds, id, sizes);
  double units = room;  // of all operands together
  double product = 1;
  int inexact = 0;
  for (const Part& part : parts) {
    if (part.whole) units /= std::max(1.0, part.linf);
    if (!part.whole) ++inexact;
    product *= part.linf;
  }
  const auto refuse = [&](const char* why) {
    throw NotPrivate(
        fmt::format("the run cannot be private: for `{}` {}", describe_fold(plan, id), why),
        plan.program.graph[id].span);
  };
  if (!std::isfinite(product)) refuse("the bounds are not numbers");
  if (size > 0 && product > 0) {
    for (const Part& part : parts)
      if (part.whole) product /= std::max(1.0, part.linf);
    units = std::min(units, most_size * product / size);
  }
  const double each = inexact > 0 ? std::min(finest, std::pow(units, 1.0 / inexact)) : units;
  if (inexact == 0 ? units < 1 : each < coarsest)
    refuse("epsilon is too small: with so much noise, numbers on a grid would be too large");
  GriddedFold result;
  result.fold = id;
  result.most = 1;
  double l1 = 1;
  double l2 = 1;
  double rounded_l1 = 1;
  double rounded_l2 = 1;
  for (Part& part : parts) {
    // With half a unit of rounding, no more than `each`.
    if (!part.whole && part.linf > 0) part.grid = power_at_least(part.linf / (each - 0.5));
    result.grid *= part.grid;
    result.most *= part.units();
    l1 *= part.l1 / part.grid;
    l2 *= part.l2 / part.grid;
    rounded_l1 *= part.l1 / part.grid + part.rounding_l1();
    rounded_l2 *= part.l2 / part.grid + part.rounding_l2();
    if (part.whole) continue;
    Gridded operand;
    operand.operand = part.operand;
    operand.grid = part.grid;
    operand.lo = in_units(part.box.lo, part.linf, part.grid, -1);
    operand.hi = in_units(part.box.hi, part.linf, part.grid, 1);
    operand.l1 = part.l1 / part.grid + part.rounding_l1();
    operand.l2 = part.l2 / part.grid + part.rounding_l2();
    result.operands.push_back(std::move(operand));
  }
  result.rounding_l1 = rounded_l1 - l1;
  result.rounding_l2 = rounded_l2 - l2;
  return result;
}

// --- the rewrite ------------------------------------------------------------------------------------

namespace {

NodeId quantized(ir::Builder& build, NodeId operand, const Gridded& on) {
  ir::Node node;
  node.kind = ir::Kind::apply;
  node.op = &quantize_op();
  node.args = {operand,
               build.number(1 / on.grid),
               build.constant(on.lo),
               build.constant(on.hi),
               build.number(on.l1),
               build.number(on.l2)};
  node.types = {build.type(operand)};
  node.span = build.node(operand).span;
  return build.program().graph.add(std::move(node));
}

// The fold with its operands on their grids; its other folded axes are folded before.
NodeId gridded(ir::Program& to, ir::Node node, const GriddedFold& on) {
  ir::Builder build(to, node.span);
  if (folds_more(node) && !on.operands.empty()) {
    const NodeId operand = node.args[0];
    const std::size_t star = *build.type(operand).record_axis();
    std::vector<std::int64_t> rest;
    for (const std::int64_t axis : node.attrs.axes)
      if (static_cast<std::size_t>(axis) != star) rest.push_back(axis);
    const auto left = static_cast<std::int64_t>(star_among_rest(build.node(operand), node));
    const NodeId inner = build.call("sum", {operand}, rest);
    return build.call("sum", {quantized(build, inner, on.operands[0])}, {left});
  }
  for (const Gridded& operand : on.operands) {
    NodeId& arg = node.args[operand.operand];
    const NodeId plain = unpermuted(to, arg);
    const NodeId result = quantized(build, plain, operand);
    arg = plain == arg ? result : build.call("permute", {result}, to.graph[arg].attrs.axes);
  }
  return to.graph.add(std::move(node));
}

// Products with shared values of what is summed in whole units and used for nothing else, as x @ b beside x' @ r: they take the
// same units, so that a client reads them once. By product, how its first operand is put on its grid.
std::map<NodeId, const Gridded*> products_in_units(const ir::Program& program,
                                                   const std::vector<GriddedFold>& folds) {
  std::map<NodeId, std::set<NodeId>> users;
  for (NodeId id = 0; id < program.graph.size(); ++id) {
    for (const NodeId arg : program.graph[id].args) users[arg].insert(id);
  }
  std::set<NodeId> sums;
  for (const GriddedFold& fold : folds) sums.insert(fold.fold);
  const auto only_summed = [&](const std::set<NodeId>& by) {
    return std::includes(sums.begin(), sums.end(), by.begin(), by.end());
  };
  std::map<NodeId, const Gridded*> products;
  for (const GriddedFold& fold : folds) {
    if (folds_more(program.graph[fold.fold])) continue;
    for (const Gridded& on : fold.operands) {
      const NodeId operand = unpermuted(program, program.graph[fold.fold].args[on.operand]);
      std::map<NodeId, const Gridded*> own;
      bool only = true;
      for (const NodeId user : users[operand]) {
        const ir::Node& node = program.graph[user];
        const bool product = ir::is_matmul(node) && node.federated() && node.args[0] == operand &&
                             !program.graph[node.args[1]].federated();
        const bool moved = ir::is_permutation(node) && only_summed(users[user]);
        if (product) own.emplace(user, &on);
        only = only && (product || moved || sums.count(user) != 0);
      }
      if (only) products.merge(own);
    }
  }
  return products;
}

NodeId product_in_units(ir::Program& to, ir::Node node, const Gridded& on) {
  ir::Builder build(to, node.span);
  node.args[0] = quantized(build, node.args[0], on);
  const NodeId product = to.graph.add(std::move(node));
  return build.call("*", {product, build.number(on.grid)});
}

// A run that stops says of one record what it holds: where a label or an index outside stops others, a private run goes on. A label
// that is none is missing, and what is looked up with such an index is nan, which `quantize` takes for the number nearest to 0.
NodeId is_valid(ir::Builder& build, NodeId index, const Size& count) {
  const NodeId below = build.call("<=", {index, build.size(count)});
  const NodeId inside = build.mul(build.call(">=", {index, build.number(1)}), below);
  const NodeId whole = build.call("==", {build.call("floor", {index}), index});
  return build.mul(inside, whole);
}

// The table stays as it is: it may be what the server sends.
NodeId looked_up(ir::Program& to, ir::Node node) {
  ir::Builder build(to, node.span);
  const NodeId index = node.args[1];
  const Size rows = build.type(node.args[0]).dims[0].size;
  const std::size_t more = build.type(node.args[0]).rank() - 1;
  NodeId valid = is_valid(build, index, rows);
  node.args[1] = build.call("where", {valid, index, build.number(1)});
  const NodeId found = to.graph.add(std::move(node));
  if (more > 0) {
    std::vector<Slice> slices(build.type(valid).rank(), {Slice::Kind::all, {}, {}});
    slices.insert(slices.end(), more, {Slice::Kind::new_axis, {}, {}});
    valid = build.call("[:]", {valid}, {}, {}, std::move(slices));
  }
  return build.call("where",
                    {valid, found, build.number(std::numeric_limits<double>::quiet_NaN())});
}

// Also inside blocks.
NodeId without_refusal(ir::Program& to, ir::Node node) {
  if (node.block) {
    ir::Local block = *node.block;
    block.body = ir::rebuild(block.body, without_refusal);
    node.block = ir::make_local(std::move(block));
  }
  if (node.kind != ir::Kind::apply || !node.op->refuses || !node.federated())
    return to.graph.add(std::move(node));
  if (ir::has_kernel(node, Kernel::lookup) && to.graph[node.args[1]].federated())
    return looked_up(to, std::move(node));
  if (ir::has_kernel(node, Kernel::one_hot)) {
    ir::Builder build(to, node.span);
    const NodeId label = node.args[0];
    node.args[0] = build.call("where", {is_valid(build, label, node.attrs.sizes[0]), label,
                                        build.number(std::numeric_limits<double>::quiet_NaN())});
  }
  return to.graph.add(std::move(node));
}

}  // namespace

std::shared_ptr<const Plan> on_grids(const Plan& plan, const std::vector<GriddedFold>& folds) {
  std::map<NodeId, const GriddedFold*> by_fold;
  for (const GriddedFold& fold : folds) by_fold[fold.fold] = &fold;
  const std::map<NodeId, const Gridded*> products = products_in_units(plan.program, folds);
  NodeId next = 0;
  ir::Program program = ir::rebuild(plan.program, [&](ir::Program& to, ir::Node node) {
    const NodeId old = next++;
    if (const auto found = by_fold.find(old); found != by_fold.end())
      return gridded(to, std::move(node), *found->second);
    if (const auto found = products.find(old); found != products.end())
      return product_in_units(to, std::move(node), *found->second);
    return without_refusal(to, std::move(node));
  });
  ir::verify(program, "on_grids");
  auto result = std::make_shared<Plan>(plan_lowered(std::move(program)));
  const std::vector<const Round*> before = rounds_of(plan);
  const std::vector<const Round*> after = rounds_of(*result);
  bool same = before.size() == after.size();
  for (std::size_t i = 0; same && i < before.size(); ++i)
    same = before[i]->merges.size() == after[i]->merges.size() &&
           before[i]->receives.size() == after[i]->receives.size();
  if (!same) throw Bug("a plan on grids has other rounds");
  return result;
}

}  // namespace starfold::privacy

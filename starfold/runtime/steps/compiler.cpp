#include "starfold/runtime/steps/compiler.h"

#include <algorithm>
#include <numeric>

#include "starfold/base/error.h"
#include "starfold/ir/forms.h"
#include "starfold/ir/visit.h"
#include "starfold/merge/exact.h"
#include "starfold/ops/meaning.h"
#include "starfold/runtime/accumulate/accumulator.h"
#include "starfold/runtime/apply.h"

namespace starfold::engine {
namespace {

using ir::is_op;
using ir::is_view;
using ir::Kind;
using ir::NodeId;
using Takes = AccumulatorKind::Takes;

Tensor numbered(const Shape& shape, std::uint32_t first) {
  Tensor tensor(shape);
  std::iota(tensor.data.begin(), tensor.data.end(), static_cast<double>(first));
  return tensor;
}

CellMap as_map(const Tensor& numbers) {
  CellMap map;
  map.reserve(numbers.data.size());
  for (const double number : numbers.data) map.push_back(static_cast<std::uint32_t>(number));
  return map;
}

}  // namespace

CellMap identity(std::size_t cells) {
  CellMap map(cells);
  std::iota(map.begin(), map.end(), 0U);
  return map;
}

CellMap by_place(const std::vector<std::uint32_t>& places) {
  CellMap cells = identity(places.size());
  std::stable_sort(cells.begin(), cells.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return places[a] < places[b]; });
  return cells;
}

// Statistics of several columns together need all of them at once.
bool by_cell(const Step& step) { return step.code < Code::combine && !step.pooled; }

const std::string& record_set_of(const ir::Program& program, const ir::Node& fold) {
  for (const NodeId arg : fold.args) {
    if (program.graph[arg].federated()) return program.graph[arg].type().record_set();
  }
  throw Bug("a fold without a federated operand");
}

Shape block_shape(const Type& type, const SizeValues& sizes, std::int64_t records) {
  Shape shape = cell_shape(type, sizes);
  if (const auto axis = type.record_axis())
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis), records);
  return shape;
}

std::vector<std::uint32_t> folded_places(const Shape& shape,
                                         const std::vector<std::int64_t>& axes) {
  std::vector<std::uint32_t> places(1, 0);
  std::uint32_t stride = 1;
  for (std::size_t k = shape.size(); k-- > 0;) {
    const bool folded =
        std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(k)) != axes.end();
    const auto extent = static_cast<std::uint32_t>(shape[k]);
    std::vector<std::uint32_t> longer;
    longer.reserve(places.size() * extent);
    for (std::uint32_t i = 0; i < extent; ++i) {
      for (const std::uint32_t place : places) longer.push_back(place + (folded ? 0 : i * stride));
    }
    places = std::move(longer);
    if (!folded) stride *= extent;
  }
  return places;
}

MatmulMap matmul_map(const Shape& left, const Shape& right) {
  MatmulMap map;
  const Shape left_batch(left.begin(), left.end() - std::min<std::ptrdiff_t>(2, std::ssize(left)));
  const Shape right_batch(right.begin(),
                          right.end() - std::min<std::ptrdiff_t>(2, std::ssize(right)));
  const Shape batch = meaning::broadcast_shapes(left_batch, right_batch);
  map.batch = static_cast<std::size_t>(element_count(batch));
  map.rows = left.size() > 1 ? static_cast<std::size_t>(left[left.size() - 2]) : 1;
  map.columns = right.size() > 1 ? static_cast<std::size_t>(right.back()) : 1;
  map.terms = static_cast<std::size_t>(left.back());
  map.left_stride = 1;
  map.right_stride = map.columns;
  const CellMap left_start = as_map(meaning::broadcast_to(numbered(left_batch, 0), batch));
  const CellMap right_start = as_map(meaning::broadcast_to(numbered(right_batch, 0), batch));
  for (std::size_t b = 0; b < map.batch; ++b) {
    for (std::size_t i = 0; i < map.rows; ++i) {
      for (std::size_t j = 0; j < map.columns; ++j) {
        map.left.push_back(static_cast<std::uint32_t>((left_start[b] * map.rows + i) * map.terms));
        map.right.push_back(
            static_cast<std::uint32_t>(right_start[b] * map.terms * map.columns + j));
      }
    }
  }
  return map;
}

Roles roles_of(const ir::Program& program, const std::string& record_set) {
  Roles roles(program.graph.size(), Role::other);
  for (NodeId id = 0; id < roles.size(); ++id) {
    const ir::Node& node = program.graph[id];
    if (node.federated() && node.type().record_set() == record_set)
      roles[id] = is_array(program, id) ? Role::array : Role::computed;
  }
  return roles;
}

Compiler::Compiler(const Plan& plan, const SizeValues& sizes, const Round& round,
                   const std::string& record_set, const Roles& roles, Tables& tables)
    : program_(plan.program),
      exact_(plan.exact),
      sizes_(sizes),
      round_(round),
      record_set_(record_set),
      roles_(roles),
      tables_(tables) {
  for (const NodeId id : round.encoders) {
    if (by_record(id)) encoders_.insert(id);
  }
  for (const NodeId id : round.steady) {
    if (encoders_.count(id) != 0) kept_.insert(id);
  }
  count_uses();
}

BlockProgram Compiler::compile(const std::map<NodeId, Columns>& given) {
  values_ = given;
  const std::vector<NodeId> needed = find_needed();
  // Folds run as soon as their operands are there.
  std::multimap<NodeId, std::size_t> folds;
  for (std::size_t i = 0; i < round_.merges.size(); ++i) {
    if (!folded_here(round_.merges[i])) continue;
    const ir::Node& fold = node(round_.merges[i].fold);
    NodeId last = 0;
    for (const NodeId leaf : fold_leaves(fold)) {
      if (values_.count(leaf) == 0) last = std::max(last, leaf);
    }
    folds.emplace(last, i);
  }
  auto next = folds.begin();
  const auto emit_folds = [&](NodeId up_to) {
    for (; next != folds.end() && next->first <= up_to; ++next) emit_fold(next->second);
  };
  for (const NodeId id : needed) {
    if (id > 0) emit_folds(id - 1);
    emit(id);
    costs_[id] = cost(id);
  }
  emit_folds(ir::no_node);
  for (std::size_t i = 0; i < round_.stores.size(); ++i) {
    if (roles_[round_.stores[i].node] == Role::computed) emit_store(i);
  }

  BlockProgram program;
  program.steps = std::move(steps_);
  program.groups = group_steps(program.steps);
  for (const Step& step : program.steps) {
    for (const Operand& arg : step.args) program.columns_read += arg.columns.size();
    program.columns_read += step.code == Code::fold_gram ? step.places.size() : 0;
  }
  return program;
}

// --- which values are needed --------------------------------------------------------------------

void Compiler::count_uses() {
  for (const NodeId id : encoders_) {
    for (const NodeId arg : node(id).args) ++uses_[arg];
  }
  for (const Merge& merge : round_.merges) {
    for (const NodeId arg : node(merge.fold).args) ++uses_[arg];
  }
  // What is laid down is there for others, too.
  for (const Store& store : round_.stores) uses_[store.node] += 2;
}

bool Compiler::folded_here(const Merge& merge) const {
  return record_set_of(program_, node(merge.fold)) == record_set_;
}

void Compiler::emit_store(std::size_t store) {
  Step step;
  step.code = Code::store;
  step.node = round_.stores[store].node;
  step.args = {operand(step.node)};
  step.number = store;
  add(std::move(step));
}

std::vector<NodeId> Compiler::find_needed() const {
  std::vector<NodeId> pending;
  for (const Merge& merge : round_.merges) {
    if (!folded_here(merge)) continue;
    for (const NodeId leaf : fold_leaves(node(merge.fold))) pending.push_back(leaf);
  }
  for (const Store& store : round_.stores) {
    if (roles_[store.node] == Role::computed) pending.push_back(store.node);
  }
  std::set<NodeId> needed;
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (!by_record(id) || values_.count(id) != 0 || !needed.insert(id).second) continue;
    const std::vector<NodeId> operands = reads(id);
    pending.insert(pending.end(), operands.begin(), operands.end());
  }
  return {needed.begin(), needed.end()};
}

std::vector<NodeId> Compiler::reads(NodeId id) const {
  const ir::Node& n = node(id);
  if (roles_[id] == Role::array) return {};
  if (const std::optional<Distances> parts = distances(id)) return {parts->x, parts->points};
  if (const std::optional<Distances> parts = nearest(id)) return {parts->x, parts->points};
  if (ir::has_kernel(n, Kernel::argmax) && negated(n.args[0])) return {node(n.args[0]).args[0]};
  return n.args;
}

// Whether a value has one reader, which can do without it.
bool Compiler::in_passing(NodeId id) const {
  return roles_[id] == Role::computed && uses_.at(id) == 1 && kept_.count(id) == 0 &&
         values_.count(id) == 0 && !as_one_alone(id);
}

bool Compiler::negated(NodeId id) const {
  return by_record(id) && in_passing(id) && is_op(node(id), "-", 1);
}

std::optional<Compiler::Distances> Compiler::distances(NodeId id) const {
  const ir::Node& sum = node(id);
  if (!ir::is_sum(sum) || !in_passing(sum.args[0])) return std::nullopt;
  const ir::Node& square = node(sum.args[0]);
  if (!is_op(square, "square", 1) || !in_passing(square.args[0])) return std::nullopt;
  const NodeId difference = square.args[0];
  if (!is_op(node(difference), "-", 2)) return std::nullopt;
  Distances parts;
  parts.x = node(difference).args[0];
  parts.points = node(difference).args[1];
  if (!by_record(parts.x)) std::swap(parts.x, parts.points);  // the square is the same
  if (by_record(parts.points)) return std::nullopt;

  const std::vector<std::uint32_t> places = folded_places(unit_shape(difference), sum.attrs.axes);
  const auto results = static_cast<std::size_t>(element_count(unit_shape(id)));
  parts.terms = places.size() / results;
  const CellMap of_x = broadcast_map(parts.x, difference);
  const CellMap of_points = broadcast_map(parts.points, difference);
  const CellMap order = by_place(places);
  bool same = true;
  for (std::size_t c = 0; c < order.size(); ++c) {
    const std::size_t term = c % parts.terms;
    parts.columns.push_back(of_x[order[c]]);
    same = same && parts.columns[c] == parts.columns[term];
    const std::uint32_t number = of_points[order[c]];
    if (term == 0) parts.starts.push_back(number);
    if (c == 1 && term == 1) parts.stride = number - parts.starts[0];
    if (number != parts.starts.back() + term * parts.stride) return std::nullopt;
  }
  if (same) parts.columns.resize(parts.terms);
  return parts;
}

std::optional<Compiler::Distances> Compiler::nearest(NodeId id) const {
  const ir::Node& n = node(id);
  if (!ir::has_kernel(n, Kernel::argmax) || !negated(n.args[0])) return std::nullopt;
  const NodeId least = node(n.args[0]).args[0];
  if (!in_passing(least) || element_count(unit_shape(id)) != 1) return std::nullopt;
  std::optional<Distances> parts = distances(least);
  if (parts && parts->columns.size() != parts->terms) return std::nullopt;
  return parts;
}

std::optional<NodeId> Compiler::one_hot_behind(NodeId id) const {
  const ir::Node& n = node(id);
  if (is_view(n) && n.args.size() == 1 && in_passing(id)) {
    const CellMap map = view_map(n, {0});
    return map == identity(map.size()) ? one_hot_behind(n.args[0]) : std::nullopt;
  }
  if (!ir::has_kernel(n, Kernel::one_hot) || values_.count(id) != 0 ||
      element_count(unit_shape(n.args[0])) != 1)
    return std::nullopt;
  return id;
}

std::optional<Compiler::Groups> Compiler::groups(const ir::Node& fold) const {
  if (fold.op->family == Family::matmul) {
    for (const std::size_t side : {0U, 1U}) {
      const NodeId summed = fold.args[1 - side];
      if (node(fold.args[side]).type().rank() != 2 || node(summed).type().rank() > 2) continue;
      if (const std::optional<NodeId> found = one_hot_behind(fold.args[side]))
        return Groups{*found, node(*found).args[0], summed, side == 1};
    }
  } else if (ir::is_sum(fold) && fold.attrs.axes.size() == 1) {
    if (const std::optional<NodeId> found = one_hot_behind(fold.args[0]))
      return Groups{*found, node(*found).args[0]};
  }
  return std::nullopt;
}

AccumulatorKind Compiler::accumulator_of(const ir::Node& fold) const {
  const Monoid& row = *fold.op->monoid;
  const bool products = fold.op->family == Family::matmul;
  return accumulator_kind(exact_ ? exact::form_of(row, products) : row);
}

// The values that a fold reads.
std::vector<NodeId> Compiler::fold_leaves(const ir::Node& fold) const {
  std::vector<NodeId> leaves;
  // Who only counts need not look, unless looking may end the run.
  if (accumulator_of(fold).takes == Takes::counts && !program_.graph.can_refuse(fold.args[0]))
    return leaves;
  if (const std::optional<Groups> parts = groups(fold)) {
    leaves.push_back(parts->labels);
    if (parts->summed != ir::no_node) add_leaves(parts->summed, factor_depth, leaves);
    return leaves;
  }
  const bool sums_products = accumulator_of(fold).takes == Takes::sums;
  for (const NodeId arg : fold.args) add_leaves(arg, sums_products ? factor_depth : 0, leaves);
  return leaves;
}

void Compiler::add_leaves(NodeId id, int depth, std::vector<NodeId>& leaves) const {
  if (depth == 0 || !splits(id)) {
    leaves.push_back(id);
    return;
  }
  for (const NodeId arg : node(id).args) add_leaves(arg, depth - 1, leaves);
}

// Whether a value is a product, or a view of one, that only one reader wants.
bool Compiler::splits(NodeId id) const {
  const ir::Node& n = node(id);
  if (uses_.at(id) != 1 || kept_.count(id) != 0 || values_.count(id) != 0) return false;
  const bool product = ir::is_product(n) || ir::is_outer(n) || is_op(n, "square", 1);
  if (!product && !(is_view(n) && n.args.size() == 1)) return false;
  return std::all_of(n.args.begin(), n.args.end(), [&](NodeId arg) { return by_record(arg); });
}

// --- parts --------------------------------------------------------------------------------------

Step& Compiler::add(Step step) {
  steps_.push_back(std::move(step));
  return steps_.back();
}

Columns Compiler::fresh(std::size_t count) {
  Columns columns;
  columns.reserve(count);
  for (std::size_t i = 0; i < count; ++i) columns.push_back({scratch, next_column_++});
  return columns;
}

std::uint32_t Compiler::shared_number(NodeId id) {
  const auto found = std::find(tables_.shared.begin() + 1, tables_.shared.end(), id);
  if (found == tables_.shared.end()) {
    tables_.shared.push_back(id);
    return static_cast<std::uint32_t>(tables_.shared.size() - 1);
  }
  return static_cast<std::uint32_t>(found - tables_.shared.begin());
}

Column Compiler::fill(std::uint32_t shared, std::uint32_t entry) {
  const Tables::Fill wanted{shared, entry};
  const auto next = static_cast<std::uint32_t>(tables_.fills.size());
  const auto [found, is_new] = tables_.fill_places.emplace(wanted, next);
  if (is_new) tables_.fills.push_back(wanted);
  return {fills, found->second};
}

Operand Compiler::operand(NodeId id, const CellMap& map) {
  Operand result;
  if (by_record(id)) {
    const Columns& columns = values_.at(id);
    result.columns.reserve(map.size());
    for (const std::uint32_t cell : map) result.columns.push_back(columns[cell]);
  } else {
    result.shared = shared_number(id);
    result.entries = map;
  }
  return result;
}

Operand Compiler::operand(NodeId id) {
  return operand(id, identity(static_cast<std::size_t>(element_count(unit_shape(id)))));
}

// A shared value as a whole, or the columns of a federated one.
Operand Compiler::whole(NodeId id) {
  if (by_record(id)) return operand(id);
  Operand result;
  result.shared = shared_number(id);
  return result;
}

Operand Compiler::number(double value, std::size_t cells) {
  const auto next = static_cast<std::uint32_t>(tables_.numbers.size());
  const auto [found, is_new] = tables_.number_places.emplace(value, next);
  if (is_new) tables_.numbers.push_back(value);
  Operand result;
  result.shared = 0;
  result.entries.assign(cells, found->second);
  return result;
}

CellMap Compiler::broadcast_map(NodeId from, NodeId to) const {
  return as_map(meaning::broadcast_to(numbered(unit_shape(from), 0), unit_shape(to)));
}

// Which operand cell each cell of a view shows: the operation itself, applied to their numbers.
// Operand i's cells are numbered from offsets[i].
CellMap Compiler::view_map(const ir::Node& view, std::vector<std::uint32_t> offsets) const {
  std::vector<Tensor> numbers;
  for (std::size_t i = 0; i < view.args.size(); ++i)
    numbers.push_back(numbered(unit_shape(view.args[i]), offsets[i]));
  std::vector<const Tensor*> args;
  for (const Tensor& tensor : numbers) args.push_back(&tensor);
  return as_map(apply(program_, view, std::move(args), sizes_).front());
}

// --- what is worth keeping ----------------------------------------------------------------------

// Column passes that it takes to compute a value, roughly: one per simple map.
double Compiler::cost(NodeId id) const {
  const ir::Node& n = node(id);
  if (!by_record(id) || n.kind != Kind::apply) return 0;
  double total = 0;
  for (const NodeId arg : n.args) total += costs_.count(arg) != 0 ? costs_.at(arg) : 0;
  if (is_view(n)) return total;
  const auto cells = static_cast<double>(element_count(unit_shape(id)));
  double each = n.op->cheap ? 1 : 8;
  if (n.op->family == Family::matmul) each = static_cast<double>(unit_shape(n.args[0]).back());
  if (n.op->family == Family::aggregation)
    each = static_cast<double>(element_count(unit_shape(n.args[0]))) / cells;
  return total + each * cells;
}

std::map<NodeId, Columns> Compiler::worth_keeping() const {
  std::map<NodeId, Columns> result;
  for (const NodeId id : kept_) {
    const auto value = values_.find(id);
    if (value == values_.end()) continue;
    const std::set<Column> columns(value->second.begin(), value->second.end());
    const auto computed = std::count_if(columns.begin(), columns.end(),
                                        [](const Column& c) { return c.source == scratch; });
    if (computed > 0 && costs_.at(id) > 3 * static_cast<double>(computed)) result.insert(*value);
  }
  return result;
}

std::set<std::uint32_t> Compiler::shared_parts(NodeId id) const {
  std::set<std::uint32_t> parts;
  ir::visit(program_.graph, {id}, [&](NodeId at) {
    if (by_record(at)) return true;
    const auto found = std::find(tables_.shared.begin() + 1, tables_.shared.end(), at);
    if (found != tables_.shared.end())
      parts.insert(static_cast<std::uint32_t>(found - tables_.shared.begin()));
    return false;
  });
  return parts;
}

}  // namespace starfold::engine

// Folds of the record axis. A sum over products never makes the products: with the cells' factors
// known column by column, it is a set of dot products, often all those of two lists of columns.
#include <algorithm>
#include <iterator>

#include "starfold/ir/forms.h"
#include "starfold/runtime/accumulate/accumulator.h"
#include "starfold/runtime/steps/compiler.h"

namespace starfold::engine {
namespace {

using ir::is_op;
using ir::NodeId;

using Takes = AccumulatorKind::Takes;

// The numbers of distinct columns, in order of appearance.
struct Distinct {
  Columns columns;
  std::vector<std::uint32_t> number;  // of each cell's column

  explicit Distinct(const Columns& all) {
    std::map<Column, std::uint32_t> seen;
    for (const Column& column : all) {
      const auto [at, is_new] = seen.emplace(column, static_cast<std::uint32_t>(columns.size()));
      if (is_new) columns.push_back(column);
      number.push_back(at->second);
    }
  }
};

}  // namespace

void Compiler::emit_fold(std::size_t merge) {
  const ir::Node& fold = node(round_.merges[merge].fold);
  if (const std::optional<Groups> parts = groups(fold)) return emit_groups(merge, *parts);
  if (fold.op->family == Family::matmul) return emit_matmul_fold(merge);
  const Takes takes = accumulator_kind(*round_.merges[merge].monoid).takes;
  Step step;
  step.node = round_.merges[merge].fold;
  step.merge = merge;
  if (takes == Takes::block || takes == Takes::records) {
    step.code = takes == Takes::block ? Code::fold_block : Code::fold_records;
    for (const NodeId arg : fold.args) step.args.push_back(operand(arg));
    add(std::move(step));
    return;
  }
  const NodeId arg = fold.args[0];
  const auto cells = static_cast<std::size_t>(element_count(unit_shape(arg)));
  const std::vector<std::uint32_t> places = folded_places(unit_shape(arg), fold.attrs.axes);
  step.terms = cells / static_cast<std::size_t>(element_count(unit_shape(step.node)));
  if (takes == Takes::counts) {
    step.code = Code::fold_count;
    // `records` has the star alone among its axes: it counts records whatever they hold.
    if (fold.attrs.axes.size() == 1) step.terms = 1;
    add(std::move(step));
    return;
  }
  step.code = Code::fold_sample;
  if (takes == Takes::sums) {
    const Factors product = factors(arg, factor_depth);
    if (product.count > 1) return emit_product_sum(merge, product, places);
    step.args = {{product.columns, Operand::none, {}}};
    step.places = places;
    add(std::move(step));
    return;
  }
  // Columns of one result side by side.
  const CellMap order = by_place(places);
  step.pooled = takes == Takes::samples && step.terms > 1;
  step.args = {operand(arg, order)};
  for (const std::uint32_t cell : order) step.places.push_back(places[cell]);
  add(std::move(step));
}

// [.., i, *] @ [*, j]: all sums of products of the left columns with the right ones.
void Compiler::emit_matmul_fold(std::size_t merge) {
  const ir::Node& fold = node(round_.merges[merge].fold);
  const MatmulMap map = matmul_map(unit_shape(fold.args[0]), unit_shape(fold.args[1]));
  const Factors left = factors(fold.args[0], factor_depth);
  const Factors right = factors(fold.args[1], factor_depth);
  for (std::size_t b = 0; b < map.batch; ++b) {
    const std::size_t first = b * map.rows * map.columns;
    Factors rows{left.count, {}};
    Factors columns{right.count, {}};
    for (std::size_t i = 0; i < map.rows; ++i) {
      const Column* row = left.of(map.left[first + i * map.columns]);
      rows.columns.insert(rows.columns.end(), row, row + left.count);
    }
    for (std::size_t j = 0; j < map.columns; ++j) {
      const Column* column = right.of(map.right[first + j]);
      columns.columns.insert(columns.columns.end(), column, column + right.count);
    }
    std::vector<std::uint32_t> places;
    for (std::size_t c = 0; c < map.rows * map.columns; ++c)
      places.push_back(static_cast<std::uint32_t>(first + c));
    emit_gram(merge, rows, columns, {}, places);
  }
}

// The same recursion as add_leaves.
Factors Compiler::factors(NodeId id, int depth) const {
  if (depth == 0 || !splits(id)) return {1, values_.at(id)};
  const ir::Node& n = node(id);
  const Factors a = factors(n.args[0], depth - 1);
  Factors result{a.count, {}};
  const auto append = [&](const Factors& from, std::size_t cell) {
    result.columns.insert(result.columns.end(), from.of(cell), from.of(cell) + from.count);
  };
  if (is_op(n, "square", 1)) {
    result.count *= 2;
    for (std::size_t cell = 0; cell < a.cells(); ++cell) {
      append(a, cell);
      append(a, cell);
    }
  } else if (ir::is_product(n)) {
    const Factors b = factors(n.args[1], depth - 1);
    const CellMap map_a = broadcast_map(n.args[0], id);
    const CellMap map_b = broadcast_map(n.args[1], id);
    result.count += b.count;
    for (std::size_t cell = 0; cell < map_a.size(); ++cell) {
      append(a, map_a[cell]);
      append(b, map_b[cell]);
    }
  } else if (ir::is_outer(n)) {
    const Factors b = factors(n.args[1], depth - 1);
    result.count += b.count;
    for (std::size_t i = 0; i < a.cells(); ++i) {
      for (std::size_t j = 0; j < b.cells(); ++j) {
        append(a, i);
        append(b, j);
      }
    }
  } else {
    for (const std::uint32_t cell : view_map(n, {0})) append(a, cell);
  }
  return result;
}

Columns Compiler::take_common(Factors& product) const {
  Columns common(product.of(0), product.of(0) + product.count);
  std::sort(common.begin(), common.end());
  for (std::size_t cell = 1; cell < product.cells(); ++cell) {
    Columns own(product.of(cell), product.of(cell) + product.count);
    std::sort(own.begin(), own.end());
    Columns both;
    std::set_intersection(common.begin(), common.end(), own.begin(), own.end(),
                          std::back_inserter(both));
    common = std::move(both);
  }
  if (common.size() == product.count) common.pop_back();
  Factors rest{product.count - common.size(), {}};
  for (std::size_t cell = 0; cell < product.cells(); ++cell) {
    Columns taken = common;
    for (std::size_t i = 0; i < product.count; ++i) {
      const Column& column = product.of(cell)[i];
      const auto at = std::find(taken.begin(), taken.end(), column);
      if (at != taken.end()) {
        taken.erase(at);
      } else {
        rest.columns.push_back(column);
      }
    }
  }
  product = std::move(rest);
  return common;
}

// a_i * b_i for each i; products that were made before are not made again.
Columns Compiler::multiplied(const Columns& a, const Columns& b) {
  Step step;
  step.code = Code::binary;
  step.binary = kernels::binary("*");
  step.args.resize(2);
  Columns result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto [at, is_new] = products_.emplace(std::pair(a[i], b[i]), Column{});
    if (is_new) {
      at->second = fresh(1).front();
      step.args[0].columns.push_back(a[i]);
      step.args[1].columns.push_back(b[i]);
      step.out.push_back(at->second);
    }
    result.push_back(at->second);
  }
  if (!step.out.empty()) add(std::move(step));
  return result;
}

std::pair<Columns, Columns> Compiler::in_two(const Factors& product) {
  const auto factor = [&](std::size_t i) {
    Columns columns;
    for (std::size_t cell = 0; cell < product.cells(); ++cell)
      columns.push_back(product.of(cell)[i]);
    return columns;
  };
  Columns first = factor(0);
  for (std::size_t i = 1; i + 1 < product.count; ++i) first = multiplied(first, factor(i));
  return {std::move(first), factor(product.count - 1)};
}

void Compiler::emit_product_sum(std::size_t merge, const Factors& product,
                                const std::vector<std::uint32_t>& places) {
  Factors rest = product;
  Columns common = product.cells() > 1 ? take_common(rest) : Columns{};
  if (rest.count == 1) {
    const Factors one{1, {common.back()}};
    common.pop_back();
    return emit_gram(merge, rest, one, std::move(common), places);
  }
  const auto [a, b] = in_two(rest);
  const Distinct rows(a);
  const Distinct columns(b);
  // Where in the grid of rows and columns each cell is.
  std::vector<std::uint32_t> grid(rows.columns.size() * columns.columns.size(), Operand::none);
  bool full = a.size() > 1 && grid.size() == a.size();
  for (std::size_t cell = 0; cell < a.size() && full; ++cell) {
    std::uint32_t& at = grid[rows.number[cell] * columns.columns.size() + columns.number[cell]];
    full = at == Operand::none;
    at = places[cell];
  }
  if (full)
    return emit_gram(merge, {1, rows.columns}, {1, columns.columns}, std::move(common), grid);
  Columns left = a;
  for (const Column& factor : common) left = multiplied(left, Columns(left.size(), factor));
  emit_dots(merge, std::move(left), b, places);
}

// All sums of rows times columns times the common factors; places[i * columns + j] is where each goes.
void Compiler::emit_gram(std::size_t merge, const Factors& all_rows, const Factors& all_columns,
                         Columns common, const std::vector<std::uint32_t>& places) {
  Factors rows = all_rows;
  Factors columns = all_columns;
  for (Factors* side : {&rows, &columns}) {
    if (side->count == 1) continue;
    const Columns taken = take_common(*side);
    common.insert(common.end(), taken.begin(), taken.end());
    if (side->count > 1) {
      const auto [first, last] = in_two(*side);
      *side = {1, multiplied(first, last)};
    }
  }
  const bool symmetric = rows.columns == columns.columns;
  if (!common.empty()) {
    Columns scale = {common[0]};
    for (std::size_t i = 1; i < common.size(); ++i) scale = multiplied(scale, {common[i]});
    Columns& side = rows.cells() < columns.cells() ? rows.columns : columns.columns;
    side = multiplied(side, Columns(side.size(), scale[0]));
  }
  if (places.size() == 1) return emit_dots(merge, rows.columns, columns.columns, places);
  Step step;
  step.code = Code::fold_gram;
  step.node = round_.merges[merge].fold;
  step.merge = merge;
  step.upper = symmetric;
  step.places = places;
  if (rows.cells() == 1)
    std::swap(rows, columns);  // the same places: there is one row or one column
  step.args = {{rows.columns, Operand::none, {}}, {columns.columns, Operand::none, {}}};
  step.number = tiles_[merge]++;
  add(std::move(step));
}

// one_hot(labels, k)' @ columns, without making the one_hot.
void Compiler::emit_groups(std::size_t merge, const Groups& groups) {
  Columns columns = {fill(0, number(1, 1).entries[0])};  // each record counts as one
  if (groups.summed != ir::no_node) {
    const Factors summed = factors(groups.summed, factor_depth);
    columns = summed.columns;
    if (summed.count > 1) {
      const auto [first, last] = in_two(summed);
      columns = multiplied(first, last);
    }
  }
  check_labels(groups.one_hot);
  Step step;
  step.code = Code::fold_groups;
  step.node = round_.merges[merge].fold;
  step.merge = merge;
  const auto cells = static_cast<std::size_t>(element_count(unit_shape(step.node)));
  const std::size_t labels = cells / columns.size();
  for (std::size_t label = 0; label < labels; ++label) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      step.places.push_back(static_cast<std::uint32_t>(
          groups.transposed ? c * labels + label : label * columns.size() + c));
    }
  }
  step.args = {operand(groups.labels), {std::move(columns), Operand::none, {}}};
  step.number = tiles_[merge]++;
  add(std::move(step));
}

void Compiler::emit_dots(std::size_t merge, Columns a, Columns b,
                         const std::vector<std::uint32_t>& places) {
  Step step;
  step.code = Code::fold_dot;
  step.node = round_.merges[merge].fold;
  step.merge = merge;
  step.places = places;
  step.args = {{std::move(a), Operand::none, {}}, {std::move(b), Operand::none, {}}};
  add(std::move(step));
}

}  // namespace starfold::engine

#include "starfold/privacy/box.h"

#include <algorithm>
#include <cmath>

#include "starfold/base/error.h"
#include "starfold/ir/forms.h"
#include "starfold/runtime/apply.h"

namespace starfold::privacy {
namespace {

// Rules speak of numbers; what they make of nan is none.
Interval sane(Interval x) { return std::isnan(x.lo) || std::isnan(x.hi) ? Interval() : x; }

// The shape of a cell with one record along its star, where it is known and not too large.
std::optional<Shape> small_shape(const Type& type, const SizeValues& sizes) {
  Shape shape;
  std::int64_t count = 1;
  for (const Dim& dim : type.dims) {
    const std::optional<std::int64_t> size =
        dim.star ? std::optional<std::int64_t>(1) : dim.size.evaluate(sizes);
    if (!size || *size < 1 || *size > most_entries) return std::nullopt;
    count *= *size;
    if (count > most_entries) return std::nullopt;
    shape.push_back(*size);
  }
  return shape;
}

// Where a tensor whose axes are aligned right with an index, and are 1 where it stretches, has its entry.
std::size_t place_in(const Tensor& tensor, const Shape& index) {
  const std::size_t missing = index.size() - tensor.rank();
  std::int64_t place = 0;
  for (std::size_t axis = 0; axis < tensor.rank(); ++axis) {
    const std::int64_t extent = tensor.shape[axis];
    place = place * extent + (extent == 1 ? 0 : index[axis + missing]);
  }
  return static_cast<std::size_t>(place);
}

Interval entry(const Box& box, const Shape& index) { return box.at(place_in(box.lo, index)); }

// Goes to the next index of a shape in row-major order; false after the last.
bool advance(Shape& index, const Shape& shape) {
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (++index[axis] < shape[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

// A box of this shape, entry by entry.
template <typename Entry>
Box fill(const Shape& shape, const Entry& at) {
  Box box{Tensor(shape), Tensor(shape)};
  Shape index(shape.size(), 0);
  std::size_t place = 0;
  do {
    const Interval range = sane(at(index));
    box.lo.data[place] = range.lo;
    box.hi.data[place++] = range.hi;
  } while (advance(index, shape));
  return box;
}

// A box by a map of boxes that stretch to one another, of this many axes; of all entries alike where there are too many.
template <typename Map>
Box map_entries(const std::vector<Box>& operands, std::size_t rank, const Map& map) {
  Shape shape(rank, 1);
  std::int64_t count = 1;
  for (const Box& operand : operands) {
    const Shape& own = operand.lo.shape;
    for (std::size_t axis = 0; axis < own.size(); ++axis) {
      std::int64_t& extent = shape[rank - own.size() + axis];
      extent = std::max(extent, own[axis]);
    }
  }
  for (const std::int64_t extent : shape) count = std::min(count * extent, most_entries + 1);
  const bool alike = count > most_entries;
  if (alike) shape.assign(rank, 1);
  std::vector<Interval> entries(operands.size());
  return fill(shape, [&](const Shape& index) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      entries[i] = alike ? operands[i].hull() : entry(operands[i], index);
    return map(entries);
  });
}

bool folds(const ir::Node& node, std::size_t axis) {
  const auto& axes = node.attrs.axes;
  return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
}

// How many elements of one record one entry is folded from; inf where nobody knows.
double folded(const ir::Node& node, const Type& type, const SizeValues& sizes) {
  const bool matmul = node.op->family == Family::matmul;
  if (!matmul && node.op->family != Family::aggregation) return 1;
  double count = 1;
  for (std::size_t axis = 0; axis < type.rank(); ++axis) {
    if (type.dims[axis].star || !(matmul ? axis + 1 == type.rank() : folds(node, axis))) continue;
    const std::optional<std::int64_t> size = type.dims[axis].size.evaluate(sizes);
    if (!size) return std::numeric_limits<double>::infinity();
    count *= static_cast<double>(*size);
  }
  return count;
}

// Both ends as the meaning has them: for entries that only move, and for values that are known.
std::optional<Box> by_meaning(const ir::Program& program, const ir::Node& node,
                              const std::vector<Box>& operands, const SizeValues& sizes) {
  const bool moves = node.op->kernel == Kernel::view;
  const auto is_point = [](const Box& box) { return box.lo.data == box.hi.data; };
  const bool known = !node.federated() && node.op->meaning &&
                     std::all_of(operands.begin(), operands.end(), is_point);
  if (!(moves || known) || !small_shape(node.type(), sizes)) return std::nullopt;
  std::vector<Box> whole;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto shape = small_shape(program.graph[node.args[i]].type(), sizes);
    if (!shape) return std::nullopt;
    whole.push_back(fill(*shape, [&](const Shape& index) { return entry(operands[i], index); }));
  }
  const auto run = [&](Tensor Box::*end) {
    std::vector<const Tensor*> args;
    for (const Box& box : whole) args.push_back(&(box.*end));
    return apply(program, node, args, sizes).front();
  };
  try {
    const Box box{run(&Box::lo), run(&Box::hi)};
    return fill(box.lo.shape, [&](const Shape& index) { return entry(box, index); });
  } catch (const RunError&) {
    return std::nullopt;  // sizes that do not fit: the run will say so
  }
}

// A fold by a binary map, one element after the other.
std::optional<Box> by_joining(const ir::Program& program, const ir::Node& node, const Box& operand,
                              const SizeValues& sizes) {
  if (node.op->kernel != Kernel::join) return std::nullopt;
  const Op* join = program.signature->find(node.op->join, 2, false);
  const std::optional<Shape> whole = small_shape(program.graph[node.args[0]].type(), sizes);
  if (join == nullptr || !join->range || !whole) return std::nullopt;
  Shape left;
  for (std::size_t axis = 0; axis < whole->size(); ++axis) {
    if (!folds(node, axis)) left.push_back((*whole)[axis]);
  }
  std::vector<std::optional<Interval>> joined(static_cast<std::size_t>(element_count(left)));
  Shape index(whole->size(), 0);
  do {
    std::size_t place = 0;
    for (std::size_t axis = 0; axis < whole->size(); ++axis) {
      if (!folds(node, axis))
        place = place * static_cast<std::size_t>((*whole)[axis]) +
                static_cast<std::size_t>(index[axis]);
    }
    const Interval next = entry(operand, index);
    const Interval both[] = {joined[place].value_or(next), next};
    joined[place] = joined[place] ? sane(join->range(both, 1)) : next;
  } while (advance(index, *whole));
  auto at = joined.begin();
  return fill(left, [&](const Shape&) { return **at++; });
}

// The products that one record adds to a contraction of stars: all of its left entries with all of its right ones.
Box products(const ir::Program& program, const ir::Node& node, const std::vector<Box>& operands) {
  const std::size_t rank = node.type().rank();
  std::vector<Box> sides;
  for (std::size_t i = 0; i < 2; ++i) {
    const Type& type = program.graph[node.args[i]].type();
    if (type.rank() > 2)
      return Box::all(range::times(operands[0].hull(), operands[1].hull()), rank);
    Box side = operands[i];
    Shape shape;
    for (std::size_t axis = 0; axis < type.rank(); ++axis) {
      if (!type.dims[axis].star) shape.push_back(side.lo.shape[axis]);
    }
    // The left entries go down, the right ones across.
    if (i == 0 && rank == 2 && !shape.empty()) shape.push_back(1);
    if (rank == 1 && shape.empty()) shape.push_back(1);
    side.lo.shape = side.hi.shape = shape;
    sides.push_back(std::move(side));
  }
  return map_entries(sides, rank,
                     [](const std::vector<Interval>& x) { return range::times(x[0], x[1]); });
}

// x * (c - x) for x in an interval.
Interval times_rest(Interval x, double c) {
  const auto at = [&](double t) { return t * (c - t); };
  const bool top = x.lo < c / 2 && c / 2 < x.hi;
  Interval product = range::outward(
      {std::min(at(x.lo), at(x.hi)), top ? at(c / 2) : std::max(at(x.lo), at(x.hi))});
  if (x.lo >= 0 && x.hi <= c) product.lo = std::max(product.lo, 0.0);
  return product;
}

Interval squared(Interval x) {
  const double least = x.lo <= 0 && x.hi >= 0 ? 0 : std::min(std::abs(x.lo), std::abs(x.hi));
  const Interval product = range::outward({least * least, x.size() * x.size()});
  return {std::max(product.lo, 0.0), product.hi};
}

// Products whose factors depend on each other: of a value with itself, or with what is left of a number, as m * (1 - m). In a fold the
// factors are put on grids one by one: they are moved into their bounds together, but nan becomes the number nearest to 0 of each.
std::optional<Box> dependent_product(const ir::Program& program, const ir::Node& node,
                                     const std::vector<Box>& operands) {
  const bool folds = node.op->family == Family::matmul && ir::is_fold(program.graph, node) &&
                     node.type().rank() == 0;
  if (!folds && !ir::is_product(node)) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    const ir::Node& other = program.graph[node.args[1 - i]];
    const bool same = node.args[0] == node.args[1];
    const bool rest = ir::is_op(other, "-", 2) && other.args[1] == node.args[i] &&
                      program.graph[other.args[0]].kind == ir::Kind::constant &&
                      program.graph[other.args[0]].type().rank() == 0;
    if (!(same || rest) || !operands[i].hull().bounded()) continue;
    const double c = same ? 0 : program.graph[other.args[0]].value.item();
    const auto product = [&](Interval x) { return same ? squared(x) : times_rest(x, c); };
    const auto nearest = [](Interval x) { return std::clamp(0.0, x.lo, x.hi); };
    const auto folded = [&](Interval x) {
      if (same) return product(x);
      const double at = nearest(x) * nearest({c - x.hi, c - x.lo});
      return range::hull(product(x), range::outward({at, at}));
    };
    if (folds) return Box::all(folded(operands[i].hull()), 0);
    return map_entries({operands[i]}, node.type().rank(),
                       [&](const std::vector<Interval>& x) { return product(x[0]); });
  }
  return std::nullopt;
}

bool is_map(const Op& op) {
  return op.kernel == Kernel::unary || op.kernel == Kernel::binary ||
         op.kernel == Kernel::ternary || op.kernel == Kernel::clip_norm;
}

}  // namespace

Box box_of(const ir::Program& program, const ir::Node& node, const std::vector<Box>& operands,
           const SizeValues& sizes) {
  const std::size_t rank = node.type().rank();
  if (const auto box = by_meaning(program, node, operands, sizes)) return *box;
  if (!node.op->range) return Box::all({}, rank);
  if (const auto box = dependent_product(program, node, operands)) return *box;
  if (is_map(*node.op)) {
    return map_entries(operands, rank,
                       [&](const std::vector<Interval>& x) { return node.op->range(x, 1); });
  }
  if (!operands.empty()) {
    if (const auto box = by_joining(program, node, operands[0], sizes)) return *box;
  }
  if (node.op->family == Family::matmul && ir::is_fold(program.graph, node))
    return products(program, node, operands);
  std::vector<Interval> hulls;
  for (const Box& operand : operands) hulls.push_back(operand.hull());
  const double count =
      node.args.empty() ? 1 : folded(node, program.graph[node.args[0]].type(), sizes);
  // Counts do not depend on what a record holds.
  if (node.op->shape_only && node.op->family == Family::aggregation && std::isfinite(count))
    return Box::all({count, count}, rank);
  return Box::all(sane(node.op->range(hulls, count)), rank);
}

Box either(const Box& a, const Box& b) {
  return map_entries({a, b}, a.lo.rank(),
                     [](const std::vector<Interval>& x) { return range::hull(x[0], x[1]); });
}

Box widths(const Box& box) {
  return fill(box.lo.shape, [&](const Shape& index) {
    const Interval x = entry(box, index);
    return Interval{0, x.hi - x.lo};
  });
}

void clamp(Box& box, const Bound& linf) {
  const std::optional<double> most = linf.number();
  if (!most || !std::isfinite(*most)) return;
  const Interval within = range::outward({-*most, *most});
  for (double& x : box.lo.data) x = std::max(x, within.lo);
  for (double& x : box.hi.data) x = std::min(x, within.hi);
}

}  // namespace starfold::privacy

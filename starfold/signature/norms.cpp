#include "starfold/signature/norms.h"

#include <algorithm>
#include <cmath>

#include "starfold/signature/op.h"

namespace starfold {
namespace {

// The dimension of a type that is aligned with axis `axis` of a result of this rank; null: it has none.
const Dim* aligned(const Type& type, std::size_t axis, std::size_t rank) {
  const std::size_t missing = rank - type.rank();
  return axis < missing ? nullptr : &type.dims[axis - missing];
}

bool folds(const Attrs& attrs, std::size_t axis) {
  return std::find(attrs.axes.begin(), attrs.axes.end(), static_cast<std::int64_t>(axis)) !=
         attrs.axes.end();
}

Norms scaled(const Norms& a, const Bound& by) { return {a.l1 * by, a.l2 * by, a.linf * by}; }

Bound root_of_squares(const Bound& a, const Bound& b) { return sqrt(a * a + b * b); }

// The smallest magnitude in an interval.
double least(Interval x) {
  return x.lo <= 0 && x.hi >= 0 ? 0 : std::min(std::fabs(x.lo), std::fabs(x.hi));
}

// How much a shared matrix can stretch an L2 norm: at most the root of the largest sums of magnitudes along its rows and
// its columns.
Bound matrix_norm(const CellBound& matrix, const Type& type, const SizeValues& sizes) {
  const Tensor& lo = matrix.box.lo;
  if (type.rank() != 2 || type.federated()) return {};
  const Shape& shape = lo.shape;
  const auto extent = [&](std::size_t axis) {
    return shape[axis] == 1 ? Bound::of(type.dims[axis].size, sizes) : Bound(1);
  };
  double row = 0;
  double column = 0;
  std::vector<double> columns(static_cast<std::size_t>(shape[1]));
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    double total = 0;
    for (std::int64_t j = 0; j < shape[1]; ++j) {
      const double size = matrix.box.at(static_cast<std::size_t>(i * shape[1] + j)).size();
      total += size;
      columns[static_cast<std::size_t>(j)] += size;
    }
    row = std::max(row, total);
  }
  for (const double total : columns) column = std::max(column, total);
  return sqrt(Bound(row) * extent(1) * Bound(column) * extent(0));
}

}  // namespace

Box Box::all(Interval entries, std::size_t rank) {
  Box box;
  box.lo = Tensor(Shape(rank, 1), entries.lo);
  box.hi = Tensor(Shape(rank, 1), entries.hi);
  return box;
}

Interval Box::hull() const {
  Interval all = at(0);
  for (std::size_t i = 1; i < lo.data.size(); ++i) all = range::hull(all, at(i));
  return all;
}

Bound NormQuery::entries(const Type& of) const {
  Bound count(1);
  for (const Dim& dim : of.dims) {
    if (!dim.star) count = count * Bound::of(dim.size, sizes);
  }
  return count;
}

Bound NormQuery::repeats(std::size_t i) const {
  Bound count(1);
  for (std::size_t axis = 0; axis < type.rank(); ++axis) {
    const Dim* own = aligned(types[i], axis, type.rank());
    if (type.dims[axis].star || (own != nullptr && *own == type.dims[axis])) continue;
    count = count * Bound::of(type.dims[axis].size, sizes);
  }
  return count;
}

Norms NormQuery::stretched(std::size_t i) const {
  const Bound count = repeats(i);
  return {norms(i).l1 * count, norms(i).l2 * sqrt(count), norms(i).linf};
}

Bound NormQuery::folded() const {
  Bound count(1);
  for (std::size_t axis = 0; axis < types[0].rank(); ++axis) {
    const Dim& dim = types[0].dims[axis];
    if (!dim.star && folds(attrs, axis)) count = count * Bound::of(dim.size, sizes);
  }
  return count;
}

Norms tighter(const Norms& a, const Norms& b) {
  return {tighter(a.l1, b.l1), tighter(a.l2, b.l2), tighter(a.linf, b.linf)};
}

Norms related(Norms norms, const Bound& entries) {
  norms.linf = tighter(norms.linf, tighter(norms.l2, norms.l1));
  norms.l2 = tighter(norms.l2, tighter(norms.l1, sqrt(norms.l1 * norms.linf)));
  norms.l2 = tighter(norms.l2, norms.linf * sqrt(entries));
  norms.l1 = tighter(norms.l1, tighter(norms.l2 * sqrt(entries), norms.linf * entries));
  return norms;
}

Norms norms_of(const Box& box, const Type& type, const SizeValues& sizes) {
  Bound repeats(1);
  for (std::size_t axis = 0; axis < type.rank(); ++axis) {
    if (!type.dims[axis].star && box.lo.shape[axis] == 1)
      repeats = repeats * Bound::of(type.dims[axis].size, sizes);
  }
  double sum = 0;
  double squares = 0;
  double largest = 0;
  for (std::size_t i = 0; i < box.lo.data.size(); ++i) {
    const double size = box.at(i).size();
    sum += size;
    squares += size * size;
    largest = std::max(largest, size);
  }
  return {Bound(sum) * repeats, Bound(std::sqrt(squares)) * sqrt(repeats), Bound(largest)};
}

namespace norms {

Norms no_larger(const NormQuery& q) { return q.stretched(0); }

Norms selected(const NormQuery& q) { return q.norms(0); }

Norms joined(const NormQuery& q) {
  Norms all{0, 0, 0};
  for (const CellBound& operand : q.operands) {
    all.l1 = all.l1 + operand.norms.l1;
    all.l2 = all.l2 + operand.norms.l2 * operand.norms.l2;
    all.linf = max(all.linf, operand.norms.linf);
  }
  all.l2 = sqrt(all.l2);
  return all;
}

Norms plus(const NormQuery& q) {
  const Norms a = q.stretched(0);
  const Norms b = q.stretched(1);
  return {a.l1 + b.l1, a.l2 + b.l2, a.linf + b.linf};
}

// Which entries of a and b meet, no other two do: the norms of all their products bound those of the ones made.
Norms times(const NormQuery& q) {
  const Norms& a = q.norms(0);
  const Norms& b = q.norms(1);
  const Norms wide_a = q.stretched(0);
  const Norms wide_b = q.stretched(1);
  const Norms all{a.l1 * b.l1, a.l2 * b.l2, a.linf * b.linf};
  const Norms as_scale{tighter(wide_a.linf * wide_b.l1, wide_a.l2 * wide_b.l2),
                       tighter(wide_a.linf * wide_b.l2, wide_a.l2 * wide_b.linf), a.linf * b.linf};
  return tighter(tighter(all, as_scale), {wide_a.l1 * wide_b.linf, {}, {}});
}

Norms over(const NormQuery& q) {
  const double divisor = least(q.operands[1].box.hull());
  return divisor > 0 ? scaled(q.stretched(0), Bound(1 / divisor)) : Norms{};
}

// Whole powers are products.
Norms power(const NormQuery& q) {
  const Interval exponent = q.operands[1].box.hull();
  const double k = exponent.lo;
  if (exponent.lo != exponent.hi || k < 1 || k > 64 || k != std::floor(k)) return {};
  const Norms a = q.stretched(0);
  if (k == 1) return a;
  Bound rest(1);
  for (int i = 2; i < static_cast<int>(k); ++i) rest = rest * a.linf;
  return {a.l2 * a.l2 * rest, a.l2 * a.linf * rest, a.linf * a.linf * rest};
}

Norms either(const NormQuery& q) {
  const Norms a = q.stretched(0);
  const Norms b = q.stretched(1);
  return {a.l1 + b.l1, root_of_squares(a.l2, b.l2), max(a.linf, b.linf)};
}

// One condition for the whole cell chooses one of the cells.
Norms where(const NormQuery& q) {
  const Norms a = q.stretched(1);
  const Norms b = q.stretched(2);
  const std::optional<double> conditions = q.entries(q.types[0]).number();
  if (conditions && *conditions == 1)
    return {max(a.l1, b.l1), max(a.l2, b.l2), max(a.linf, b.linf)};
  return {a.l1 + b.l1, root_of_squares(a.l2, b.l2), max(a.linf, b.linf)};
}

// Towards an interval around 0 nothing grows.
Norms clip(const NormQuery& q) {
  const bool inwards = q.operands[1].box.hull().hi <= 0 && q.operands[2].box.hull().lo >= 0;
  return inwards ? q.stretched(0) : Norms{};
}

Norms clip_norm(const NormQuery& q) {
  Norms norms = q.norms(0);
  norms.l2 = tighter(norms.l2, Bound(std::max(q.operands[1].box.hull().hi, 0.0)));
  return norms;
}

Norms square(const NormQuery& q) {
  const Norms& a = q.norms(0);
  return {a.l2 * a.l2, a.l2 * a.linf, a.linf * a.linf};
}

Norms root(const NormQuery& q) {
  const Norms& a = q.norms(0);
  return {{}, sqrt(a.l1), sqrt(a.linf)};
}

Norms outer(const NormQuery& q) {
  const Norms& a = q.norms(0);
  const Norms& b = q.norms(1);
  return {a.l1 * b.l1, a.l2 * b.l2, a.linf * b.linf};
}

// Every entry is an inner product of a row and a column, of one record's numbers where stars meet. Leading axes meet as in
// `times`.
Norms matmul(const NormQuery& q) {
  const Norms& a = q.norms(0);
  const Norms& b = q.norms(1);
  Norms norms{a.l1 * b.l1, a.l2 * b.l2,
              tighter(a.l2 * b.l2, tighter(a.l1 * b.linf, a.linf * b.l1))};
  if (q.types[0].dims.back().star) norms.linf = a.linf * b.linf;
  norms.l2 = tighter(norms.l2, a.l2 * matrix_norm(q.operands[1], q.types[1], q.sizes));
  norms.l2 = tighter(norms.l2, b.l2 * matrix_norm(q.operands[0], q.types[0], q.sizes));
  return norms;
}

Norms one_hot(const NormQuery& q) {
  const Bound labels = q.entries(q.types[0]);
  return {labels, sqrt(labels), 1};
}

Norms softmax(const NormQuery& q) {
  Bound lines(1);
  for (std::size_t axis = 0; axis < q.type.rank(); ++axis) {
    const Dim& dim = q.type.dims[axis];
    if (!dim.star && !folds(q.attrs, axis)) lines = lines * Bound::of(dim.size, q.sizes);
  }
  return {lines, sqrt(lines), 1};
}

Norms lookup(const NormQuery& q) {
  const Bound indices = q.entries(q.types[1]);
  const Norms& table = q.norms(0);
  return {table.l1 * indices, table.l2 * sqrt(indices), table.linf};
}

Norms sum(const NormQuery& q) {
  const Norms& a = q.norms(0);
  return {a.l1, tighter(a.l2 * sqrt(q.folded()), a.l1), tighter(a.l1, a.linf * q.folded())};
}

Norms mean(const NormQuery& q) {
  const Norms& a = q.norms(0);
  const std::optional<double> count = q.folded().number();
  // Without the number of elements: a mean is no larger than its elements.
  if (!count) return {a.l1, a.l2, a.linf};
  return {a.l1 * (1 / *count), a.l2 * (1 / std::sqrt(*count)), a.linf};
}

Norms norm(const NormQuery& q) {
  const Norms& a = q.norms(0);
  return {a.l1, a.l2, a.l2};
}

Norms identity(const NormQuery& q) {
  const Bound n = Bound::of(q.type.dims[0].size, q.sizes);
  return {n, sqrt(n), 1};
}

}  // namespace norms
}  // namespace starfold

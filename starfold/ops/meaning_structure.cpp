// Meanings that move entries about: permutation, matrix product, indexing, joining.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "starfold/base/error.h"
#include "starfold/ops/meaning.h"
#include "starfold/tensor/gather.h"

namespace starfold::meaning {
namespace {

// A stack of matrices: an operand of the matrix product with its vector promoted.
struct Matrices {
  Shape batch;
  std::int64_t rows = 1;
  std::int64_t columns = 1;

  std::int64_t size() const { return rows * columns; }
};

Matrices matrices_of(const Shape& shape, bool left) {
  if (shape.empty()) throw Bug("matmul: an operand is a scalar");
  if (shape.size() == 1) return left ? Matrices{{}, 1, shape[0]} : Matrices{{}, shape[0], 1};
  return {Shape(shape.begin(), shape.end() - 2), shape[shape.size() - 2], shape.back()};
}

// The first entry of each matrix of the stack once broadcast.
std::vector<std::int64_t> starts_of(const Matrices& m, const Shape& batch) {
  std::vector<std::int64_t> starts = places(batch, broadcast_strides(m.batch, batch));
  for (std::int64_t& start : starts) start *= m.size();
  return starts;
}

std::int64_t require_inside(std::int64_t index, std::int64_t length) {
  if (index < 1 || index > length) {
    throw RunError(fmt::format("index {} is outside an axis of length {}", index, length));
  }
  return index;
}

// A shared operand of a federated concatenation, repeated for every record.
Tensor repeated(const Tensor& operand, std::size_t rank, std::size_t record_axis,
                std::int64_t records) {
  Tensor cell = operand;
  if (cell.rank() + 1 == rank) cell.shape.insert(cell.shape.begin() + record_axis, 1);
  if (cell.rank() != rank) throw Bug("concat: operands of different rank");
  Shape shape = cell.shape;
  shape[record_axis] = records;
  return broadcast_to(cell, shape);
}

// The operands of a concatenation, all with the record axis where there is one.
std::vector<Tensor> aligned_operands(const Application& a) {
  std::vector<Tensor> operands;
  const auto fed = std::find_if(a.record_axes.begin(), a.record_axes.end(),
                                [](const auto& axis) { return axis.has_value(); });
  for (std::size_t i = 0; i < a.args.size(); ++i) {
    if (fed == a.record_axes.end() || a.record_axes[i]) {
      operands.push_back(a.arg(i));
    } else {
      const Tensor& model = a.arg(static_cast<std::size_t>(fed - a.record_axes.begin()));
      operands.push_back(repeated(a.arg(i), model.rank(), **fed, model.shape[**fed]));
    }
  }
  return operands;
}

}  // namespace

Results permute(const Application& a) {
  return {permuted(a.arg(0), {a.axes.begin(), a.axes.end()})};
}

// Every entry of the product is fold_sum of the products of its row and column, so that
// x' @ r and sum[*](x * r) mean the same to the last bit.
Results matmul(const Application& a) {
  const Tensor& left = a.arg(0);
  const Tensor& right = a.arg(1);
  const Matrices l = matrices_of(left.shape, true);
  const Matrices r = matrices_of(right.shape, false);
  if (l.columns != r.rows) {
    throw Bug("matmul: " + to_string(left.shape) + " with " + to_string(right.shape));
  }
  Tensor result(broadcast_shapes(l.batch, r.batch), std::vector<double>{});
  const auto l_starts = starts_of(l, result.shape);
  const auto r_starts = starts_of(r, result.shape);
  if (left.rank() > 1) result.shape.push_back(l.rows);
  if (right.rank() > 1) result.shape.push_back(r.columns);
  result.data.reserve(static_cast<std::size_t>(element_count(result.shape)));

  std::vector<double> products(static_cast<std::size_t>(l.columns));
  for (std::size_t b = 0; b < l_starts.size(); ++b) {
    for (std::int64_t i = 0; i < l.rows; ++i) {
      for (std::int64_t j = 0; j < r.columns; ++j) {
        for (std::int64_t k = 0; k < l.columns; ++k) {
          products[k] = left.data[l_starts[b] + i * l.columns + k] *
                        right.data[r_starts[b] + k * r.columns + j];
        }
        result.data.push_back(fold_sum(products));
      }
    }
  }
  return {std::move(result)};
}

Results index(const Application& a) {
  const Tensor& tensor = a.arg(0);
  const Strides own = row_major(tensor.shape);
  Shape shape;
  Strides strides;
  std::int64_t start = 0;
  std::size_t axis = 0;  // of the operand, the next one to be consumed
  const auto keep = [&](std::int64_t length) {
    shape.push_back(length);
    strides.push_back(own[axis++]);
  };
  for (const ConcreteSlice& slice : a.slices) {
    if (slice.kind == Slice::Kind::new_axis) {
      shape.push_back(1);
      strides.push_back(0);
      continue;
    }
    if (axis >= tensor.rank()) throw Bug("index: more positions than axes");
    const std::int64_t length = tensor.shape[axis];
    if (slice.kind == Slice::Kind::all) {
      keep(length);
    } else if (slice.kind == Slice::Kind::index) {
      start += (require_inside(slice.first, length) - 1) * own[axis++];
    } else {
      if (slice.last < slice.first) {
        throw RunError(fmt::format("the range {}:{} is empty", slice.first, slice.last));
      }
      start += (require_inside(slice.first, length) - 1) * own[axis];
      keep(require_inside(slice.last, length) - slice.first + 1);
    }
  }
  while (axis < tensor.rank()) keep(tensor.shape[axis]);
  return {gather(tensor, shape, strides, start)};
}

// The message must not hold an index: it may belong to a record.
RunError indices_outside(std::int64_t outside, std::int64_t length) {
  return RunError(outside == 1
                      ? fmt::format("1 index of a table of length {0} is not a whole number "
                                    "from 1 to {0}",
                                    length)
                      : fmt::format("{1} indices of a table of length {0} are not whole "
                                    "numbers from 1 to {0}",
                                    length, outside));
}

Results lookup(const Application& a) {
  const Tensor& table = a.arg(0);
  const Tensor& indices = a.arg(1);
  const std::int64_t length = table.shape.at(0);
  const std::int64_t row = element_count(Shape(table.shape.begin() + 1, table.shape.end()));
  const auto outside = std::count_if(indices.data.begin(), indices.data.end(),
                                     [&](double i) { return !picks_one_of(i, length); });
  if (outside > 0) throw indices_outside(outside, length);
  Tensor result(indices.shape, std::vector<double>{});
  result.shape.insert(result.shape.end(), table.shape.begin() + 1, table.shape.end());
  for (const double i : indices.data) {
    const auto first = table.data.begin() + (static_cast<std::int64_t>(i) - 1) * row;
    result.data.insert(result.data.end(), first, first + row);
  }
  return {std::move(result)};
}

Results concat(const Application& a) {
  const std::vector<Tensor> operands = aligned_operands(a);
  const auto axis = static_cast<std::size_t>(a.axes.at(0));
  Tensor result(operands.front().shape, std::vector<double>{});
  std::int64_t extent = 0;
  for (const Tensor& operand : operands) {
    Shape expected = result.shape;
    expected.at(axis) = operand.shape.at(axis);
    if (operand.shape != expected) throw Bug("concat: operands of different shape");
    extent += operand.shape[axis];
  }
  result.shape[axis] = extent;
  // Before the axis, index tuples are outer loops; from it on, each operand is one piece of data.
  const std::int64_t outer = element_count({result.shape.begin(), result.shape.begin() + axis});
  for (std::int64_t i = 0; i < outer; ++i) {
    for (const Tensor& operand : operands) {
      const std::int64_t piece = element_count({operand.shape.begin() + axis, operand.shape.end()});
      const auto first = operand.data.begin() + i * piece;
      result.data.insert(result.data.end(), first, first + piece);
    }
  }
  return {std::move(result)};
}

Results stack(const Application& a) {
  Shape shape;
  for (const Tensor* arg : a.args) shape = broadcast_shapes(shape, arg->shape);
  Tensor result(shape, std::vector<double>{});
  for (const Tensor* arg : a.args) {
    const Tensor whole = broadcast_to(*arg, shape);
    result.data.insert(result.data.end(), whole.data.begin(), whole.data.end());
  }
  result.shape.insert(result.shape.begin(), static_cast<std::int64_t>(a.args.size()));
  return {std::move(result)};
}

// With the star first or last, the order of the data is that of the cells in row-major order
// either way, so only the shape changes. A vector [*] counts as star first.
Results reshape(const Application& a) {
  Tensor result = a.arg(0);
  Shape shape = a.sizes;
  if (const auto star = a.record_axes.at(0)) {
    if (*star != 0 && *star + 1 != result.rank()) throw Bug("reshape: the star is in the middle");
    shape.insert(*star == 0 ? shape.begin() : shape.end(), result.shape[*star]);
  }
  require_reasonable(shape, "reshape");
  if (element_count(shape) != result.count()) {
    throw RunError(fmt::format("reshape: {} does not have as many entries as {}",
                               to_string(result.shape), to_string(shape)));
  }
  result.shape = std::move(shape);
  return {std::move(result)};
}

Results records(const Application& a) {
  const auto star = a.record_axes.at(0);
  if (!star) throw Bug("records: the operand is shared");
  return {Tensor::scalar(static_cast<double>(a.arg(0).shape[*star]))};
}

}  // namespace starfold::meaning

#include "starfold/tensor/gather.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "starfold/base/error.h"

namespace starfold {

Strides row_major(const Shape& shape) {
  Strides strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

Strides broadcast_strides(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) {
    throw Bug("cannot broadcast " + to_string(from) + " to " + to_string(to));
  }
  const Strides own = row_major(from);
  const std::size_t padding = to.size() - from.size();
  Strides strides(to.size(), 0);
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] == to[padding + axis]) {
      strides[padding + axis] = own[axis];
    } else if (from[axis] != 1) {
      throw Bug("cannot broadcast " + to_string(from) + " to " + to_string(to));
    }
  }
  return strides;
}

std::vector<std::int64_t> places(const Shape& shape, const Strides& strides, std::int64_t start) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(element_count(shape)));
  Shape index(shape.size(), 0);
  std::int64_t place = start;
  for (std::int64_t& out : result) {
    out = place;
    for (std::size_t axis = shape.size(); axis-- > 0;) {  // the next tuple, last axis fastest
      place += strides[axis];
      if (++index[axis] < shape[axis]) break;
      place -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return result;
}

Tensor gather(const Tensor& source, const Shape& shape, const Strides& strides,
              std::int64_t start) {
  Tensor result(shape, std::vector<double>{});
  const std::vector<std::int64_t> from = places(shape, strides, start);
  result.data.reserve(from.size());
  for (const std::int64_t place : from) result.data.push_back(source.data[place]);
  return result;
}

Tensor permuted(const Tensor& tensor, const std::vector<std::size_t>& order) {
  const Strides own = row_major(tensor.shape);
  Shape shape;
  Strides strides;
  for (const std::size_t axis : order) {
    shape.push_back(tensor.shape.at(axis));
    strides.push_back(own[axis]);
  }
  return gather(tensor, shape, strides);
}

Tensor axis_first(const Tensor& tensor, std::size_t axis) {
  std::vector<std::size_t> order{axis};
  for (std::size_t other = 0; other < tensor.rank(); ++other) {
    if (other != axis) order.push_back(other);
  }
  return permuted(tensor, order);
}

void for_each_line(Tensor& tensor, std::size_t axis,
                   const std::function<void(std::span<double>)>& change) {
  const std::int64_t stride = row_major(tensor.shape).at(axis);
  Shape starts = tensor.shape;
  starts[axis] = 1;
  std::vector<double> line(static_cast<std::size_t>(tensor.shape[axis]));
  for (const std::int64_t start : places(starts, row_major(tensor.shape))) {
    for (std::size_t i = 0; i < line.size(); ++i) line[i] = tensor.data[start + i * stride];
    change(line);
    for (std::size_t i = 0; i < line.size(); ++i) tensor.data[start + i * stride] = line[i];
  }
}

void require_reasonable(const Shape& shape, const char* op) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;  // 16 GiB of doubles
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      throw RunError(fmt::format("{}: the shape {} has a negative size", op, to_string(shape)));
    }
    if (extent > 0 && count > kLimit / extent) {
      throw RunError(
          fmt::format("{}: the shape {} has more than {} entries", op, to_string(shape), kLimit));
    }
    count *= extent;
  }
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace starfold

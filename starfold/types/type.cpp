#include "starfold/types/type.h"

#include <algorithm>

namespace starfold {

std::string Dim::to_string() const { return star ? "*" + record_set : size.to_string(); }

Type Type::shared(std::vector<Size> sizes) {
  Type type;
  type.dims.reserve(sizes.size());
  for (Size& size : sizes) type.dims.push_back(Dim::of(std::move(size)));
  return type;
}

std::optional<std::size_t> Type::record_axis() const {
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis].star) return axis;
  }
  return std::nullopt;
}

std::string Type::to_string() const {
  std::string text = "[";
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (axis > 0) text += ", ";
    text += dims[axis].to_string();
  }
  return text + "]";
}

Type without_axis(const Type& type, std::size_t axis) {
  Type result = type;
  result.dims.erase(result.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return result;
}

Type with_axis(const Type& type, std::size_t axis, Dim dim) {
  Type result = type;
  result.dims.insert(result.dims.begin() + static_cast<std::ptrdiff_t>(axis), std::move(dim));
  return result;
}

namespace {

Clash broadcast_axis(const Dim& a, const Dim& b, Dim& result) {
  if (a == b || b.is_one()) {
    result = a;
    return Clash::none;
  }
  if (a.is_one()) {
    result = b;
    return Clash::none;
  }
  if (a.star && b.star) return Clash::record_sets;
  return a.star || b.star ? Clash::star_against_size : Clash::sizes;
}

}  // namespace

Broadcast broadcast(const Type& a, const Type& b) {
  const Type& longer = a.rank() >= b.rank() ? a : b;
  const Type& shorter = a.rank() >= b.rank() ? b : a;
  const std::size_t padding = longer.rank() - shorter.rank();
  Broadcast result;
  result.type = longer;
  for (std::size_t i = 0; i < shorter.rank(); ++i) {
    const std::size_t axis = padding + i;
    const Clash clash = broadcast_axis(longer.dims[axis], shorter.dims[i], result.type.dims[axis]);
    if (clash != Clash::none) return {clash, {}, axis};
  }
  const auto stars = std::count_if(result.type.dims.begin(), result.type.dims.end(),
                                   [](const Dim& dim) { return dim.star; });
  if (stars > 1) return {Clash::two_stars, {}, *result.type.record_axis()};
  return result;
}

bool broadcast_is_base(const Type& a, const Type& b) {
  if (a.federated() && b.federated()) return a == b;
  if (!a.federated() && !b.federated()) return true;
  const Type& federated = a.federated() ? a : b;
  const Broadcast result = broadcast(a, b);
  return result.clash == Clash::none && result.type == federated;
}

}  // namespace starfold

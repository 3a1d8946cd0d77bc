#include "starfold/merge/monoid.h"

#include <algorithm>

namespace starfold {

namespace {

Shape stored_shape(const Part& part, const Shape& result) {
  Shape shape = extents(part, result);
  if (part.words > 0) shape.push_back(static_cast<std::int64_t>(part.words));
  return shape;
}

}  // namespace

std::vector<Shape> state_shapes(const Monoid& monoid, const Shape& result) {
  std::vector<Shape> shapes;
  for (const Part& part : monoid.parts) shapes.push_back(stored_shape(part, result));
  return shapes;
}

const Monoid& plain_row(const Monoid& monoid) {
  return monoid.plain != nullptr ? *monoid.plain : monoid;
}

MergeState plain_state(const Monoid& monoid, const MergeState& state) {
  return monoid.plain != nullptr ? monoid.to_plain(state) : state;
}

std::int64_t numbers_in(const Monoid& monoid, const MergeState& state) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < state.size(); ++i) {
    const auto words = static_cast<std::int64_t>(monoid.parts[i].words);
    count += state[i].count() / std::max<std::int64_t>(words, 1);
  }
  return count;
}

MergeState zero(const Monoid& monoid, const Shape& result) {
  MergeState state;
  state.reserve(monoid.parts.size());
  for (const Part& part : monoid.parts)
    state.emplace_back(stored_shape(part, result), part.words > 0 ? 0 : part.zero);
  return state;
}

std::string invalid_state(const Monoid& monoid, const MergeState& state, const Shape& result) {
  if (state.size() != monoid.parts.size()) return "it has the wrong number of parts";
  for (std::size_t i = 0; i < state.size(); ++i) {
    const Part& part = monoid.parts[i];
    if (state[i].shape != stored_shape(part, result) ||
        state[i].count() != element_count(state[i].shape))
      return "a part has the wrong shape";
    if (part.words == 0 && part.valid != nullptr &&
        !std::all_of(state[i].data.begin(), state[i].data.end(), part.valid))
      return std::string(part.otherwise);
  }
  return monoid.invalid == nullptr ? std::string() : std::string(monoid.invalid(state));
}

}  // namespace starfold

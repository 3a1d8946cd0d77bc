#include "starfold/runtime/engine.h"

#include <algorithm>
#include <cmath>

#include "starfold/base/error.h"
#include "starfold/runtime/apply.h"
#include "starfold/runtime/compensated_sum.h"

namespace starfold {
namespace {

using ir::Kind;
using ir::NodeId;

// Records first, first + count - 1 along an axis.
Tensor slice_records(const Tensor& whole, std::size_t axis, std::int64_t first,
                     std::int64_t count) {
  std::int64_t outer = 1;
  for (std::size_t k = 0; k < axis; ++k) outer *= whole.shape[k];
  std::int64_t inner = 1;
  for (std::size_t k = axis + 1; k < whole.rank(); ++k) inner *= whole.shape[k];
  Tensor part;
  part.shape = whole.shape;
  part.shape[axis] = count;
  part.data.clear();
  part.data.reserve(static_cast<std::size_t>(element_count(part.shape)));
  for (std::int64_t o = 0; o < outer; ++o) {
    const auto begin = whole.data.begin() + (o * whole.shape[axis] + first) * inner;
    part.data.insert(part.data.end(), begin, begin + count * inner);
  }
  return part;
}

// For each entry of a tensor of this shape, its place in the result of folding `axes`.
std::vector<std::size_t> folded_places(const Shape& shape, const std::vector<std::int64_t>& axes) {
  std::vector<std::size_t> places(1, 0);
  std::size_t stride = 1;
  for (std::size_t k = shape.size(); k-- > 0;) {
    const bool folded =
        std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(k)) != axes.end();
    const auto extent = static_cast<std::size_t>(shape[k]);
    std::vector<std::size_t> longer;
    longer.reserve(places.size() * extent);
    for (std::size_t i = 0; i < extent; ++i) {
      for (const std::size_t place : places) longer.push_back(place + (folded ? 0 : i * stride));
    }
    places = std::move(longer);
    if (!folded) stride *= extent;
  }
  return places;
}

// Count, mean and squared deviations of a block, in two passes.
MergeState fold_moments(const Tensor& block, const std::vector<std::int64_t>& axes,
                        const Shape& result) {
  MergeState state = zero(Monoid::moments, result);
  const double n = static_cast<double>(block.count()) / static_cast<double>(element_count(result));
  const std::vector<std::size_t> places = folded_places(block.shape, axes);
  std::vector<CompensatedSum> sums(state[1].data.size());
  for (std::size_t j = 0; j < places.size(); ++j) sums[places[j]].add(block.data[j]);
  state[0].data[0] = n;
  for (std::size_t i = 0; i < sums.size(); ++i) state[1].data[i] = sums[i].value() / n;
  for (std::size_t j = 0; j < places.size(); ++j) {
    const double deviation = block.data[j] - state[1].data[places[j]];
    state[2].data[places[j]] += deviation * deviation;
  }
  return state;
}

MergeState fold_logsumexp(const Tensor& block, const std::vector<std::int64_t>& axes,
                          const Shape& result) {
  MergeState state = zero(Monoid::logsumexp, result);
  const std::vector<std::size_t> places = folded_places(block.shape, axes);
  for (std::size_t j = 0; j < places.size(); ++j) {
    double& top = state[0].data[places[j]];
    if (block.data[j] > top || std::isnan(block.data[j])) top = block.data[j];
  }
  for (std::size_t j = 0; j < places.size(); ++j) {
    const double top = state[0].data[places[j]];
    const double x = block.data[j];
    // An infinite maximum is the answer itself; x - top would be nan.
    state[1].data[places[j]] += x == top && std::isinf(top) ? (top > 0 ? 1 : 0) : std::exp(x - top);
  }
  return state;
}

}  // namespace

class Engine::Impl {
 public:
  Impl(std::shared_ptr<const Plan> plan, SizeValues sizes, const Client& client,
       EngineOptions options)
      : plan_(std::move(plan)),
        sizes_(std::move(sizes)),
        arrays_(client.arrays),
        records_(record_counts(plan_->program, client)),
        options_(options) {}

  std::vector<MergeState> encode(const Round& round, const std::map<NodeId, Tensor>& received) {
    Values shared;
    for (const auto& [id, value] : received) shared[id] = {value};
    for (const NodeId id : round.constants) shared[id] = constant(id, shared);
    std::vector<MergeState> states;
    for (const Merge& merge : round.merges)
      states.push_back(zero(merge.monoid, result_shape(merge)));
    for (const auto& [record_set, count] : records_) {
      for (std::int64_t first = 0; first < count; first += options_.block_records) {
        const std::int64_t length = std::min(options_.block_records, count - first);
        encode_block(round, record_set, first, length, shared, states);
      }
    }
    return states;
  }

 private:
  using Values = std::map<NodeId, std::vector<Tensor>>;

  const ir::Node& node(NodeId id) const { return plan_->program.graph[id]; }
  Shape result_shape(const Merge& merge) const {
    return cell_shape(node(merge.fold).type(), sizes_);
  }

  std::vector<Tensor> constant(NodeId id, const Values& values) const {
    const ir::Node& n = node(id);
    if (n.kind == Kind::constant || n.kind == Kind::size) return {leaf_value(n, sizes_)};
    if (n.kind == Kind::project) return {values.at(n.args[0])[n.index]};
    return applied(n, values, values);
  }

  std::vector<Tensor> applied(const ir::Node& n, const Values& shared, const Values& block) const {
    std::vector<const Tensor*> args;
    for (const NodeId arg : n.args)
      args.push_back(&(node(arg).federated() ? block : shared).at(arg).front());
    return apply(plan_->program, n, std::move(args), sizes_);
  }

  void encode_block(const Round& round, const std::string& record_set, std::int64_t first,
                    std::int64_t length, const Values& shared,
                    std::vector<MergeState>& states) const {
    Values block;
    for (const NodeId id : round.encoders) {
      const ir::Node& n = node(id);
      if (n.type().record_set() != record_set) continue;
      if (n.kind == Kind::input) {
        const ir::Input& input = plan_->program.inputs[n.index];
        block[id] = {
            slice_records(arrays_.at(input.name), *input.type.record_axis(), first, length)};
      } else {
        block[id] = applied(n, shared, block);
      }
    }
    for (std::size_t i = 0; i < round.merges.size(); ++i) {
      const Merge& merge = round.merges[i];
      const ir::Node& fold = node(merge.fold);
      if (record_set_of(fold) != record_set) continue;
      starfold::merge(merge.monoid, states[i], fold_block(merge, fold, shared, block));
    }
  }

  const std::string& record_set_of(const ir::Node& fold) const {
    for (const NodeId arg : fold.args) {
      if (node(arg).federated()) return node(arg).type().record_set();
    }
    throw Bug("a fold without a federated operand");
  }

  MergeState fold_block(const Merge& merge, const ir::Node& fold, const Values& shared,
                        const Values& block) const {
    const Tensor& operand = block.count(fold.args[0]) != 0 ? block.at(fold.args[0]).front()
                                                           : shared.at(fold.args[0]).front();
    if (merge.monoid == Monoid::moments)
      return fold_moments(operand, fold.attrs.axes, result_shape(merge));
    if (merge.monoid == Monoid::logsumexp)
      return fold_logsumexp(operand, fold.attrs.axes, result_shape(merge));
    return applied(fold, shared, block);
  }

  std::shared_ptr<const Plan> plan_;
  SizeValues sizes_;
  Arrays arrays_;
  std::map<std::string, std::int64_t> records_;
  EngineOptions options_;
};

Engine::Engine(std::shared_ptr<const Plan> plan, SizeValues sizes, const Client& client,
               EngineOptions options)
    : impl_(std::make_unique<Impl>(std::move(plan), std::move(sizes), client, options)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

std::vector<MergeState> Engine::encode(const Round& round,
                                       const std::map<NodeId, Tensor>& received) {
  return impl_->encode(round, received);
}

}  // namespace starfold

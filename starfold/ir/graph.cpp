#include <algorithm>
#include <bit>
#include <functional>
#include <string_view>

#include "starfold/ir/ir.h"

namespace starfold::ir {
namespace {

// Neighbouring numbers, as nodes and their operands are, must not meet in one bucket.
void mix(std::size_t& hash, std::size_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
  hash ^= hash >> 32U;
}

std::size_t hash_of(const Node& node) {
  std::size_t hash = static_cast<std::size_t>(node.kind);
  mix(hash, std::hash<const void*>{}(node.op));
  mix(hash, node.index);
  mix(hash, node.slot);
  for (const NodeId arg : node.args) mix(hash, arg);
  for (const std::int64_t axis : node.attrs.axes) mix(hash, static_cast<std::size_t>(axis) + 1);
  for (const Size& size : node.attrs.sizes) mix(hash, size.hash());
  for (const Slice& slice : node.attrs.slices) {
    mix(hash, static_cast<std::size_t>(slice.kind));
    mix(hash, slice.first.hash());
    mix(hash, slice.last.hash());
  }
  if (node.kind == Kind::size) mix(hash, node.size.hash());
  if (node.block) mix(hash, std::hash<std::string>{}(node.block->text));
  if (node.kind == Kind::constant) {
    for (const double value : node.value.data) mix(hash, std::bit_cast<std::uint64_t>(value));
  }
  return hash;
}

// Bitwise, so that nan equals itself and 0 differs from -0.
bool same_value(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape &&
         std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end(),
                    [](double x, double y) {
                      return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
                    });
}

// Whether an application may refuse the values or the sizes of a run. Positions of an indexing are sure where they
// lie inside the axes whatever the sizes turn out to be. A loop may refuse its count.
bool may_refuse(const std::vector<Node>& nodes, const Node& node) {
  if (node.kind == Kind::loop_result) return true;
  if (node.kind == Kind::local) return node.block->refuses;
  if (node.kind != Kind::apply || node.op->refuses) return node.kind == Kind::apply;
  std::size_t axis = 0;
  for (const Slice& slice : node.attrs.slices) {
    if (slice.kind == Slice::Kind::new_axis) continue;
    const std::vector<Dim>& dims = nodes.at(node.args.at(0)).type().dims;
    const Size& size = dims.at(axis++).size;
    if (slice.kind == Slice::Kind::all) continue;
    const bool known = slice.first.is_constant() && slice.last.is_constant() && size.is_constant();
    const bool rest = slice.first == Size(1) && slice.last == size;
    if (!known && !rest) return true;
  }
  return false;
}

}  // namespace

bool same(const Node& a, const Node& b) {
  return a.kind == b.kind && a.op == b.op && a.index == b.index && a.slot == b.slot &&
         a.args == b.args && a.attrs == b.attrs && a.size == b.size && a.types == b.types &&
         same_value(a.value, b.value) &&
         (a.block == b.block || (a.block && b.block && a.block->text == b.block->text));
}

NodeId Graph::add(Node node) {
  const std::size_t hash = hash_of(node);
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto found = begin; found != end; ++found) {
    if (same(nodes_[found->second], node)) return found->second;
  }
  const auto id = static_cast<NodeId>(nodes_.size());
  const auto refuses = [&](NodeId arg) { return arg < id && can_refuse(arg); };
  refuses_.push_back(
      may_refuse(nodes_, node) || std::any_of(node.args.begin(), node.args.end(), refuses) ? 1 : 0);
  nodes_.push_back(std::move(node));
  by_hash_.emplace(hash, id);
  return id;
}

bool is_op(const Node& node, std::string_view name, std::size_t arity) {
  return node.kind == Kind::apply && node.op->standard && node.op->name == name &&
         node.args.size() == arity;
}

bool is_ones(const Graph& graph, NodeId id) {
  return graph[id].kind == Kind::apply && graph[id].op->fill == 1 && !graph.can_refuse(id);
}

bool is_fold(const Graph& graph, const Node& node) {
  // A pass over batches reads records even where it takes none.
  if (node.kind == Kind::local) return node.block->batches;
  return node.kind == Kind::apply && !node.federated() &&
         std::any_of(node.args.begin(), node.args.end(),
                     [&](NodeId arg) { return graph[arg].federated(); });
}

}  // namespace starfold::ir

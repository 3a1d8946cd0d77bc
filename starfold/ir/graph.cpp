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

}  // namespace

bool same(const Node& a, const Node& b) {
  return a.kind == b.kind && a.op == b.op && a.index == b.index && a.slot == b.slot &&
         a.args == b.args && a.attrs == b.attrs && a.size == b.size && a.types == b.types &&
         same_value(a.value, b.value);
}

NodeId Graph::add(Node node) {
  const std::size_t hash = hash_of(node);
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto found = begin; found != end; ++found) {
    if (same(nodes_[found->second], node)) return found->second;
  }
  const auto id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back(std::move(node));
  by_hash_.emplace(hash, id);
  return id;
}

bool is_op(const Node& node, std::string_view name, std::size_t arity) {
  return node.kind == Kind::apply && node.op->standard && node.op->name == name &&
         node.args.size() == arity;
}

bool is_fold(const Graph& graph, const Node& node) {
  return node.kind == Kind::apply && !node.federated() &&
         std::any_of(node.args.begin(), node.args.end(),
                     [&](NodeId arg) { return graph[arg].federated(); });
}

}  // namespace starfold::ir

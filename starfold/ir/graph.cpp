#include <algorithm>
#include <bit>
#include <functional>
#include <string_view>

#include "starfold/ir/ir.h"

namespace starfold::ir {
namespace {

void mix(std::size_t& hash, std::size_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ULL + (hash << 6U) + (hash >> 2U);
}

std::size_t hash_of(const Size& size) { return std::hash<std::string>{}(size.to_string()); }

std::size_t hash_of(const Node& node) {
  std::size_t hash = static_cast<std::size_t>(node.kind);
  mix(hash, std::hash<const void*>{}(node.op));
  mix(hash, node.index);
  mix(hash, node.slot);
  for (const NodeId arg : node.args) mix(hash, arg);
  for (const std::int64_t axis : node.attrs.axes) mix(hash, static_cast<std::size_t>(axis) + 1);
  for (const Size& size : node.attrs.sizes) mix(hash, hash_of(size));
  for (const Slice& slice : node.attrs.slices) {
    mix(hash, static_cast<std::size_t>(slice.kind));
    mix(hash, hash_of(slice.first));
    mix(hash, hash_of(slice.last));
  }
  if (node.kind == Kind::size) mix(hash, hash_of(node.size));
  if (node.kind == Kind::constant) {
    for (const double value : node.value.data) mix(hash, std::bit_cast<std::uint64_t>(value));
  }
  return hash;
}

// Bitwise, so that nan equals itself and 0 differs from -0.
bool same_value(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape &&
         std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end(), [](double x, double y) {
           return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
         });
}

}  // namespace

bool same(const Node& a, const Node& b) {
  return a.kind == b.kind && a.op == b.op && a.index == b.index && a.slot == b.slot && a.args == b.args &&
         a.attrs == b.attrs && a.size == b.size && a.types == b.types && same_value(a.value, b.value);
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

namespace {

using Loops = std::vector<LoopId>;

void merge_into(Loops& into, const Loops& from) {
  Loops merged;
  std::set_union(into.begin(), into.end(), from.begin(), from.end(), std::back_inserter(merged));
  into = std::move(merged);
}

}  // namespace

std::vector<std::vector<LoopId>> loop_dependence(const Program& program) {
  std::vector<Loops> depends(program.graph.size());
  std::vector<std::optional<Loops>> of_loop(program.loops.size());
  const auto dependence_of_loop = [&](LoopId id) -> const Loops& {
    if (!of_loop[id]) {
      const Loop& loop = program.loops[id];
      Loops all = depends[loop.count];
      if (loop.until != no_node) merge_into(all, depends[loop.until]);
      for (const Carried& carried : loop.carried) {
        merge_into(all, depends[carried.init]);
        merge_into(all, depends[carried.next]);
      }
      for (const Trace& trace : program.traces) {
        // A traced loop records every time it runs, so it stays where it was written.
        LoopId at = trace.loop;
        while (at != no_loop && at != id) at = program.loops[at].parent;
        if (at == id) {
          for (LoopId outer = program.loops[id].parent; outer != no_loop; outer = program.loops[outer].parent) {
            merge_into(all, {outer});
          }
        }
      }
      std::erase_if(all, [&](LoopId l) {
        for (LoopId at = l; at != no_loop; at = program.loops[at].parent) {
          if (at == id) return true;
        }
        return false;
      });
      of_loop[id] = std::move(all);
    }
    return *of_loop[id];
  };
  for (NodeId id = 0; id < program.graph.size(); ++id) {
    const Node& node = program.graph[id];
    if (node.kind == Kind::loop_param) depends[id] = {node.index};
    if (node.kind == Kind::loop_result) depends[id] = dependence_of_loop(node.index);
    for (const NodeId arg : node.args) merge_into(depends[id], depends[arg]);
  }
  return depends;
}

}  // namespace starfold::ir

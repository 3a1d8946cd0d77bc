// The steps that compute federated values, one function per kind of operation.
#include <algorithm>

#include "starfold/base/error.h"
#include "starfold/ops/quantize.h"
#include "starfold/runtime/steps/compiler.h"

namespace starfold::engine {
namespace {

using ir::Kind;
using ir::NodeId;

}  // namespace

void Compiler::emit(NodeId id) {
  const ir::Node& n = node(id);
  if (roles_[id] == Role::array) return emit_array(id);
  if (n.kind != Kind::apply) throw Bug("an encoder that is no operation");
  if (!suits_kernel(id)) return emit_general(id);
  if (n.op == &quantize_op()) return emit_quantize(id);
  switch (n.op->kernel) {
    case Kernel::unary:
      return emit_unary(id);
    case Kernel::binary:
      return emit_binary(id);
    case Kernel::ternary:
      return emit_ternary(id);
    case Kernel::view:
      return emit_view(id);
    case Kernel::constant:
      return emit_filled(id, *n.op->fill);
    case Kernel::count:
      return emit_filled(id, static_cast<double>(element_count(unit_shape(n.args[0]))) /
                                 static_cast<double>(element_count(unit_shape(id))));
    case Kernel::join:
    case Kernel::mean:
      return emit_join(id);
    case Kernel::argmax:
      return emit_argmax(id);
    case Kernel::logsumexp:
      return emit_lines(id, Code::logsumexp);
    case Kernel::softmax:
      return emit_lines(id, Code::softmax);
    case Kernel::log_softmax:
      return emit_lines(id, Code::log_softmax);
    case Kernel::outer:
      return emit_outer(id);
    case Kernel::one_hot:
      return emit_one_hot(id);
    case Kernel::matmul:
      return emit_matmul(id);
    case Kernel::clip_norm:
      return emit_clip_norm(id);
    case Kernel::lookup:
      return emit_lookup(id);
    case Kernel::general:
      return emit_general(id);
  }
}

// Some kernels want operands that are the same for all records, or decide by all records of a block: at clients inside a
// block each is to compute what it would compute alone.
bool Compiler::suits_kernel(NodeId id) const {
  const ir::Node& n = node(id);
  if (as_one_alone(id)) {
    // Those that sum, or compute more than one thing, do it in an order of their own.
    switch (n.op->kernel) {
      case Kernel::unary:
      case Kernel::binary:
      case Kernel::ternary:
      case Kernel::view:
      case Kernel::constant:
      case Kernel::count:
      case Kernel::outer:
      case Kernel::one_hot:
        return true;
      default:
        return false;
    }
  }
  if (n.op == &quantize_op() || n.op->kernel == Kernel::clip_norm) return n.federated();
  if (n.op->kernel == Kernel::lookup) return !by_record(n.args[0]) && by_record(n.args[1]);
  return true;
}

void Compiler::emit_array(NodeId id) {
  const auto cells = static_cast<std::size_t>(element_count(unit_shape(id)));
  const auto found = std::find(tables_.inputs.begin(), tables_.inputs.end(), id);
  const auto number = static_cast<std::uint32_t>(found - tables_.inputs.begin());
  if (found == tables_.inputs.end()) {
    tables_.inputs.push_back(id);
    tables_.input_columns.push_back(cells);
  }
  for (std::uint32_t cell = 0; cell < cells; ++cell)
    values_[id].push_back({first_input + number, cell});
}

void Compiler::emit_unary(NodeId id) {
  const ir::Node& n = node(id);
  Step step;
  step.code = Code::unary;
  step.node = id;
  step.args = {operand(n.args[0])};
  step.map1 = n.op->map1;
  step.unary = kernels::unary(as_one_alone(id) ? std::string_view() : n.op->name, exact_);
  step.out = values_[id] = fresh(step.args[0].columns.size());
  add(std::move(step));
}

void Compiler::emit_binary(NodeId id) {
  const ir::Node& n = node(id);
  Step step;
  step.code = Code::binary;
  step.node = id;
  step.args = {operand(n.args[0], broadcast_map(n.args[0], id)),
               operand(n.args[1], broadcast_map(n.args[1], id))};
  step.map2 = n.op->map2;
  step.binary = kernels::binary(as_one_alone(id) ? std::string_view() : n.op->name);
  step.out = values_[id] = fresh(static_cast<std::size_t>(element_count(unit_shape(id))));
  add(std::move(step));
}

void Compiler::emit_ternary(NodeId id) {
  const ir::Node& n = node(id);
  Step step;
  step.code = Code::ternary;
  step.node = id;
  for (const NodeId arg : n.args) {
    Operand part = operand(arg, broadcast_map(arg, id));
    for (const std::uint32_t entry : part.entries) part.columns.push_back(fill(part.shared, entry));
    step.args.push_back({std::move(part.columns), Operand::none, {}});
  }
  step.ternary = kernels::ternary(n.op->name);
  step.out = values_[id] = fresh(static_cast<std::size_t>(element_count(unit_shape(id))));
  add(std::move(step));
}

void Compiler::emit_outer(NodeId id) {
  const ir::Node& n = node(id);
  const auto p = static_cast<std::uint32_t>(element_count(unit_shape(n.args[0])));
  const auto q = static_cast<std::uint32_t>(element_count(unit_shape(n.args[1])));
  CellMap left;
  CellMap right;
  for (std::uint32_t i = 0; i < p; ++i) {
    for (std::uint32_t j = 0; j < q; ++j) {
      left.push_back(i);
      right.push_back(j);
    }
  }
  Step step;
  step.code = Code::binary;
  step.node = id;
  step.args = {operand(n.args[0], left), operand(n.args[1], right)};
  step.binary = kernels::binary("*");
  step.out = values_[id] = fresh(left.size());
  add(std::move(step));
}

void Compiler::check_labels(NodeId id) {
  if (!checked_.insert(id).second) return;
  const ir::Node& n = node(id);
  Step step;
  step.code = Code::labels;
  step.node = id;
  step.args = {operand(n.args[0])};
  step.terms =
      static_cast<std::size_t>(element_count(unit_shape(id))) / step.args[0].columns.size();
  add(std::move(step));
}

// Column j of a label is whether it equals j.
void Compiler::emit_one_hot(NodeId id) {
  check_labels(id);
  const ir::Node& n = node(id);
  const auto cells = static_cast<std::uint32_t>(element_count(unit_shape(n.args[0])));
  const std::size_t labels = static_cast<std::size_t>(element_count(unit_shape(id))) / cells;
  Step step;
  step.code = Code::binary;
  step.node = id;
  CellMap map;
  Operand wanted;
  for (std::uint32_t cell = 0; cell < cells; ++cell) {
    for (std::size_t label = 1; label <= labels; ++label) {
      map.push_back(cell);
      wanted.entries.push_back(number(static_cast<double>(label), 1).entries[0]);
    }
  }
  wanted.shared = 0;
  step.args = {operand(n.args[0], map), std::move(wanted)};
  step.binary = kernels::binary("==");
  step.out = values_[id] = fresh(map.size());
  add(std::move(step));
}

void Compiler::emit_filled(NodeId id, double value) {
  const auto cells = static_cast<std::size_t>(element_count(unit_shape(id)));
  values_[id] = Columns(cells, fill(0, number(value, 1).entries[0]));
}

void Compiler::emit_view(NodeId id) {
  const ir::Node& n = node(id);
  Columns all;
  std::vector<std::uint32_t> offsets;
  for (const NodeId arg : n.args) {
    offsets.push_back(static_cast<std::uint32_t>(all.size()));
    Operand part = operand(arg);
    for (const std::uint32_t entry : part.entries) part.columns.push_back(fill(part.shared, entry));
    all.insert(all.end(), part.columns.begin(), part.columns.end());
  }
  Columns& columns = values_[id];
  for (const std::uint32_t cell : view_map(n, std::move(offsets))) columns.push_back(all[cell]);
}

void Compiler::emit_matmul(NodeId id) {
  const ir::Node& n = node(id);
  const MatmulMap map = matmul_map(unit_shape(n.args[0]), unit_shape(n.args[1]));
  const auto spread = [&](const CellMap& starts, std::size_t stride) {
    CellMap all;
    all.reserve(starts.size() * map.terms);
    for (const std::uint32_t start : starts) {
      for (std::size_t k = 0; k < map.terms; ++k)
        all.push_back(static_cast<std::uint32_t>(start + k * stride));
    }
    return all;
  };
  const bool left_federated = by_record(n.args[0]);
  const bool right_federated = by_record(n.args[1]);
  Step step;
  step.node = id;
  step.terms = map.terms;
  if (left_federated && right_federated) {
    step.code = Code::pair_sum;
    step.args = {operand(n.args[0], spread(map.left, map.left_stride)),
                 operand(n.args[1], spread(map.right, map.right_stride))};
  } else {
    step.code = Code::combine;
    const std::size_t federated = left_federated ? 0 : 1;
    CellMap starts = left_federated ? map.left : map.right;
    // Usually all results combine the same columns.
    if (std::all_of(starts.begin(), starts.end(),
                    [&](std::uint32_t start) { return start == starts[0]; }))
      starts.resize(1);
    step.args = {operand(n.args[federated],
                         spread(starts, left_federated ? map.left_stride : map.right_stride)),
                 operand(n.args[1 - federated], left_federated ? map.right : map.left)};
    step.stride = left_federated ? map.right_stride : map.left_stride;
  }
  step.out = values_[id] = fresh(map.left.size());
  add(std::move(step));
}

// Along ordinary axes: columns are joined one by one.
void Compiler::emit_join(NodeId id) {
  if (const std::optional<Distances> parts = distances(id))
    return emit_distances(id, *parts, Code::distances);
  const ir::Node& n = node(id);
  const std::vector<std::uint32_t> places = folded_places(unit_shape(n.args[0]), n.attrs.axes);
  const auto results = static_cast<std::size_t>(element_count(unit_shape(id)));
  Step step;
  step.code = Code::accumulate;
  step.node = id;
  step.terms = places.size() / results;
  step.truth = n.op->truth;
  step.mean = n.op->kernel == Kernel::mean;
  step.binary = kernels::binary(n.op->join);
  step.args = {operand(n.args[0], by_place(places))};
  step.out = values_[id] = fresh(results);
  add(std::move(step));
}

void Compiler::emit_argmax(NodeId id) {
  if (const std::optional<Distances> parts = nearest(id))
    return emit_distances(id, *parts, Code::nearest);
  emit_lines(id, negated(node(id).args[0]) ? Code::argmin : Code::argmax);
}

void Compiler::emit_distances(NodeId id, const Distances& parts, Code code) {
  Step step;
  step.code = code;
  step.node = id;
  step.terms = parts.terms;
  step.stride = parts.stride;
  step.args = {operand(parts.x, parts.columns), operand(parts.points, parts.starts)};
  step.out = values_[id] = fresh(static_cast<std::size_t>(element_count(unit_shape(id))));
  add(std::move(step));
}

// Along an ordinary axis: lines of columns.
void Compiler::emit_lines(NodeId id, Code code) {
  const ir::Node& n = node(id);
  const Shape shape = unit_shape(n.args[0]);
  const NodeId arg = code == Code::argmin ? node(n.args[0]).args[0] : n.args[0];
  const bool position = code == Code::argmax || code == Code::argmin;
  Step step;
  step.code = code;
  step.node = id;
  step.terms = 1;
  for (const std::int64_t axis : n.attrs.axes)
    step.terms *= static_cast<std::size_t>(shape[static_cast<std::size_t>(axis)]);
  const CellMap lines = by_place(folded_places(shape, n.attrs.axes));
  step.args = {operand(arg, lines)};
  if (!position) step.work = fresh(3);
  const Columns out = values_[id] = fresh(static_cast<std::size_t>(element_count(unit_shape(id))));
  if (code == Code::logsumexp || position) {
    step.out = out;
  } else {
    for (const std::uint32_t cell : lines) step.out.push_back(out[cell]);
  }
  add(std::move(step));
}

void Compiler::emit_clip_norm(NodeId id) {
  const ir::Node& n = node(id);
  Step step;
  step.code = Code::clip_norm;
  step.node = id;
  step.args = {operand(n.args[0]), whole(n.args[1])};
  step.work = fresh(1);
  step.out = values_[id] = fresh(step.args[0].columns.size());
  add(std::move(step));
}

void Compiler::emit_quantize(NodeId id) {
  const ir::Node& n = node(id);
  Step step;
  step.code = Code::quantize;
  step.node = id;
  step.args = {operand(n.args[0]),
               whole(n.args[1]),
               operand(n.args[2], broadcast_map(n.args[2], id)),
               operand(n.args[3], broadcast_map(n.args[3], id)),
               whole(n.args[4]),
               whole(n.args[5])};
  step.work = fresh(2);
  step.out = values_[id] = fresh(step.args[0].columns.size());
  add(std::move(step));
}

void Compiler::emit_lookup(NodeId id) {
  const ir::Node& n = node(id);
  Step step;
  step.code = Code::lookup;
  step.node = id;
  step.args = {whole(n.args[0]), operand(n.args[1])};
  step.out = values_[id] = fresh(static_cast<std::size_t>(element_count(unit_shape(id))));
  step.terms = step.out.size() / step.args[1].columns.size();
  add(std::move(step));
}

void Compiler::emit_general(NodeId id) {
  Step step;
  step.code = Code::general;
  step.node = id;
  for (const NodeId arg : node(id).args) step.args.push_back(whole(arg));
  step.out = values_[id] = fresh(static_cast<std::size_t>(element_count(unit_shape(id))));
  add(std::move(step));
}

}  // namespace starfold::engine

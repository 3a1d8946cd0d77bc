#include "starfold/privacy/bounds.h"

#include <algorithm>
#include <cmath>

#include "starfold/privacy/box.h"

namespace starfold::privacy {
namespace {

using ir::Kind;
using ir::NodeId;

constexpr std::size_t most_origins = 4;

// One pass for each state that another one waits for; longer chains are rare.
constexpr int most_passes = 4;

CellBound unknown(const Type& type) { return {Box::all({}, type.rank()), {}}; }

Bound entries_of(const Type& type, const SizeValues& sizes) {
  Bound count(1);
  for (const Dim& dim : type.dims) {
    if (!dim.star) count = count * Bound::of(dim.size, sizes);
  }
  return count;
}

CellBound of_tensor(const Tensor& value) {
  CellBound bound{Box::all({}, value.rank()), {}};
  double sum = 0;
  double squares = 0;
  Interval all{0, 0};
  for (std::size_t i = 0; i < value.data.size(); ++i) {
    const double x = value.data[i];
    if (std::isnan(x)) return bound;
    all = i == 0 ? Interval{x, x} : range::hull(all, {x, x});
    sum += std::fabs(x);
    squares += x * x;
  }
  const bool small = value.count() <= most_entries && value.count() > 0;
  bound.box = small ? Box{value, value} : Box::all(all, value.rank());
  bound.norms = {sum, std::sqrt(squares), all.size()};
  return bound;
}

CellBound either(const CellBound& a, const CellBound& b) {
  return {
      privacy::either(a.box, b.box),
      {max(a.norms.l1, b.norms.l1), max(a.norms.l2, b.norms.l2), max(a.norms.linf, b.norms.linf)}};
}

bool has_shape(const Type& type, const Shape& shape, const SizeValues& sizes) {
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (type.dims[axis].size.evaluate(sizes) != shape[axis]) return false;
  }
  return true;
}

bool is_smaller(const Bound& a, const Bound& b) { return at_most(a, b) && !at_most(b, a); }

}  // namespace

Known with_defaults(const ir::Program& program, Known given) {
  for (const ir::SizeVariable& size : program.sizes) {
    if (size.value) given.sizes.emplace(size.name, *size.value);
  }
  const Bounds bounds(program, {given.sizes, {}});
  for (const ir::Input& input : program.inputs) {
    if (input.type.federated() || input.fallback == ir::no_node) continue;
    const Box& value = bounds[input.fallback].box;
    const bool known =
        value.lo.data == value.hi.data && has_shape(input.type, value.lo.shape, given.sizes);
    if (known) given.inputs.emplace(input.name, value.lo);
  }
  return given;
}

Bounds::Bounds(const ir::Program& program, Known known)
    : program_(program), known_(std::move(known)) {
  settle();
  for (NodeId id = 0; id < program_.graph.size(); ++id) origins_.push_back(origins_of(id));
}

Bounds::Bounds(const ir::Program& body, const SizeValues& sizes, std::vector<CellBound> inputs)
    : program_(body), known_{sizes, {}}, inputs_(std::move(inputs)) {
  settle();
}

void Bounds::settle() {
  int passes = 0;
  do {
    pass();
  } while (++passes < most_passes && learn_states());
}

void Bounds::pass() {
  bounds_.clear();
  bounds_.reserve(program_.graph.size());
  for (NodeId id = 0; id < program_.graph.size(); ++id) {
    const ir::Node& node = program_.graph[id];
    if (node.kind == Kind::local) locals_[id] = results_of(node);
    bounds_.push_back(compute(id));
  }
}

// What a client computes on its own is bounded as its text says: nobody has added noise in there. Of loops over batches
// nothing is known.
std::vector<CellBound> Bounds::results_of(const ir::Node& local) const {
  std::vector<CellBound> results;
  if (local.block->batches) {
    for (const Type& type : local.types) results.push_back(unknown(type));
    return results;
  }
  std::vector<CellBound> inputs;
  for (const NodeId arg : local.args) {
    const Type& type = program_.graph[arg].type();
    inputs.push_back(bounds_[arg]);
    if (!type.federated() || type.record_set() != ir::client_set) continue;
    const auto star =
        static_cast<std::ptrdiff_t>(*type.record_axis());  // inside there is one client
    for (Tensor* side : {&inputs.back().box.lo, &inputs.back().box.hi})
      side->shape.erase(side->shape.begin() + star);
  }
  const ir::Program& body = local.block->body;
  const Bounds inside(body, known_.sizes, std::move(inputs));
  for (const ir::Output& output : body.outputs) {
    results.push_back(inside[output.node]);
    if (body.graph[output.node].federated()) continue;
    for (Tensor* side : {&results.back().box.lo, &results.back().box.hi})
      side->shape.insert(side->shape.begin(), 1);
  }
  return results;
}

// A state is what it was at the start, or what an iteration made of one: where that is bounded whatever the states are, or
// as they are known to be, so is every state.
bool Bounds::learn_states() {
  bool news = false;
  for (ir::LoopId loop = 0; loop < program_.loops.size(); ++loop) {
    const auto& carried = program_.loops[loop].carried;
    for (std::uint32_t slot = 0; slot < carried.size(); ++slot) {
      const CellBound& init = bounds_[carried[slot].init];
      const CellBound& next = bounds_[carried[slot].next];
      if (init.box.lo.rank() != next.box.lo.rank()) continue;
      CellBound state = either(init, next);
      const auto known = states_.find({loop, slot});
      news |= state.bounded() && (known == states_.end() || !known->second.bounded());
      states_[{loop, slot}] = std::move(state);
    }
  }
  return news;
}

CellBound Bounds::compute(NodeId id) const {
  const ir::Node& node = program_.graph[id];
  switch (node.kind) {
    case Kind::constant:
      return of_tensor(node.value);
    case Kind::size: {
      const std::optional<std::int64_t> value = node.size.evaluate(known_.sizes);
      if (value) return of_tensor(Tensor::scalar(static_cast<double>(*value)));
      const Bound size = Bound::of(node.size);
      return {Box::all({1, std::numeric_limits<double>::infinity()}, 0), {size, size, size}};
    }
    case Kind::local:
      return locals_.at(id).front();
    case Kind::project: {
      const auto block = locals_.find(node.args[0]);
      return block == locals_.end() ? unknown(node.type()) : block->second.at(node.index);
    }
    case Kind::input: {
      if (inputs_) return inputs_->at(node.index);
      const auto found = known_.inputs.find(program_.inputs[node.index].name);
      const bool is_known = found != known_.inputs.end() && !node.federated() &&
                            found->second.rank() == node.type().rank();
      if (!is_known) return unknown(node.type());
      CellBound value = of_tensor(found->second);
      // Entries are told apart where it is sure which they are.
      if (!has_shape(node.type(), found->second.shape, known_.sizes))
        value.box = Box::all(value.box.hull(), node.type().rank());
      return value;
    }
    case Kind::variable:
      return bounds_[node.args[0]];
    case Kind::loop_param:
    case Kind::loop_result: {
      const auto found = states_.find({node.index, node.slot});
      return found == states_.end() ? unknown(node.type()) : found->second;
    }
    case Kind::apply:
      // What a fold gives out has noise in it.
      if (node.types.size() > 1 || ir::is_fold(program_.graph, node)) return unknown(node.type());
      return apply(node, operands_of(node));
    default:
      return unknown(node.type());
  }
}

std::vector<CellBound> Bounds::operands_of(const ir::Node& node) const {
  std::vector<CellBound> operands;
  for (const NodeId arg : node.args) operands.push_back(bounds_[arg]);
  return operands;
}

CellBound Bounds::apply(const ir::Node& node, const std::vector<CellBound>& operands) const {
  std::vector<Box> boxes;
  std::vector<Type> types;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    boxes.push_back(operands[i].box);
    types.push_back(program_.graph[node.args[i]].type());
  }
  CellBound bound;
  bound.box = box_of(program_, node, boxes, known_.sizes);
  bound.norms = norms_of(bound.box, node.type(), known_.sizes);
  if (node.op->norms != nullptr) {
    const NormQuery query{operands, types, node.type(), node.attrs, known_.sizes};
    bound.norms = tighter(bound.norms, node.op->norms(query));
  }
  bound.norms = related(bound.norms, entries_of(node.type(), known_.sizes));
  clamp(bound.box, bound.norms.linf);
  return bound;
}

CellBound Bounds::term(NodeId fold) const {
  const ir::Node& node = program_.graph[fold];
  if (!node.op->monoid->additive) return unknown(node.type());
  return apply(node, operands_of(node));
}

// A value has its bound from itself where an operand has none, or where it clips what has one; else from its operands.
std::vector<NodeId> Bounds::origins_of(NodeId id) const {
  const ir::Node& node = program_.graph[id];
  if (!bounds_[id].bounded()) return {};
  std::vector<NodeId> origins;
  bool own = true;
  for (const NodeId arg : node.args) {
    if (!program_.graph[arg].federated()) continue;
    if (!bounds_[arg].bounded()) return {id};
    own = false;
    for (const NodeId origin : origins_[arg]) {
      if (std::find(origins.begin(), origins.end(), origin) == origins.end() &&
          origins.size() < most_origins)
        origins.push_back(origin);
    }
  }
  const bool clips =
      !own && node.op->clips && is_smaller(bounds_[id].norms.l2, bounds_[node.args[0]].norms.l2);
  return own || clips ? std::vector<NodeId>{id} : origins;
}

NodeId Bounds::culprit(NodeId unbounded) const {
  for (NodeId id = unbounded;;) {
    const ir::Node& node = program_.graph[id];
    if (node.kind != Kind::apply || ir::is_fold(program_.graph, node)) return id;
    std::vector<CellBound> operands = operands_of(node);
    NodeId only = ir::no_node;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].bounded() || node.args[i] == only) continue;
      if (only != ir::no_node || !program_.graph[node.args[i]].federated()) return id;
      only = node.args[i];
    }
    if (only == ir::no_node) return id;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (node.args[i] != only) continue;
      const Type& type = program_.graph[only].type();
      operands[i].box = Box::all({-1, 1}, type.rank());
      operands[i].norms = norms_of(operands[i].box, type, known_.sizes);
    }
    if (!apply(node, operands).bounded()) return id;
    id = only;
  }
}

}  // namespace starfold::privacy

#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/error.h"
#include "starfold/ir/builder.h"
#include "starfold/ir/ir.h"

namespace starfold::ir {
namespace {

class Verifier {
 public:
  Verifier(const Program& program, const char* pass, bool inside)
      : program_(program), pass_(pass), inside_(inside) {}

  void run() const {
    for (NodeId id = 0; id < program_.graph.size(); ++id) node(id);
    for (const Input& input : program_.inputs) this->input(input);
    for (LoopId id = 0; id < program_.loops.size(); ++id) loop(id);
    for (const Output& output : program_.outputs)
      require(inside_ ? valid(output.node) : shared(output.node), "an output is not shared");
    for (const Output& keep : program_.keeps)
      require(!inside_ && federated(keep.node), "what is kept is not federated");
    for (const Trace& trace : program_.traces) {
      if (trace.kind == Trace::Kind::record) {
        require(scalar(trace.node), "a trace is not a shared scalar");
      } else {
        const Type& type = program_.graph[trace.node].type();
        require(!type.federated() && type.rank() <= 1,
                "a condition is not a shared number or vector");
      }
    }
  }

 private:
  void require(bool condition, const char* what) const {
    if (!condition) throw Bug(fmt::format("after {}: {}", pass_, what));
  }
  bool valid(NodeId id) const { return id < program_.graph.size(); }
  bool shared(NodeId id) const { return valid(id) && !program_.graph[id].federated(); }
  bool federated(NodeId id) const { return valid(id) && program_.graph[id].federated(); }
  bool scalar(NodeId id) const { return valid(id) && program_.graph[id].type().is_scalar(); }

  void node(NodeId id) const {
    const Node& node = program_.graph[id];
    require(!node.types.empty(), "a node has no type");
    for (const NodeId arg : node.args) require(arg < id, "an operand is not older than its user");
    for (const Type& type : node.types) {
      const auto stars = std::count_if(type.dims.begin(), type.dims.end(),
                                       [](const Dim& dim) { return dim.star; });
      require(stars <= 1, "a type has two record axes");
    }
    if (node.kind == Kind::apply) {
      exposure(node);
      application(node);
    } else if (node.kind == Kind::local) {
      local(node);
    } else {
      require(node.types.size() == 1 && node.type() == expected_type(node),
              "a node does not have the type of what it stands for");
    }
  }

  const Type& only_operand(const Node& node) const {
    require(node.args.size() == 1, "a node without its operand");
    return program_.graph[node.args[0]].type();
  }

  Type expected_type(const Node& node) const {
    switch (node.kind) {
      case Kind::constant:
        require(element_count(node.value.shape) == node.value.count(), "a constant lacks entries");
        return Type::shared({node.value.shape.begin(), node.value.shape.end()});
      case Kind::size:
        return Type::scalar();
      case Kind::input:
        require(node.index < program_.inputs.size(), "no such input");
        return program_.inputs[node.index].type;
      case Kind::project:
        only_operand(node);
        require(node.index < program_.graph[node.args[0]].types.size(), "no such result");
        return program_.graph[node.args[0]].types[node.index];
      case Kind::variable:
        require(!node.federated(), "a variable is federated");
        return only_operand(node);
      case Kind::loop_param:
      case Kind::loop_result:
        require(node.index < program_.loops.size() &&
                    node.slot < program_.loops[node.index].carried.size(),
                "no such state");
        require(!inside_ || !node.federated(), "a state inside a block is federated");
        return program_.loops[node.index].carried[node.slot].type;
      case Kind::apply:
      case Kind::local:
        break;
    }
    throw Bug("an application has its type from its rule");
  }

  // A block sees its operands as its kind has it, and is a program itself.
  void local(const Node& node) const {
    require(node.block != nullptr, "a block without its body");
    const Local& block = *node.block;
    require(inside_ == block.batches, "a block stands where it cannot");
    require(node.args.size() == block.first_input() + block.body.inputs.size(),
            "a block does not have its operands");
    for (std::size_t i = 0; i < block.body.inputs.size(); ++i) {
      const Type& operand = program_.graph[node.args[block.first_input() + i]].type();
      require(block.body.inputs[i].type == seen_inside(block, operand),
              "a block sees an operand as something else");
    }
    if (block.batches) {
      require(scalar(node.args[0]) && scalar(node.args[1]), "batches without their numbers");
      const std::size_t results = block.body.outputs.size();
      require(results == block.states || results == block.states + 1, "batches lose a state");
      for (std::size_t i = 0; i < block.states; ++i)
        require(block.body.graph[block.body.outputs[i].node].type() == block.body.inputs[i].type,
                "a state changes its type");
    }
    require(node.types == local_types(block), "a block does not have the types of its results");
    require(node.types.empty() || block.batches == !node.federated(),
            "a block gives out something shared");
    verify(block.body, pass_, true);
  }

  // The typing rule of the operation, once more: the judgment stored in the node must follow from those
  // of its operands.
  void application(const Node& node) const {
    std::vector<Type> args;
    for (const NodeId arg : node.args) args.push_back(program_.graph[arg].type());
    const Typing again = type_again(*node.op, std::move(args), node.attrs, node.span);
    if (!again.types) {
      throw Bug(fmt::format("after {}: {} is ill-typed: {}", pass_, node.op->name, again.reason));
    }
    if (*again.types != node.types || again.attrs != node.attrs) {
      throw Bug(fmt::format("after {}: {} is {}, but its rule says {}", pass_, node.op->name,
                            node.type().to_string(), again.types->front().to_string()));
    }
  }

  void input(const Input& input) const {
    require(input.node == no_node ||
                (valid(input.node) && program_.graph[input.node].kind == Kind::input &&
                 program_.graph[input.node].type() == input.type),
            "an input is not its node");
    require(input.fallback == no_node ||
                (shared(input.fallback) && program_.graph[input.fallback].type() == input.type),
            "a default does not have the type of its input");
  }

  // prop:exposure-discipline: only aggregation along the record axis and the contraction of stars
  // make a shared value from federated ones.
  void exposure(const Node& node) const {
    const bool takes_federated = std::any_of(node.args.begin(), node.args.end(), [&](NodeId arg) {
      return program_.graph[arg].federated();
    });
    if (!takes_federated || node.federated()) return;
    if (node.op->family == Family::aggregation) {
      const std::optional<std::size_t> star = program_.graph[node.args[0]].type().record_axis();
      const auto& axes = node.attrs.axes;
      require(star && std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(*star)) !=
                          axes.end(),
              "a star vanished");
      return;
    }
    require(node.op->family == Family::matmul, "a federated value became shared outside a fold");
    require(program_.graph[node.args[0]].type().dims.back().star, "a matrix product lost a star");
  }

  void loop(LoopId id) const {
    const Loop& loop = program_.loops[id];
    require(loop.parent == no_loop || loop.parent < program_.loops.size(), "no such loop");
    require(scalar(loop.count), "the count of a loop is not a shared scalar");
    require(loop.until == no_node || scalar(loop.until), "an until is not a shared scalar");
    for (std::uint32_t slot = 0; slot < loop.carried.size(); ++slot) {
      const Carried& carried = loop.carried[slot];
      const bool at_clients = carried.type.federated();
      require(at_clients
                  ? federated(carried.next) && federated(carried.param) && valid(carried.init)
                  : shared(carried.init) && shared(carried.next) && shared(carried.param),
              "a state is not shared");
      const Node& param = program_.graph[carried.param];
      require(param.kind == Kind::loop_param && param.index == id && param.slot == slot,
              "a state is not its parameter");
      const Type& init = program_.graph[carried.init].type();
      const bool repeated = at_clients && !init.federated();
      require(program_.graph[carried.next].type() == carried.type &&
                  init == (repeated ? without_axis(carried.type, *carried.type.record_axis())
                                    : carried.type),
              "a state changes its type");
    }
  }

  const Program& program_;
  const char* pass_;
  bool inside_;
};

}  // namespace

void verify(const Program& program, const char* pass, bool inside) {
  Verifier(program, pass, inside).run();
}

}  // namespace starfold::ir

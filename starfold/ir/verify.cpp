#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/error.h"
#include "starfold/ir/ir.h"

namespace starfold::ir {
namespace {

class Verifier {
 public:
  Verifier(const Program& program, const char* pass) : program_(program), pass_(pass) {}

  void run() const {
    for (NodeId id = 0; id < program_.graph.size(); ++id) node(id);
    for (const Loop& loop : program_.loops) this->loop(loop);
    for (const Output& output : program_.outputs)
      require(shared(output.node), "an output is not shared");
    for (const Trace& trace : program_.traces)
      require(scalar(trace.node), "a trace is not a shared scalar");
  }

 private:
  void require(bool condition, const char* what) const {
    if (!condition) throw Bug(fmt::format("after {}: {}", pass_, what));
  }
  bool valid(NodeId id) const { return id < program_.graph.size(); }
  bool shared(NodeId id) const { return valid(id) && !program_.graph[id].federated(); }
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
    if (node.kind == Kind::apply) exposure(node);
    if (node.kind == Kind::loop_param || node.kind == Kind::loop_result) {
      require(node.index < program_.loops.size() &&
                  node.slot < program_.loops[node.index].carried.size(),
              "no such state");
      require(!node.federated(), "a state is federated");
    }
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

  void loop(const Loop& loop) const {
    require(scalar(loop.count), "the count of a loop is not a shared scalar");
    require(loop.until == no_node || scalar(loop.until), "an until is not a shared scalar");
    for (const Carried& carried : loop.carried) {
      require(shared(carried.init) && shared(carried.next) && shared(carried.param),
              "a state is not shared");
      require(program_.graph[carried.next].type() == carried.type &&
                  program_.graph[carried.init].type() == carried.type,
              "a state changes its type");
    }
  }

  const Program& program_;
  const char* pass_;
};

}  // namespace

void verify(const Program& program, const char* pass) { Verifier(program, pass).run(); }

}  // namespace starfold::ir

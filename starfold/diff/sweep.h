// One reverse sweep: the derivative of a value by a shared variable.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "starfold/diag/diagnostic.h"
#include "starfold/diff/pullback.h"

namespace starfold::diff {

// States of finished loops that change with the variable; a derivative cannot pass through them.
using ActiveStates = std::set<std::pair<ir::LoopId, std::uint32_t>>;

// All nodes that a value is made from, also through the loops that it is a result of.
struct Reach {
  std::set<NodeId> nodes;
  std::set<ir::LoopId> loops;
};
Reach reach(const ir::Program& program, NodeId of);
// The states of finished loops that change with a variable.
ActiveStates active_states(const ir::Program& program, const Reach& from, NodeId by);

// What a sweep reports and where.
struct Report {
  Diagnostics& diagnostics;
  Span call;               // the derivative as written
  std::string variable;    // how the user calls it
  std::size_t most_nodes;  // TooLarge when the program outgrows this
  bool failed = false;
};

// A federated value keeps its star: the derivative is taken record by record, and adjoints of shared
// values have the star as their first label instead of being summed over it.
class Sweep {
 public:
  Sweep(ir::Builder& build, NodeId of, NodeId by, const ActiveStates& active_states,
        Report& report);

  // The derivative, of type [type of `of`, type of `by`]; no_node when it is zero everywhere.
  NodeId run();
  // Whether a small change of the variable can change the value at all; known after the run.
  bool varies() const { return active(of_); }

 private:
  friend class Pullback;

  bool active(NodeId id) const {
    return id >= by_ && id - by_ < active_.size() && active_[id - by_];
  }
  const Labels& labels_of(NodeId id);
  Labels order_for(const Labels& labels) const;
  bool moves(const ir::Node& node) const;
  void find_active(const ActiveStates& active_states);
  void seed();
  void visit(NodeId id);
  void through_fold(NodeId id);
  void through_block(NodeId id);
  void through_block(NodeId id, const ir::Node& local, std::uint32_t result, Product adjoint);
  void contribute(NodeId to, Product product);
  std::vector<Product> adjoint_of(NodeId id);
  void fail(const ir::Node& node, std::string reason, std::string help);
  NodeId assemble();

  ir::Builder& build_;
  ir::Algebra algebra_;
  NodeId of_;
  NodeId by_;
  const ActiveStates& active_states_;
  Report& report_;
  Labels lead_;               // of the axes of `of`
  ir::Label star_;            // its star when it is federated
  std::vector<bool> active_;  // from `by` on: what changes with it
  std::map<NodeId, Labels> labels_;
  std::map<NodeId, std::vector<Product>> adjoints_;
};

}  // namespace starfold::diff

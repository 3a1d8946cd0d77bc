// Conditions in what records add to a sum: which there are, and what the records that they choose, or leave out, make of
// the difference. A value is an affine function of each truth value t in it, whatever else it is made of:
// e = e[t = 0] + t * (e[t = 1] - e[t = 0]). So t chooses e - e[t = 0], and leaves out e[t = 1] - e.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "starfold/ir/builder.h"

namespace starfold::policy {

// The truth values (comparisons, one_hot, what is put together from them) of records that a value depends on. With
// `outermost`, without those inside of others.
std::vector<ir::NodeId> truths_in(const ir::Graph& graph, ir::NodeId id, bool outermost = false);

// What some truth values make of other values, as values.
class Choices {
 public:
  Choices(ir::Builder& build, std::set<ir::NodeId> truths)
      : build_(build), truths_(std::move(truths)) {}

  bool depends(ir::NodeId id);
  // The value minus what it would be were none of them true; of a value that depends on them.
  ir::NodeId chosen(ir::NodeId id) { return of(id, Which::chosen); }
  // What it would be were all of them true, minus the value.
  ir::NodeId left_out(ir::NodeId id) { return of(id, Which::left_out); }

 private:
  enum class Which { chosen, left_out };
  void learn(ir::NodeId last);
  std::vector<ir::NodeId> below(ir::NodeId id);
  ir::NodeId of(ir::NodeId id, Which which);
  ir::NodeId part(ir::NodeId id, Which which);
  bool is_same(ir::NodeId a, ir::NodeId b) const;
  ir::NodeId part_of_operation(ir::NodeId id, Which which);
  ir::NodeId linear(const ir::Node& node, Which which);
  ir::NodeId difference(ir::NodeId id, Which which);
  ir::NodeId of_where(ir::NodeId id, Which which);
  // The value with all truth values set to 1 or 0.
  ir::NodeId set_to(ir::NodeId id, bool value);
  ir::NodeId with_args(ir::Node node, std::vector<ir::NodeId> args);
  ir::NodeId picking(ir::NodeId id, const Size& count);
  ir::NodeId minus(ir::NodeId a, ir::NodeId b);
  ir::NodeId finite(ir::NodeId id);

  ir::Builder& build_;
  std::set<ir::NodeId> truths_;
  std::vector<bool> depends_;  // by node
  std::map<std::pair<ir::NodeId, Which>, ir::NodeId> parts_;
  std::map<std::pair<ir::NodeId, bool>, ir::NodeId> set_;
};

}  // namespace starfold::policy

// Conditions in what records add to a sum: which there are, and what the records that they choose, or leave out, make of
// the difference. A value is an affine function of each truth value t in it, whatever else it is made of:
// e = e[t = 0] + t * (e[t = 1] - e[t = 0]). So t chooses e - e[t = 0], and leaves out e[t = 1] - e.
//
// Several together can leave out what none does alone: (id < 7) + (id > 7) is 1 but for one record. So a value is also held
// against what it would be in each case of them: e - e[t = 1, u = 0] is 0 for all that are as in that case, and what is left
// of it are the others. Those that are as in the case, and have a value of their own there, are a cell of a table. The same for the
// signs of numbers, which have three cases. Choices need not stand in one factor for that, so every two of them are held to their
// cases, and every three where there are few.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "starfold/ir/builder.h"

namespace starfold::support {

// The truth values (comparisons, one_hot, what is put together from them) of records that a value depends on. With
// `outermost`, without those inside of others.
std::vector<ir::NodeId> truths_in(const ir::Graph& graph, ir::NodeId id, bool outermost = false);

// Signs of numbers of records that a value depends on; not those that are compared.
std::vector<ir::NodeId> signs_in(const ir::Graph& graph, ir::NodeId id);

// The factors of a value: what is multiplied, entry by entry, to make it.
std::vector<ir::NodeId> factors_of(const ir::Graph& graph, ir::NodeId id);

// All that a value is a product of, products among it: where one of these is 0, the value is.
std::set<ir::NodeId> multiplied_in(const ir::Graph& graph, ir::NodeId id);

// A case: what each of some truth values or signs is in it.
using Case = std::map<ir::NodeId, double>;
// All cases of so few truth values that this is little; of more, those in which all but one are alike. Those in which all are alike
// are not among them.
std::vector<Case> mixed_cases(const std::vector<ir::NodeId>& truths);

// What some truth values make of other values, as values.
class Choices {
 public:
  Choices(ir::Builder& build, std::set<ir::NodeId> truths)
      : build_(build), truths_(std::move(truths)) {}
  Choices(ir::Builder& build, Case given) : build_(build), case_(std::move(given)) {
    for (const auto& [id, value] : case_) truths_.insert(id);
  }

  bool depends(ir::NodeId id);
  // The value minus what it would be were none of them true; of a value that depends on them.
  ir::NodeId chosen(ir::NodeId id) { return of(id, Which::chosen); }
  // What it would be were all of them true, minus the value.
  ir::NodeId left_out(ir::NodeId id) { return of(id, Which::left_out); }
  // The value minus what it would be in the case.
  ir::NodeId unlike_case(ir::NodeId id);
  // The value where it is what it would be in the case, and 0 elsewhere.
  ir::NodeId like_case(ir::NodeId id);

 private:
  enum class Which { chosen, left_out };
  enum class Setting { none_true, all_true, as_in_case };
  void learn(ir::NodeId last);
  std::vector<ir::NodeId> below(ir::NodeId id);
  ir::NodeId of(ir::NodeId id, Which which);
  ir::NodeId part(ir::NodeId id, Which which);
  bool is_same(ir::NodeId a, ir::NodeId b) const;
  ir::NodeId part_of_operation(ir::NodeId id, Which which);
  ir::NodeId linear(const ir::Node& node, Which which);
  ir::NodeId difference(ir::NodeId id, Which which);
  ir::NodeId of_where(ir::NodeId id, Which which);
  // The value with all truth values set.
  ir::NodeId set_to(ir::NodeId id, Setting setting);
  ir::NodeId value_of(ir::NodeId truth, Setting setting);
  ir::NodeId with_args(ir::Node node, std::vector<ir::NodeId> args);
  ir::NodeId picking(ir::NodeId id, const Size& count);
  ir::NodeId in_case(ir::NodeId id);
  ir::NodeId minus(ir::NodeId a, ir::NodeId b);
  ir::NodeId finite(ir::NodeId id);

  ir::Builder& build_;
  std::set<ir::NodeId> truths_;
  std::vector<bool> depends_;  // by node
  std::map<std::pair<ir::NodeId, Which>, ir::NodeId> parts_;
  std::map<std::pair<ir::NodeId, Setting>, ir::NodeId> set_;
  Case case_;
};

}  // namespace starfold::support

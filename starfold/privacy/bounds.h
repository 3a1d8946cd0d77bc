// How large each value of a program can be for one record, from what the program itself says: clips, comparisons, sigmoids.
// Nothing is known of records and of what was learned from them, noise or not: only of what is computed from either.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "starfold/ir/ir.h"

namespace starfold::privacy {

// What is known before the run.
struct Known {
  SizeValues sizes = {};
  std::map<std::string, Tensor, std::less<>> inputs = {};  // shared ones, by name
};

// What a program says of itself where nobody says otherwise: declared sizes and the defaults of shared inputs, where these need
// nothing else. `given` wins.
Known with_defaults(const ir::Program& program, Known given = {});

class Bounds {
 public:
  Bounds(const ir::Program& program, Known known);

  const ir::Program& program() const { return program_; }
  const Known& known() const { return known_; }
  // What is known of a value: of the cell of each record, or of a shared value as a whole.
  const CellBound& operator[](ir::NodeId id) const { return bounds_[id]; }
  // The values that the bound of a federated one comes from: clips and the like. At most a few.
  const std::vector<ir::NodeId>& origins(ir::NodeId id) const { return origins_[id]; }

  // What one record adds to a fold whose merge adds up; of other folds nothing is known.
  CellBound term(ir::NodeId fold) const;

  // A value whose bound alone would bound this one, and no operand's bound would; itself where that is so.
  ir::NodeId culprit(ir::NodeId unbounded) const;

 private:
  // Of what a client computes on its own, from what is known of what it starts from.
  Bounds(const ir::Program& body, const SizeValues& sizes, std::vector<CellBound> inputs);
  void settle();

  CellBound compute(ir::NodeId id) const;
  CellBound apply(const ir::Node& node, const std::vector<CellBound>& operands) const;
  std::vector<CellBound> operands_of(const ir::Node& node) const;
  std::vector<ir::NodeId> origins_of(ir::NodeId id) const;
  std::vector<CellBound> results_of(const ir::Node& local) const;
  void pass();
  bool learn_states();

  const ir::Program& program_;
  Known known_;
  std::optional<std::vector<CellBound>> inputs_;  // of a block's body
  std::vector<CellBound> bounds_;
  std::vector<std::vector<ir::NodeId>> origins_;
  std::map<std::pair<ir::LoopId, std::uint32_t>, CellBound> states_;  // by loop and slot
  std::map<ir::NodeId, std::vector<CellBound>> locals_;               // by block: its results
};

}  // namespace starfold::privacy

// Maps of shared values one after the other, entry by entry, as in `w - 0.1 * (sum / n)`: a strip of entries goes through all of
// them while it is in the cache, and what only the next map reads is never laid down. A client that changes many numbers in
// each of many small steps would spend its time on that. The same operations in the same order for each entry: the same bits.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "starfold/plan/plan.h"
#include "starfold/tensor/tensor.h"

namespace starfold {

// out = the operation of each entry of a with that of b, where either may be a number, or of a alone; `out` may be an operand.
struct MapOperand {
  const double* entries = nullptr;
  bool number = false;  // one for all entries
};
void map_entries(const Op& op, MapOperand a, MapOperand b, double* out, std::size_t count);
void map_entries(const Op& op, const double* a, double* out, std::size_t count);

class MapChains {
 public:
  MapChains() = default;
  // Those of many entries among the decoders of a plan that nobody looks into: that of a block.
  MapChains(const Plan& plan, const SizeValues& sizes);

  bool empty() const { return chains_.empty(); }
  // Whether a value is made by the chain that reads it, and not by itself.
  bool passes(ir::NodeId id) const { return passing_[id]; }
  // Fills the value of a chain's last map, which has its shape, from those around the chain; false when the map ends no chain.
  using Value = std::function<const Tensor&(ir::NodeId)>;
  bool compute(ir::NodeId id, const Value& value, const std::function<Tensor&()>& result) const;

 private:
  // An operand is an earlier map of the chain, or a value from outside.
  struct Operand {
    int map = -1;
    ir::NodeId node = ir::no_node;
    bool number = false;
  };
  struct Map {
    const Op* op = nullptr;
    std::vector<Operand> args;
  };
  using Chain = std::vector<Map>;  // operands first

  class Finding;

  std::vector<bool> passing_;  // by node
  std::map<ir::NodeId, Chain> chains_;
};

}  // namespace starfold

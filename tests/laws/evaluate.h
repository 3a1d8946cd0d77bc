// Two further evaluations, written for the laws alone: node by node the way the paper distributes
// them, and statement by statement the way a reader of the program would.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "starfold/federation/program.h"
#include "starfold/runtime/reference.h"
#include "tests/laws/generator.h"

namespace starfold::laws {

// The value of a node: one tensor when shared, one per client when federated (def:federated-tensor).
// An operation with several results has them all.
struct NodeValue {
  std::vector<Tensor> shared;
  std::vector<Tensor> local;
};

// Joins the tensors of clients along the record axis (def:virtual-global-tensor).
Tensor concatenated(const std::vector<Tensor>& parts, std::size_t axis);

// Evaluates a typed program with federated nodes client by client; folds take the virtual global
// tensor of their operand (def:aggregation-semantics).
class Distributed {
 public:
  Distributed(const ir::Program& program, const Federation& federation);
  // `visit` is called after each evaluation of a node, in loops once per iteration.
  using Visit = std::function<void(ir::NodeId)>;
  void run(const Visit& visit = {});

  const ir::Program& program() const { return program_; }
  const NodeValue& value(ir::NodeId id) const { return values_[id]; }
  const SizeValues& sizes() const { return sizes_; }
  // The operation of a node on ordinary tensors, federated operands as virtual global tensors.
  std::vector<Tensor> ordinary(const ir::Node& node) const;
  // A value set from outside instead of computed.
  void set(ir::NodeId id, Tensor value) { values_[id] = {{std::move(value)}, {}}; }
  // Computes one node from the values of its operands.
  void compute(ir::NodeId id);

 private:
  void region(ir::LoopId region);
  void loop(ir::LoopId id);
  NodeValue evaluate(const ir::Node& node) const;

  ir::Program program_;
  ir::Homes homes_;
  const Federation& federation_;
  SizeValues sizes_;
  std::vector<NodeValue> values_;
  std::map<ir::LoopId, std::vector<Tensor>> states_;
  Visit visit_;
};

// Reads the syntax tree of a program and does what it says, on virtual global tensors: names are
// looked up, loops run, functions called. Only the rows of the signature are shared with the
// compiler. Traces inside functions are left out.
Results as_written(const ProgramText& text, const Federation& federation, const SizeValues& sizes,
                   const Signature& signature);

}  // namespace starfold::laws

// The definition: a program evaluated on the virtual global tensors (def:virtual-global-tensor).
// Slow and short; everything fast is tested against it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "starfold/ir/ir.h"
#include "starfold/runtime/bind.h"

namespace starfold {

// What a run gives.
struct Results {
  std::map<std::string, Tensor> outputs;
  std::map<std::string, std::vector<double>> traces;
  std::vector<std::int64_t> iterations;  // per loop that runs, in program order, over all its runs
  // What stays at the clients, by name and client; only who has all records has it.
  std::map<std::string, std::vector<Tensor>> kept;
  // Expectations that did not hold, by their place among the traces: the entries, from 0, of one that is a vector.
  std::map<std::size_t, std::vector<std::size_t>> unmet;
};

// Evaluates a program with all records in one place, clients concatenated in order. What a client computes alone is
// evaluated client by client, on its part of the records.
Results evaluate_reference(const ir::Program& program, const std::vector<Client>& clients,
                           const Settings& settings);

// The tensors of one input joined along its record axis.
Tensor virtual_global(const ir::Input& input, const std::vector<Client>& clients,
                      const SizeValues& sizes);

// How many records of a batch its size stands for.
std::size_t batch_size(double size, Span where);

// The number of iterations that a loop's count stands for.
std::int64_t iteration_limit(double count, const ir::Loop& loop);

}  // namespace starfold

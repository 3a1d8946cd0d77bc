// Data meets program: inputs get arrays, size variables get values.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "starfold/ir/ir.h"
#include "starfold/runtime/records.h"
#include "starfold/tensor/tensor.h"
#include "starfold/types/size.h"

namespace starfold {

// Arrays by input name. A federated input's array holds this client's records along its star.
using Arrays = std::map<std::string, Tensor, std::less<>>;

// Several clients of a simulation whose records lie in common arrays, one after the other.
struct Shares {
  std::size_t clients = 0;
  std::map<std::string, std::vector<std::int64_t>> ends;  // by record set: of each client's records
};

// One data owner: arrays, or a table.
struct Client {
  std::string name;
  Arrays arrays;
  std::shared_ptr<const RecordTable> table = nullptr;
  // Of clients that stand together, where a program asks which records are whose; none: it is one.
  std::shared_ptr<const Shares> shares = nullptr;

  // The shape of what it has for an input; nullopt when it has nothing.
  std::optional<Shape> shape(const ir::Input& input) const;
  // All of it, which may be large.
  Tensor array(const ir::Input& input) const;
};

// Values given at the start of a run: shared inputs, sizes that override `size` declarations, and how many bytes
// shared values may take.
struct Settings {
  Arrays shared;
  SizeValues sizes;
  std::int64_t memory = std::numeric_limits<std::int64_t>::max();
};

// The values of shared inputs and of the sizes that they and the declarations fix. Reports unknown
// names and missing values as RunError. Defaults are filled in by the caller once sizes are known.
SizeValues bind_settings(const ir::Program& program, const Settings& settings);

// All sizes, from `known` and one client's arrays. RunError names the client, the inputs and both
// numbers when something disagrees; `known_from` says where a known size came from.
SizeValues bind_client(const ir::Program& program, const Client& client, SizeValues known,
                       std::map<std::string, std::string> known_from = {});

// The number of records of a client in each record set.
std::map<std::string, std::int64_t> record_counts(const ir::Program& program, const Client& client);

// Throws RunError when a size variable has no value or is not positive.
void require_sizes(const ir::Program& program, const SizeValues& sizes);

// Throws RunError when a shared input was given a value that these sizes do not allow.
void require_shapes(const ir::Program& program, const Settings& settings, const SizeValues& sizes);

// Throws RunError when the shared values of a program take more memory than they may: before any is computed.
void require_memory(const ir::Program& program, const Settings& settings, const SizeValues& sizes);

}  // namespace starfold

// What an owner lets out: the values of [policy] in a node's file, with their defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace starfold {

struct Policy {
  std::int64_t min_records = 10;  // fewer usable records: no
  double min_support = 5;         // a released number rests on so many records, or on none
  double max_ratio = 1;           // numbers released in one round per usable record
  double max_total_ratio = 30;    // the same over a whole study
  std::vector<std::string> merges = {"sum", "count", "moments", "logsumexp"};  // names of rows
  std::int64_t max_numbers = 100'000;                                          // per study
  std::int64_t max_rounds = 1000;                                              // per study
  std::int64_t max_refusals =
      3;  // that depend on records, per study, until the owner approves again

  enum class Programs { any, approved, listed };
  Programs programs = Programs::any;
  std::vector<std::string> plans;  // listed: the hashes of plans that may run

  bool local_blocks = false;  // results of `each client` may be folded out
  bool privacy_required = false;
  struct Budget {
    double epsilon = 0;
    double delta = 0;
  };
  std::optional<Budget> budget;  // over all studies
  bool secure_aggregation_required = false;
  std::int64_t minimum_clients = 3;  // where states are masked: a sum is over at least so many
  std::vector<std::string>
      peers;  // keys of nodes to mask with, as texts; empty: those that the study names
};

// The policy as one JSON text: the same for the same policy, however its file was written.
std::string canonical(const Policy& policy);
// The hash of that text: what the ledger says.
std::string policy_hash(const Policy& policy);

}  // namespace starfold

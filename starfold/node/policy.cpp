#include "starfold/node/policy.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "starfold/base/hash.h"
#include "starfold/base/json.h"

namespace starfold {
namespace {

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

nlohmann::json programs(const Policy& policy) {
  if (policy.programs == Policy::Programs::listed) return sorted(policy.plans);
  return policy.programs == Policy::Programs::any ? "any" : "approved";
}

const char* word(bool required) { return required ? "required" : "optional"; }

}  // namespace

std::string canonical(const Policy& policy) {
  nlohmann::json json = {{"min_records", policy.min_records},
                         {"min_support", policy.min_support},
                         {"max_ratio", policy.max_ratio},
                         {"max_total_ratio", policy.max_total_ratio},
                         {"merges", sorted(policy.merges)},
                         {"max_numbers", policy.max_numbers},
                         {"max_rounds", policy.max_rounds},
                         {"max_refusals", policy.max_refusals},
                         {"programs", programs(policy)},
                         {"local_blocks", policy.local_blocks},
                         {"privacy", word(policy.privacy_required)},
                         {"secure_aggregation", word(policy.secure_aggregation_required)},
                         {"minimum_clients", policy.minimum_clients}};
  if (!policy.peers.empty()) json["peers"] = sorted(policy.peers);
  if (policy.budget)
    json["budget"] = {{"epsilon", policy.budget->epsilon}, {"delta", policy.budget->delta}};
  std::string text = json_line(json);
  text.pop_back();
  return text;
}

std::string policy_hash(const Policy& policy) { return sha256_hex(canonical(policy)); }

}  // namespace starfold

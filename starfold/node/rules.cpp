#include "starfold/node/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/utf8.h"
#include "starfold/policy/support.h"
#include "starfold/runtime/apply.h"

namespace starfold {
namespace {

template <typename... Parts>
Decision no(Refusal reason, fmt::format_string<Parts...> words, Parts&&... parts) {
  return {reason, std::string(rule_of(reason)), fmt::format(words, std::forward<Parts>(parts)...)};
}

// A rule that depends on records: the server learns that there is one, the owner which.
template <typename... Parts>
Decision hidden(std::string rule, fmt::format_string<Parts...> words, Parts&&... parts) {
  return {Refusal::policy, std::move(rule), fmt::format(words, std::forward<Parts>(parts)...)};
}

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::int64_t state_numbers(const Plan& plan, const Merge& merge, const SizeValues& sizes) {
  std::int64_t count = 0;
  const Shape result = cell_shape(plan.program.graph[merge.fold].type(), sizes);
  for (const Shape& shape : state_shapes(*merge.monoid, result)) count += element_count(shape);
  return count;
}

// The record set that a fold folds.
std::string folded_set(const Plan& plan, const Merge& merge) {
  for (const ir::NodeId arg : plan.program.graph[merge.fold].args) {
    const Type& type = plan.program.graph[arg].type();
    if (type.federated()) return type.record_set();
  }
  return {};
}

}  // namespace

std::int64_t round_numbers(const Plan& plan, const Round& round, const SizeValues& sizes) {
  std::int64_t count = 0;
  for (const Merge& merge : round.merges) count += state_numbers(plan, merge, sizes);
  return count;
}

Forbidden forbids_study(const Policy& policy, const Account& account,
                        const std::string& plan_hash) {
  if (account.standing == Account::Standing::denied)
    return no(Refusal::denied, "the owner has denied this study");
  const bool approved = account.standing == Account::Standing::approved;
  if (policy.programs == Policy::Programs::listed && !contains(policy.plans, plan_hash))
    return no(Refusal::programs, "the plan {} is not in the list `programs`", plan_hash);
  if (policy.programs == Policy::Programs::approved && !approved)
    return no(Refusal::pending, "the study waits for the owner's approval");
  if (account.refusals >= policy.max_refusals)
    return no(Refusal::max_refusals, "{} requests of this study were refused; approve it to go on",
              account.refusals);
  if (policy.privacy_required)
    return no(Refusal::privacy, "the run is not private, and `privacy` is required");
  if (policy.secure_aggregation_required)
    return no(Refusal::secure_aggregation,
              "the run is not aggregated securely, and `secure_aggregation` is required");
  return std::nullopt;
}

Forbidden forbids_program(const Policy& policy, const NodeSource& source, const Plan& plan,
                          const Bindings& bindings) {
  for (const ir::Input& input : plan.program.inputs) {
    if (!input.type.federated()) continue;
    const auto bound = bindings.columns.find(input.name);
    // Without columns it takes the array of its name.
    std::vector<std::string> names = {input.name};
    if (bound != bindings.columns.end()) {
      names.clear();
      for (const BoundColumn& column : bound->second) names.push_back(column.name);
    }
    for (const std::string& name : names) {
      if (!contains(source.columns, name))
        return no(Refusal::columns, "input {} asks for {}, which is not among the columns of {}",
                  printable(input.name), printable(name), source.name);
    }
  }
  for (const Round* round : rounds_of(plan)) {
    for (const Merge& merge : round->merges) {
      if (!contains(policy.merges, merge.monoid->name))
        return no(Refusal::merges, "{} merges by {}, which is not in the list `merges`",
                  describe_fold(plan, merge.fold), merge.monoid->name);
    }
  }
  if (const std::string why = unsupported(plan); !why.empty())
    return no(Refusal::merges, "{}", why);
  return std::nullopt;
}

Forbidden forbids_round(const Policy& policy, const Account& account, std::int64_t numbers) {
  if (account.rounds >= policy.max_rounds)
    return no(Refusal::max_rounds, "the study has had {} rounds of {}", account.rounds,
              policy.max_rounds);
  if (account.numbers > policy.max_numbers - numbers)
    return no(Refusal::max_numbers, "{} numbers are asked for; the study has had {} of {}", numbers,
              account.numbers, policy.max_numbers);
  return std::nullopt;
}

Forbidden forbids_records(const Policy& policy, const Plan& plan, const SizeValues& sizes,
                          const std::map<std::string, std::int64_t>& records) {
  for (const auto& [set, count] : records) {
    if (count < policy.min_records)
      return hidden("min_records", "there are {} usable records{}; the policy wants {}", count,
                    set.empty() ? "" : " of *" + set, policy.min_records);
  }
  for (const Round* round : rounds_of(plan)) {
    std::map<std::string, std::int64_t> numbers;
    for (const Merge& merge : round->merges)
      numbers[folded_set(plan, merge)] += state_numbers(plan, merge, sizes);
    for (const auto& [set, count] : numbers) {
      const auto found = records.find(set);
      const std::int64_t usable = found == records.end() ? 0 : found->second;
      if (static_cast<double>(count) > policy.max_ratio * static_cast<double>(usable))
        return hidden("max_ratio",
                      "round {} releases {} numbers of {} records; the policy allows {:g} for each",
                      round->number + 1, count, usable, policy.max_ratio);
    }
  }
  return std::nullopt;
}

Forbidden forbids_total(const Policy& policy, const Account& account, std::int64_t numbers,
                        const std::map<std::string, std::int64_t>& records) {
  for (const auto& [set, count] : records) {
    const auto all = static_cast<double>(account.numbers + numbers);
    if (all > policy.max_total_ratio * static_cast<double>(count))
      return hidden("max_total_ratio",
                    "with this round the study has {:g} numbers of {} records; the policy allows "
                    "{:g} for each",
                    all, count, policy.max_total_ratio);
  }
  return std::nullopt;
}

}  // namespace starfold

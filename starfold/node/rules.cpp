#include "starfold/node/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "starfold/base/utf8.h"
#include "starfold/ir/visit.h"
#include "starfold/privacy/neighbours.h"
#include "starfold/privacy/noise/shares.h"
#include "starfold/runtime/apply.h"
#include "starfold/support/support.h"

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

// Sizes come from outside as well: what is beyond all bounds is so many.
constexpr std::int64_t beyond = std::int64_t{1} << 53;

std::int64_t state_numbers(const Plan& plan, const Merge& merge, const SizeValues& sizes) {
  double count = 0;
  const Shape result = cell_shape(plan.program.graph[merge.fold].type(), sizes);
  for (const Part& part : merge.monoid->parts) {
    double numbers = 1;
    for (const std::int64_t extent : extents(part, result)) numbers *= static_cast<double>(extent);
    count += numbers;
  }
  return count < static_cast<double>(beyond) ? static_cast<std::int64_t>(count) : beyond;
}

Decision not_listed(const Plan& plan, const Merge& merge) {
  return no(Refusal::merges, "{} merges by {}, which is not in the list `merges`",
            describe_fold(plan, merge.fold), merge.monoid->name);
}

// Whether a plan folds by these merges alone.
Forbidden forbids_merges(const Policy& policy, const Plan& plan) {
  for (const Round* round : rounds_of(plan)) {
    for (const Merge& merge : round->merges) {
      if (!contains(policy.merges, merge.monoid->name)) return not_listed(plan, merge);
    }
  }
  return std::nullopt;
}

// Whether what these values are made of is folded inside blocks by these merges alone. What a block computes beside that stays at the
// client. `inside`: the plan is that of a block.
Forbidden forbids_merges_behind(const Policy& policy, const Plan& plan,
                                const std::vector<ir::NodeId>& values, bool inside = false) {
  const ir::Graph& graph = plan.program.graph;
  std::set<ir::NodeId> made_of;
  std::map<ir::NodeId, std::set<std::size_t>> blocks;  // with those of their results
  ir::visit(plan.program, values, [&](ir::NodeId id) {
    const ir::Node& node = graph[id];
    made_of.insert(id);
    const bool of_block = node.kind == ir::Kind::project && graph[node.args[0]].block;
    if (of_block) blocks[node.args[0]].insert(node.index);
    if (node.block && node.types.size() == 1) blocks[id].insert(0);
    return true;
  });
  for (const Round* round : rounds_of(plan)) {
    for (const Merge& merge : round->merges) {
      if (inside && made_of.count(merge.fold) != 0 && !contains(policy.merges, merge.monoid->name))
        return not_listed(plan, merge);
    }
  }
  for (const auto& [id, results] : blocks) {
    const Plan& block = *plan.blocks.at(id);
    std::vector<ir::NodeId> within;
    for (std::size_t i = 0; i < block.program.outputs.size(); ++i) {
      // The states of batches are made of each other.
      if (results.count(i) != 0 || graph[id].block->batches)
        within.push_back(block.program.outputs[i].node);
    }
    for (const ir::Trace& trace : block.program.traces) within.push_back(trace.node);
    if (Forbidden forbidden = forbids_merges_behind(policy, block, within, true)) return forbidden;
  }
  return std::nullopt;
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
  for (const Merge& merge : round.merges)
    count = std::min(beyond, count + state_numbers(plan, merge, sizes));
  return count;
}

Forbidden forbids_study(const Policy& policy, const Account& account, const std::string& plan_hash,
                        const Protection& protection) {
  if (account.standing == Account::Standing::denied)
    return no(Refusal::denied, "the owner has denied this study");
  const bool approved = account.standing == Account::Standing::approved;
  if (policy.programs == Policy::Programs::listed && !contains(policy.plans, plan_hash))
    return no(Refusal::programs, "the plan {} is not in the list `programs`", plan_hash);
  if (policy.programs == Policy::Programs::approved && !approved)
    return no(Refusal::pending, "the policy lets only approved studies run");
  if (account.refusals >= policy.max_refusals)
    return no(Refusal::max_refusals,
              "{} requests of this study were refused; approve it, and it may go on",
              account.refusals);
  if (policy.privacy_required && !protection.terms)
    return no(Refusal::privacy, "the run is not private, and `privacy` is required");
  if (policy.privacy_required && protection.terms->predictable)
    return no(Refusal::privacy, "the noise of the run has a seed, and `privacy` is required");
  if (policy.secure_aggregation_required && !protection.masked)
    return no(Refusal::secure_aggregation,
              "the run is not aggregated securely, and `secure_aggregation` is required");
  return std::nullopt;
}

Forbidden forbids_spending(const Policy& policy, const Account& total, double epsilon,
                           double delta) {
  if (!policy.budget) return std::nullopt;
  constexpr double rounding = 1e-9;  // of sums of many small amounts
  const auto over = [&](double had, double more, double all) {
    return had + more > all * (1 + rounding);
  };
  if (over(total.epsilon, epsilon, policy.budget->epsilon))
    return no(Refusal::budget, "the run needs epsilon = {:g}, and of {:g} there is {:g} left",
              epsilon, policy.budget->epsilon,
              std::max(0.0, policy.budget->epsilon - total.epsilon));
  if (over(total.delta, delta, policy.budget->delta))
    return no(Refusal::budget, "the run needs delta = {:g}, and of {:g} there is {:g} left", delta,
              policy.budget->delta, std::max(0.0, policy.budget->delta - total.delta));
  return std::nullopt;
}

Forbidden forbids_noise(const privacy::Terms& terms, const std::optional<secure::Group>& group) {
  if (terms.promise.at != privacy::At::distributed) return std::nullopt;
  if (!group)
    return no(
        Refusal::privacy,
        "a share of noise hides nothing alone: at = \"distributed\" needs secure aggregation");
  const std::int64_t most = privacy::sure_shares(*group);
  if (terms.shares < 1 || terms.shares > most)
    return no(Refusal::privacy, "noise is made for {} shares, and a sum is sure to have {}",
              terms.shares, most);
  return std::nullopt;
}

Forbidden forbids_neighbours(const privacy::Promise& promise, const NodeSource& source,
                             Missing missing) {
  if (!privacy::counts_records_as_known(promise)) return std::nullopt;
  if (missing == Missing::drop)
    return no(Refusal::privacy,
              "neighbours = \"replace\" takes the number of records as known, and records with a "
              "missing value are dropped");
  if (!source.location.query.empty())
    return no(Refusal::privacy,
              "neighbours = \"replace\" takes the number of records as known, and the query of {} "
              "may leave records out",
              source.name);
  return std::nullopt;
}

Forbidden forbids_group(const Policy& policy, const secure::Group& group, const secure::Key& own) {
  if (const std::string wrong = secure::wrong_with(group); !wrong.empty())
    return no(Refusal::secure_aggregation, "{}", wrong);
  const auto members = static_cast<std::int64_t>(group.members.size());
  if (members < policy.minimum_clients || group.inputs() < policy.minimum_clients)
    return no(Refusal::secure_aggregation,
              "a sum could be over {} clients; `minimum_clients` asks for {}",
              std::min<std::int64_t>(members, group.inputs()), policy.minimum_clients);
  for (const secure::Member& member : group.members) {
    if (policy.peers.empty() || member.key == own) continue;
    if (!contains(policy.peers, secure::key_text(member.key)))
      return no(Refusal::secure_aggregation,
                "the key of client {} is not among the `peers` of this node",
                printable(member.name));
  }
  return std::nullopt;
}

Forbidden forbids_program(const Policy& policy, const NodeSource& source, const Plan& plan,
                          const Bindings& bindings) {
  const bool by_formula = !bindings.formula.text.empty();
  if (by_formula) {
    for (const std::string& name : names_in(formula::parse_formula(bindings.formula.text))) {
      if (contains(source.columns, name) || name == "pi" || name == "site") continue;
      return no(Refusal::columns, "the formula asks for {}, which is not among the columns of {}",
                printable(name), source.name);
    }
  }
  for (const ir::Input& input : plan.program.inputs) {
    if (!input.type.federated()) continue;
    const auto bound = bindings.columns.find(input.name);
    // What the formula does not give it after all is found when it meets the schema.
    if (bound == bindings.columns.end() && by_formula) continue;
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
  if (Forbidden forbidden = forbids_merges(policy, plan)) return forbidden;
  const std::vector<bool> split = ir::find_split(plan.program);
  for (const Round* round : rounds_of(plan)) {
    for (const Merge& merge : round->merges) {
      if (!split[merge.fold]) continue;
      if (!policy.local_blocks)
        return no(Refusal::local_blocks, "{} lets out what this client computes on its own",
                  describe_fold(plan, merge.fold));
      // What shows single records does so inside a block too.
      if (Forbidden forbidden = forbids_merges_behind(policy, plan, {merge.fold})) return forbidden;
    }
  }
  if (const std::string why = unsupported(plan); !why.empty())
    return no(Refusal::merges, "{}", why);
  return std::nullopt;
}

Forbidden forbids_columns(const NodeSource& source, const ColumnPlan& plan) {
  std::vector<std::string> names;
  for (const auto& [input, columns] : plan.columns) {
    for (const BoundColumn& column : columns) names.push_back(column.name);
  }
  if (plan.formula) {
    for (const std::string& name : plan.formula->columns()) names.push_back(name);
  }
  for (const std::string& name : names) {
    if (!contains(source.columns, name))
      return no(Refusal::columns, "{} is asked for, which is not among the columns of {}",
                printable(name), source.name);
  }
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
  std::int64_t most = 0;  // what a value per client rests on
  for (const auto& [set, count] : records) {
    if (set == ir::client_set) continue;
    most = std::max(most, count);
    if (count < policy.min_records)
      return hidden("min_records", "there are {} usable records{}; the policy wants {}", count,
                    set.empty() ? "" : " of *" + set, policy.min_records);
  }
  for (const Round* round : rounds_of(plan)) {
    std::map<std::string, std::int64_t> numbers;
    for (const Merge& merge : round->merges)
      numbers[folded_set(plan, merge)] =
          std::min(beyond, numbers[folded_set(plan, merge)] + state_numbers(plan, merge, sizes));
    for (const auto& [set, count] : numbers) {
      const auto found = records.find(set);
      const std::int64_t usable = set == ir::client_set    ? most
                                  : found == records.end() ? 0
                                                           : found->second;
      if (static_cast<double>(count) > policy.max_ratio * static_cast<double>(usable))
        return hidden("max_ratio",
                      "round {} releases {} numbers of {} records; the policy allows {:g} for each",
                      round->number + 1, count, usable, policy.max_ratio);
    }
  }
  return std::nullopt;
}

Forbidden forbids_memory(const Plan& plan, const SizeValues& sizes, int threads,
                         std::int64_t memory) {
  constexpr double block = 512;  // records that are computed with at once
  const auto bytes = [&](ir::NodeId id) {
    double total = 0;
    for (const Type& type : plan.program.graph[id].types) {
      double count = sizeof(double);
      for (const Dim& dim : type.dims) {
        if (dim.star) continue;
        const std::optional<std::int64_t> extent = dim.size.evaluate(sizes);
        count *= extent ? static_cast<double>(*extent) : HUGE_VAL;
      }
      total += count;
    }
    return total;
  };
  for (const Round* round : rounds_of(plan)) {
    double total = 0;
    for (const ir::NodeId id : round->receives) total += bytes(id);
    for (const ir::NodeId id : round->constants) total += bytes(id);
    for (const ir::NodeId id : round->encoders) total += bytes(id) * block * threads;
    // Every thread has states of its own, and they may have three parts.
    for (const Merge& merge : round->merges) total += 3 * bytes(merge.fold) * (1 + threads);
    if (!(total <= static_cast<double>(memory)))
      return no(Refusal::no_resources,
                "round {} may take {:.3g} GB, and there are {:.3g} GB for it", round->number + 1,
                total / 1e9, static_cast<double>(memory) / 1e9);
  }
  return std::nullopt;
}

Forbidden forbids_total(const Policy& policy, const Account& account, std::int64_t numbers,
                        const std::map<std::string, std::int64_t>& records) {
  for (const auto& [set, count] : records) {
    if (set == ir::client_set) continue;
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

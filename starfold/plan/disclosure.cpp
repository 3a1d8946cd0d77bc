#include "starfold/plan/disclosure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "starfold/ir/visit.h"
#include "starfold/merge/monoid.h"

namespace starfold {
namespace {

using ir::Kind;
using ir::no_node;
using ir::NodeId;

constexpr std::size_t long_expression = 48;

// How the record-wise values that a fold takes depend on the records.
class Dependence {
 public:
  explicit Dependence(const Plan& plan) : program_(plan.program), linear_(program_.graph.size()) {
    for (NodeId id = 0; id < program_.graph.size(); ++id) linear_[id] = find_linear(id);
    for (const auto& [node, block] : plan.blocks) shown_in_[node] = shown_in(*block);
  }

  // Whether the values of different records can differ.
  bool varies(NodeId id) const {
    const ir::Node& node = program_.graph[id];
    return node.federated() && !(node.kind == Kind::apply && node.op->shape_only);
  }

  // Whether each record's value is the same linear expression (with a constant) of its data.
  bool linear(NodeId id) const { return linear_[id] != 0; }

  // An operation behind this value that picks by the data: its result is a step function of a record, so it
  // decides instead of measuring. One of an iteration is preferred. no_node when there is none.
  NodeId pick(NodeId id, const ir::Homes& homes) const {
    NodeId found = no_node;
    for (const NodeId at : behind(id)) {
      if (picks(at) && (found == no_node || (!moves(found, homes) && moves(at, homes))))
        found = chooser(at);
    }
    return found;
  }

  // The most that the blocks behind this value show, each at its own client.
  Shows in_blocks(NodeId id) const {
    Shows most = Shows::total;
    for (const NodeId at : behind(id)) {
      if (const auto block = shown_in_.find(at); block != shown_in_.end())
        most = std::max(most, block->second);
    }
    return most;
  }

  static bool moves(NodeId id, const ir::Homes& homes) { return homes.of_node[id] != ir::no_loop; }

 private:
  // The values that differ from record to record and that this one is made of, itself first. What a private state is made of
  // includes its value of the iteration before.
  std::vector<NodeId> behind(NodeId id) const {
    std::vector<NodeId> found;
    ir::visit(program_, {id}, [&](NodeId at) {
      if (varies(at)) found.push_back(at);
      return varies(at);
    });
    return found;
  }

  // What a block's own folds show, and whether it picks records.
  static Shows shown_in(const Plan& block) {
    Shows most = Shows::total;
    for (const std::vector<Disclosure>& round : disclosures(block)) {
      for (const Disclosure& value : round) most = std::max(most, value.shows);
    }
    for (const auto& [node, inner] : block.blocks) most = std::max(most, shown_in(*inner));
    const Dependence dependence(block);
    const ir::Homes homes = ir::find_homes(block.program);
    for (const ir::Output& output : block.program.outputs) {
      if (dependence.pick(output.node, homes) != no_node) most = std::max(most, Shows::group);
    }
    return most;
  }

  // An operation without a derivative in an operand that varies: comparisons, conditions, labels, rounding;
  // and whatever a registered primitive may do; and a block that picks inside.
  bool picks(NodeId id) const {
    const ir::Node& node = program_.graph[id];
    if (const auto block = shown_in_.find(id); block != shown_in_.end())
      return block->second >= Shows::group;
    if (node.kind != Kind::apply || node.op->linear != Linear::no) return false;
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      if (varies(node.args[i]) && (node.op->flat_in(i) || node.op->derivative == nullptr))
        return true;
    }
    return false;
  }

  // The condition of a choice between values, the indices of a lookup; otherwise the operation itself.
  NodeId chooser(NodeId id) const {
    const ir::Node& node = program_.graph[id];
    if (node.kind != Kind::apply) return id;
    for (std::size_t i = 0; i < node.args.size() && node.args.size() > 1; ++i) {
      const bool alone = node.op->flat == 1U << i;  // the others are measured
      if (alone && varies(node.args[i])) return node.args[i];
    }
    return id;
  }

  char find_linear(NodeId id) const {
    const ir::Node& node = program_.graph[id];
    if (!varies(id)) return 1;
    if (node.kind == Kind::input) return 1;
    if (node.kind != Kind::apply) return 0;
    int varying = 0;
    for (const NodeId arg : node.args) {
      if (!linear(arg)) return 0;
      varying += varies(arg) ? 1 : 0;
    }
    switch (node.op->linear) {
      case Linear::no:
        return 0;
      case Linear::jointly:
        return 1;
      case Linear::singly:
        return varying == 1 ? 1 : 0;
      case Linear::first:
        return varying == 1 && varies(node.args[0]) ? 1 : 0;
    }
    return 0;
  }

  const ir::Program& program_;
  std::vector<char> linear_;
  std::map<NodeId, Shows> shown_in_;  // of each block
};

// What a message of this merge holds of single records, whatever was folded; empty when nothing.
std::string single_part(const Monoid& monoid) {
  if (monoid.shows_single && monoid.parts.size() == 1) return "it is the value of a single record";
  if (monoid.shows_single) {
    std::string parts;
    for (const Part& part : monoid.parts)
      parts += (parts.empty() ? "" : ", ") + std::string(part.name);
    return fmt::format("of what is sent ({}) a part is that of a single record", parts);
  }
  // A merge that neither adds nor rounds can only choose.
  return monoid.exact && !monoid.additive && monoid.plain == nullptr ? "a single record decides it"
                                                                     : "";
}

std::string group_reason(const Plan& plan, NodeId pick, bool moves) {
  std::string expression = ir::print_expr(plan.program, pick);
  const auto name = plan.program.names.find(pick);
  if (expression.size() > long_expression && name != plan.program.names.end())
    expression = name->second;
  const std::string who =
      expression.size() > long_expression ? "a condition on the data" : "`" + expression + "`";
  return who + (moves ? " picks other records in every iteration; a difference can be one record"
                      : " picks the records that count; a group of one shows its record");
}

// A value of which there is one per client is not folded with others before it leaves.
Disclosure clients_own(const Shows in_blocks) {
  if (in_blocks == Shows::single)
    return {Shows::single, "each client sends its own value, and single records decide it"};
  if (in_blocks == Shows::group)
    return {Shows::client,
            "each client sends its own value, for which the data pick the records that count"};
  return {Shows::client, "each client sends its own value; made of few records, it shows them"};
}

Disclosure disclose(const Plan& plan, const Merge& merge, const Dependence& dependence,
                    const ir::Homes& homes) {
  const std::string single = single_part(*merge.monoid);
  if (!single.empty()) return {Shows::single, single};
  const Monoid& monoid = *merge.monoid;
  const ir::Node& fold = plan.program.graph[merge.fold];
  if (fold.op->shape_only) return {Shows::total, std::string(monoid.total)};
  int varying = 0;
  bool linear = !monoid.total.empty();
  bool of_clients = false;
  Shows in_blocks = Shows::total;
  for (const NodeId arg : fold.args) {
    const Type& type = plan.program.graph[arg].type();
    of_clients = of_clients || (type.federated() && type.record_set() == ir::client_set);
    in_blocks = std::max(in_blocks, dependence.in_blocks(arg));
  }
  if (of_clients) return clients_own(in_blocks);
  if (in_blocks == Shows::single)
    return {Shows::single, "inside each client single records decide it"};
  NodeId pick = no_node;
  for (const NodeId arg : fold.args) {
    const NodeId found = dependence.pick(arg, homes);
    if (pick == no_node || (found != no_node && Dependence::moves(found, homes))) pick = found;
    varying += dependence.varies(arg) ? 1 : 0;
    linear = linear && dependence.linear(arg);
  }
  if (pick != no_node)
    return {Shows::group, group_reason(plan, pick, Dependence::moves(pick, homes))};
  if (linear && (varying <= 1 || fold.op->linear != Linear::singly))
    return {Shows::total, std::string(monoid.total)};
  const double neutral = (monoid.plain != nullptr ? *monoid.plain : monoid).parts.front().zero;
  return {
      Shows::terms,
      fmt::format("it {} one term of every record; where those of all others are {}, it shows a "
                  "single record",
                  monoid.joins, neutral)};
}

}  // namespace

std::string_view to_string(Shows shows) {
  static constexpr std::array<std::string_view, 5> words = {"total", "terms", "group", "client",
                                                            "single"};
  return words[static_cast<std::size_t>(shows)];
}

std::string_view plain_shows(Shows shows) {
  static constexpr std::array<std::string_view, 5> words = {
      "all records alike", "a term of every record", "groups of records", "each client's own value",
      "single records"};
  return words[static_cast<std::size_t>(shows)];
}

std::vector<std::vector<Disclosure>> disclosures(const Plan& plan) {
  const Dependence dependence(plan);
  const ir::Homes homes = ir::find_homes(plan.program);
  std::vector<std::vector<Disclosure>> all;
  for (const Round* round : rounds_of(plan)) {
    all.emplace_back();
    for (const Merge& merge : round->merges)
      all.back().push_back(disclose(plan, merge, dependence, homes));
  }
  return all;
}

}  // namespace starfold

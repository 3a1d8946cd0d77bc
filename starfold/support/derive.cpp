#include "starfold/support/derive.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "starfold/base/cases.h"
#include "starfold/base/error.h"
#include "starfold/ir/visit.h"
#include "starfold/support/choices.h"

namespace starfold::support {
namespace {

using ir::Kind;
using ir::no_node;
using ir::NodeId;

// More conditions than people write; each doubles the work of its sum, and a program may hold thousands. Nor more cases of them
// together.
constexpr std::size_t most_conditions = 64;
constexpr std::size_t most_cases = 256;

class Derivation {
 public:
  Derivation(const Plan& plan, const Round& round) : plan_(plan.program), round_(round) {
    program().signature = plan_.signature;
    program().sizes = plan_.sizes;
    copy_encoders();
  }

  SupportProgram run() {
    for (std::size_t i = 0; i < round_.merges.size(); ++i) {
      if (!is_per_client(plan_, round_.merges[i])) add_merge(i);
    }
    return std::move(result_);
  }

 private:
  ir::Program& program() { return result_.program; }

  NodeId add_input(const std::string& name, const Type& type, Span span) {
    ir::Node node;
    node.kind = Kind::input;
    node.index = static_cast<std::uint32_t>(program().inputs.size());
    node.types = {type};
    node.span = span;
    const NodeId id = program().graph.add(std::move(node));
    program().inputs.push_back({name, type, id, no_node, span});
    return id;
  }

  // What the round computes on records, from inputs of the same names.
  void copy_encoders() {
    std::set<NodeId> wanted(round_.constants.begin(), round_.constants.end());
    const std::set<NodeId> received(round_.receives.begin(), round_.receives.end());
    wanted.insert(received.begin(), received.end());
    // A count needs no encoder, but an input to count.
    std::vector<NodeId> read;
    for (const Merge& merge : round_.merges) {
      const std::vector<NodeId>& args = plan_.graph[merge.fold].args;
      if (!is_per_client(plan_, merge)) read.insert(read.end(), args.begin(), args.end());
    }
    ir::visit(plan_.graph, read, [&](NodeId id) { return wanted.insert(id).second; });
    for (const NodeId id : wanted) {
      const ir::Node& node = plan_.graph[id];
      if (received.count(id) != 0) {
        place_[id] = add_input(received_name(id), node.type(), node.span);
      } else if (node.kind == Kind::input) {
        place_[id] = add_input(plan_.inputs[node.index].name, node.type(), node.span);
      } else {
        place_[id] = copy(node);
      }
      origin_.emplace(place_[id], id);
    }
  }

  NodeId copy(ir::Node node) {
    for (NodeId& arg : node.args) arg = place_.at(arg);
    const Span span = node.span;
    // A condition that is a number chooses where it is not 0.
    if (ir::is_op(node, "where", 3)) {
      const ir::Node& condition = program().graph[node.args[0]];
      const bool truth = condition.kind == Kind::apply && condition.op->truth;
      if (condition.federated() && !truth) {
        node.args[0] = is_not_zero(node.args[0], span);
      }
    }
    return program().graph.add(std::move(node));
  }

  // The same condition for all choices by one number.
  NodeId is_not_zero(NodeId number, Span span) {
    const auto [known, is_new] = not_zero_.try_emplace(number, no_node);
    if (!is_new) return known->second;
    ir::Builder build(program(), span);
    known->second = build.call("!=", {number, build.number(0)});
    const auto of = origin_.find(number);
    if (of != origin_.end()) origin_.emplace(known->second, of->second);
    return known->second;
  }

  void add_merge(std::size_t merge) {
    ir::Node fold = plan_.graph[round_.merges[merge].fold];
    for (NodeId& arg : fold.args) arg = place_.at(arg);
    ir::Builder build(program(), fold.span);
    const std::vector<Part>& parts = plain_row(*round_.merges[merge].monoid).parts;
    std::vector<Dim> dims = fold.type().dims;
    std::vector<NodeId> state;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      Type type;
      type.dims = extents(parts[part], dims);
      state.push_back(add_input(state_name(merge, part), type, fold.span));
    }
    const std::vector<std::vector<Rest>> rests = fold.op->support(build, fold, state);
    if (rests.size() != parts.size()) throw Bug("a rule of support forgets a part");
    for (std::size_t part = 0; part < parts.size(); ++part) {
      for (const Rest& rest : rests[part]) add_rest(build, {merge, part, rest, true, false, {}, 0});
    }
  }

  void add_rest(ir::Builder& build, const Basis& basis) {
    const Terms terms = terms_of(build, basis.rest.sum);
    add_terms(basis, terms);
    if (!basis.rest.chosen) return;
    const std::vector<NodeId> left = truths(terms.left);
    const std::vector<NodeId> right = truths(terms.right);
    std::set<NodeId> all(left.begin(), left.end());
    all.insert(right.begin(), right.end());
    for (const NodeId truth : all) add_choice(build, basis, terms, {truth});
    // All conditions of a product together: each alone may leave out none that the others take in.
    std::set<NodeId> together = outermost(terms.left);
    together.merge(outermost(terms.right));
    if (together.size() > 1) add_choice(build, basis, terms, together);
    // And those that make one factor together, in each case of them.
    for (const NodeId side : {terms.left, terms.right}) {
      if (side == no_node) continue;
      for (const NodeId factor : factors_of(program().graph, side)) {
        const std::vector<NodeId> within = truths_in(program().graph, factor, true);
        if (within.size() < 2) continue;
        for (const Case& one : mixed_cases(within)) add_case(build, basis, terms, one);
      }
      for (const NodeId sign : signs_in(program().graph, side)) {
        for (const double value : {-1.0, 0.0, 1.0})
          add_case(build, basis, terms, Case{{sign, value}});
      }
    }
    add_joint_cases(build, basis, terms, together);
  }

  // The conditions and signs of all factors, in the cases of a few of them.
  void add_joint_cases(ir::Builder& build, const Basis& basis, const Terms& terms,
                       const std::set<NodeId>& conditions) {
    std::vector<NodeId> choices(conditions.begin(), conditions.end());
    std::vector<std::vector<double>> values(choices.size(), {0, 1});
    std::set<NodeId> multiplied;
    for (const NodeId side : {terms.left, terms.right}) {
      if (side == no_node) continue;
      multiplied.merge(multiplied_in(program().graph, side));
      for (const NodeId sign : signs_in(program().graph, side)) {
        if (std::find(choices.begin(), choices.end(), sign) != choices.end()) continue;
        choices.push_back(sign);
        values.push_back({-1, 0, 1});
      }
    }
    for (const ChoiceCase& one : joint_cases(values, most_with_triples)) {
      Case given;
      bool nothing = false;  // the term is 0 in this case, and all of it is unlike
      for (std::size_t i = 0; i < choices.size(); ++i) {
        if (!one[i]) continue;
        given[choices[i]] = *one[i];
        nothing = nothing || (*one[i] == 0 && multiplied.count(choices[i]) != 0);
      }
      if (!nothing) add_case(build, basis, terms, given);
    }
  }

  std::vector<NodeId> truths(NodeId id) {
    return id == no_node ? std::vector<NodeId>() : truths_in(program().graph, id);
  }
  std::set<NodeId> outermost(NodeId id) {
    if (id == no_node) return {};
    const std::vector<NodeId> found = truths_in(program().graph, id, true);
    return {found.begin(), found.end()};
  }

  void add_choice(ir::Builder& build, Basis basis, const Terms& terms,
                  const std::set<NodeId>& conditions) {
    basis.plain = false;
    for (const NodeId condition : conditions) name_condition(basis, condition);
    Choices choices(build, conditions);
    for (const bool left_out : {false, true}) {
      basis.left_out = left_out;
      add_terms(basis, part_of(build, choices, terms, [&](NodeId id) {
                  return left_out ? choices.left_out(id) : choices.chosen(id);
                }));
    }
  }

  // What is not as it would be in this case, and what is.
  void add_case(ir::Builder& build, Basis basis, const Terms& terms, const Case& one) {
    basis.plain = false;
    for (const auto& [condition, value] : one) name_condition(basis, condition);
    Choices choices(build, one);
    for (const bool left_out : {true, false}) {
      basis.left_out = left_out;
      add_terms(basis, part_of(build, choices, terms, [&](NodeId id) {
                  return left_out ? choices.unlike_case(id) : choices.like_case(id);
                }));
    }
  }

  void name_condition(Basis& basis, NodeId condition) const {
    const auto of = origin_.find(condition);
    if (of != origin_.end()) basis.conditions.push_back(of->second);
  }

  // Terms of which the side that depends on conditions has become a part of it.
  template <typename Part>
  static Terms part_of(ir::Builder& build, Choices& choices, const Terms& terms, const Part& part) {
    const bool in_left = choices.depends(terms.left);
    const bool in_right = terms.right != no_node && choices.depends(terms.right);
    if (in_left && in_right) return {part(whole(build, terms)), no_node};
    Terms result = terms;
    NodeId& side = in_left ? result.left : result.right;
    side = part(side);
    return result;
  }

  void add_terms(Basis basis, const Terms& terms) {
    const auto [at, is_new] = numbers_.emplace(terms, result_.terms.size());
    if (is_new) result_.terms.push_back(terms);
    basis.terms = at->second;
    const auto same = [&](const Basis& other) {
      return other.merge == basis.merge && other.part == basis.part &&
             other.rest.turn == basis.rest.turn && other.terms == basis.terms;
    };
    if (std::none_of(result_.bases.begin(), result_.bases.end(), same))
      result_.bases.push_back(std::move(basis));
  }

  const ir::Program& plan_;
  const Round& round_;
  SupportProgram result_;
  std::map<NodeId, NodeId> place_;
  std::map<NodeId, NodeId> origin_;
  std::map<NodeId, NodeId> not_zero_;
  std::map<Terms, std::size_t> numbers_;
};

// Whether a value of records is made of a private state.
bool reads_private_state(const ir::Program& program, const ir::Node& fold) {
  bool found = false;
  ir::visit(program.graph, fold.args, [&](NodeId id) {
    const ir::Node& node = program.graph[id];
    const bool state = node.kind == Kind::loop_param || node.kind == Kind::loop_result;
    found = found || (state && node.federated());
    return node.federated() && !found;
  });
  return found;
}

// Numbers by which `where` chooses, which become conditions.
std::set<NodeId> numbers_that_choose(const ir::Graph& graph, NodeId id) {
  std::set<NodeId> found;
  ir::visit(graph, {id}, [&](NodeId at) {
    const ir::Node& node = graph[at];
    if (node.federated() && ir::is_op(node, "where", 3)) {
      const ir::Node& condition = graph[node.args[0]];
      const bool truth = condition.kind == Kind::apply && condition.op->truth;
      if (condition.federated() && !truth) found.insert(node.args[0]);
    }
    return node.federated();
  });
  return found;
}

}  // namespace

bool is_per_client(const ir::Program& program, const Merge& merge) {
  for (const NodeId arg : program.graph[merge.fold].args) {
    const Type& type = program.graph[arg].type();
    if (type.federated()) return type.record_set() == ir::client_set;
  }
  return false;
}

std::string underivable(const Plan& plan, const Merge& merge) {
  if (is_per_client(plan.program, merge)) return {};
  const ir::Node& fold = plan.program.graph[merge.fold];
  if (reads_private_state(plan.program, fold))
    return fmt::format("`{}` takes in a private state, which has no rule of support",
                       fold.op->name);
  if (fold.op->support == nullptr) return fmt::format("`{}` has no rule of support", fold.op->name);
  std::set<NodeId> conditions;
  std::set<NodeId> outermost;
  std::set<NodeId> signs;
  for (const NodeId arg : fold.args) {
    const ir::Graph& graph = plan.program.graph;
    for (const NodeId truth : truths_in(graph, arg)) conditions.insert(truth);
    for (const NodeId truth : truths_in(graph, arg, true)) outermost.insert(truth);
    for (const NodeId sign : signs_in(graph, arg)) signs.insert(sign);
    const std::set<NodeId> numbers = numbers_that_choose(graph, arg);
    conditions.insert(numbers.begin(), numbers.end());
    outermost.insert(numbers.begin(), numbers.end());
  }
  if (conditions.size() + signs.size() > most_conditions)
    return fmt::format("{} conditions choose what `{}` takes in, more than {}",
                       conditions.size() + signs.size(), fold.op->name, most_conditions);
  std::vector<std::vector<double>> values(outermost.size(), {0, 1});
  values.resize(outermost.size() + signs.size(), {-1, 0, 1});
  const std::size_t cases = pair_cases(values);
  if (cases <= most_cases) return {};
  return fmt::format("conditions choose in {} cases what `{}` takes in, more than {}", cases,
                     fold.op->name, most_cases);
}

std::string received_name(NodeId id) { return fmt::format("received {}", id); }

std::string state_name(std::size_t merge, std::size_t part) {
  return fmt::format("state {} {}", merge, part);
}

SupportProgram derive_support(const Plan& plan, const Round& round) {
  return Derivation(plan, round).run();
}

}  // namespace starfold::support

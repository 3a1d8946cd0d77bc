#include "starfold/support/choices.h"

#include <algorithm>

#include "starfold/ir/forms.h"
#include "starfold/ir/visit.h"

namespace starfold::support {
namespace {

using ir::is_op;
using ir::is_view;
using ir::Kind;
using ir::NodeId;

// For each node, whether every entry is 0 or 1, as far as the operations say.
std::vector<bool> find_truths(const ir::Graph& graph, NodeId last) {
  std::vector<bool> truth(last + 1);
  for (NodeId id = 0; id <= last; ++id) {
    const ir::Node& node = graph[id];
    if (node.kind != Kind::apply || !node.federated()) continue;
    const bool keeps = ir::is_product(node) || is_view(node);
    truth[id] = node.op->truth || (keeps && std::all_of(node.args.begin(), node.args.end(),
                                                        [&](NodeId arg) { return truth[arg]; }));
  }
  return truth;
}

// Whether a value's entries are products of its operands' entries, or quotients of them.
bool is_one_by_one(const ir::Node& node) {
  return ir::is_product(node) || ir::is_quotient(node) || ir::is_outer(node) ||
         is_op(node, "-", 1) || (is_view(node) && node.args.size() == 1);
}

bool is_number(const ir::Node& node, double value) {
  return node.kind == Kind::constant && node.type().is_scalar() && node.value.item() == value;
}

}  // namespace

std::vector<NodeId> truths_in(const ir::Graph& graph, NodeId id, bool outermost) {
  const std::vector<bool> is_truth = find_truths(graph, id);
  const auto is_compound = [&](const ir::Node& node) {
    return std::all_of(node.args.begin(), node.args.end(),
                       [&](NodeId arg) { return !graph[arg].federated() || is_truth[arg]; });
  };
  std::vector<NodeId> found;
  ir::visit(graph, {id}, [&](NodeId at) {
    const ir::Node& node = graph[at];
    const bool truth = node.federated() && is_truth[at] && !is_view(node);
    if (truth) found.push_back(at);
    // What a comparison compares is no condition of its own.
    return node.federated() && !(truth && (outermost || !is_compound(node)));
  });
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<NodeId> signs_in(const ir::Graph& graph, NodeId id) {
  const std::vector<bool> is_truth = find_truths(graph, id);
  std::vector<NodeId> found;
  ir::visit(graph, {id}, [&](NodeId at) {
    const ir::Node& node = graph[at];
    if (!node.federated() || (is_truth[at] && !is_view(node))) return false;
    if (is_op(node, "sign", 1)) found.push_back(at);
    return true;
  });
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<NodeId> factors_of(const ir::Graph& graph, NodeId id) {
  std::vector<NodeId> factors;
  ir::visit(graph, {id}, [&](NodeId at) {
    if (!graph[at].federated()) return false;
    const bool product = is_one_by_one(graph[at]);
    if (!product) factors.push_back(at);
    return product;
  });
  return factors;
}

std::set<NodeId> multiplied_in(const ir::Graph& graph, NodeId id) {
  std::set<NodeId> found;
  ir::visit(graph, {id}, [&](NodeId at) {
    if (graph[at].federated()) found.insert(at);
    return graph[at].federated() && is_one_by_one(graph[at]);
  });
  return found;
}

std::vector<Case> mixed_cases(const std::vector<NodeId>& truths) {
  constexpr std::size_t few = 3;
  std::vector<Case> cases;
  if (truths.size() <= few) {
    for (std::size_t bits = 1; bits + 1 < std::size_t{1} << truths.size(); ++bits) {
      Case& one = cases.emplace_back();
      for (std::size_t i = 0; i < truths.size(); ++i)
        one[truths[i]] = static_cast<double>(bits >> i & 1U);
    }
    return cases;
  }
  for (const NodeId other : truths) {
    for (const double value : {0.0, 1.0}) {
      Case& one = cases.emplace_back();
      for (const NodeId truth : truths) one[truth] = truth == other ? 1 - value : value;
    }
  }
  return cases;
}

// Operands have smaller numbers, so a walk in order needs no recursion, however long the program is.
void Choices::learn(NodeId last) {
  for (NodeId id = static_cast<NodeId>(depends_.size()); id <= last; ++id) {
    const ir::Node& node = build_.node(id);
    const bool varies =
        std::any_of(node.args.begin(), node.args.end(), [&](NodeId arg) { return depends_[arg]; });
    depends_.push_back(truths_.count(id) != 0 || (node.federated() && varies));
  }
}

bool Choices::depends(NodeId id) {
  learn(id);
  return depends_[id];
}

// What a value is made of, as far as it depends on the truth values, operands first.
std::vector<NodeId> Choices::below(NodeId id) {
  std::set<NodeId> found;
  ir::visit(build_.program().graph, {id}, [&](NodeId at) {
    if (depends(at)) found.insert(at);
    return depends(at) && truths_.count(at) == 0;
  });
  return {found.begin(), found.end()};
}

NodeId Choices::of(NodeId id, Which which) {
  for (const NodeId at : below(id)) part(at, which);
  return part(id, which);
}

NodeId Choices::part(NodeId id, Which which) {
  const auto known = parts_.find({id, which});
  if (known != parts_.end()) return known->second;
  NodeId result = id;
  if (truths_.count(id) == 0) {
    result = part_of_operation(id, which);
    // An operand that the others stretch stretches here too.
    if (!(build_.type(result) == build_.type(id)))
      result = build_.add(result, build_.call("zeros_like", {id}));
    if (is_same(id, result)) result = id;
  } else if (which == Which::left_out) {
    result = build_.sub(build_.number(1), id);
  }
  parts_.emplace(std::pair(id, which), result);
  return result;
}

// Whether two nodes are one computation: what a condition chooses of `where(c, x, 0)` is all of it.
bool Choices::is_same(NodeId a, NodeId b) const {
  const ir::Node& one = build_.node(a);
  const ir::Node& other = build_.node(b);
  const auto same = [&](NodeId x, NodeId y) {
    return x == y || (is_number(build_.node(x), 0) && is_number(build_.node(y), 0));
  };
  return one.kind == Kind::apply && other.kind == Kind::apply && one.op == other.op &&
         one.attrs == other.attrs &&
         std::equal(one.args.begin(), one.args.end(), other.args.begin(), other.args.end(), same);
}

NodeId Choices::part_of_operation(NodeId id, Which which) {
  const ir::Node node = build_.node(id);
  std::vector<std::size_t> varying;
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    if (depends(node.args[i])) varying.push_back(i);
  }
  const auto only = [&](std::size_t i) { return varying.size() == 1 && varying[0] == i; };
  const Linear how = node.op->linear;
  if (how == Linear::jointly) {
    if (node.op->kernel != Kernel::binary || varying.size() == 2) return linear(node, which);
    const NodeId one = part(node.args[varying[0]], which);
    return is_op(node, "-", 2) && only(1) ? build_.call("-", {one}) : one;
  }
  if ((how == Linear::singly && varying.size() == 1) || (how == Linear::first && only(0))) {
    std::vector<NodeId> args = node.args;
    args[varying[0]] = part(args[varying[0]], which);
    return with_args(node, std::move(args));
  }
  if (is_op(node, "where", 3)) {
    if (only(0) && truths_.count(node.args[0]) != 0) return of_where(id, which);
    if (!depends(node.args[0])) {
      std::vector<NodeId> args = {node.args[0], build_.number(0), build_.number(0)};
      for (const std::size_t i : varying) args[i] = part(node.args[i], which);
      return build_.call("where", std::move(args));
    }
  }
  return difference(id, which);
}

// An operation that is linear in all operands together; those that do not vary become 0.
NodeId Choices::linear(const ir::Node& node, Which which) {
  std::vector<NodeId> args;
  for (const NodeId arg : node.args)
    args.push_back(depends(arg) ? part(arg, which) : build_.call("zeros_like", {arg}));
  return with_args(node, std::move(args));
}

// Whatever the operation is. What would not be finite is no reason against what is: it could not be sent.
NodeId Choices::difference(NodeId id, Which which) {
  const Setting setting = which == Which::left_out ? Setting::all_true : Setting::none_true;
  for (const NodeId at : below(id)) set_to(at, setting);
  const NodeId other = finite(set_to(id, setting));
  return which == Which::chosen ? minus(id, other) : minus(other, id);
}

NodeId Choices::in_case(NodeId id) {
  for (const NodeId at : below(id)) set_to(at, Setting::as_in_case);
  return finite(set_to(id, Setting::as_in_case));
}

NodeId Choices::unlike_case(NodeId id) { return minus(id, in_case(id)); }

// What is the same but for rounding is the same: otherwise few would be, by chance.
NodeId Choices::like_case(NodeId id) {
  constexpr double rounding = 1e-9;
  const NodeId unlike = build_.call("abs", {minus(id, in_case(id))});
  const NodeId within = build_.mul(build_.number(rounding), build_.call("abs", {id}));
  return build_.call("where", {build_.call("<=", {unlike, within}), id, build_.number(0)});
}

NodeId Choices::value_of(NodeId truth, Setting setting) {
  double value = setting == Setting::all_true ? 1 : 0;
  if (setting == Setting::as_in_case) value = case_.at(truth);
  const NodeId ones = build_.call(value == 0 ? "zeros_like" : "ones_like", {truth});
  return value < 0 ? build_.call("-", {ones}) : ones;
}

NodeId Choices::of_where(NodeId id, Which which) {
  const std::vector<NodeId> args = build_.node(id).args;
  const NodeId zero = build_.number(0);
  if (which == Which::chosen)
    return build_.call("where", {args[0], minus(args[1], finite(args[2])), zero});
  return build_.call("where", {args[0], zero, minus(finite(args[1]), args[2])});
}

NodeId Choices::set_to(NodeId id, Setting setting) {
  if (truths_.count(id) != 0) return value_of(id, setting);
  if (!depends(id)) return id;
  const auto known = set_.find({id, setting});
  if (known != set_.end()) return known->second;
  const ir::Node node = build_.node(id);
  std::vector<NodeId> args;
  for (const NodeId arg : node.args) args.push_back(set_to(arg, setting));
  // What was a label or an index may be none now.
  if (ir::has_kernel(node, Kernel::one_hot)) args[0] = picking(args[0], node.attrs.sizes[0]);
  if (ir::has_kernel(node, Kernel::lookup))
    args[1] = picking(args[1], build_.type(args[0]).dims[0].size);
  const NodeId result = with_args(node, std::move(args));
  set_.emplace(std::pair(id, setting), result);
  return result;
}

// The same operation on other operands of the same types; types are found again where they changed.
NodeId Choices::with_args(ir::Node node, std::vector<NodeId> args) {
  std::vector<Type> types;
  for (const NodeId arg : args) types.push_back(build_.type(arg));
  const ir::Typing typing = ir::type_again(*node.op, std::move(types), node.attrs, node.span);
  if (typing.types) node.types = *typing.types;
  node.args = std::move(args);
  return build_.program().graph.add(std::move(node));
}

// The value where it picks one of so many, and something that does where it does not.
NodeId Choices::picking(NodeId id, const Size& count) {
  const NodeId one = build_.number(1);
  const NodeId most = build_.call("min", {build_.call("floor", {id}), build_.size(count)});
  return build_.call("where", {build_.call(">=", {id, one}), most, one});
}

NodeId Choices::minus(NodeId a, NodeId b) {
  if (is_number(build_.node(b), 0)) return a;
  if (is_number(build_.node(a), 0)) return build_.call("-", {b});
  return build_.sub(a, b);
}

// 0 where a value is infinite or nan.
NodeId Choices::finite(NodeId id) {
  if (!build_.node(id).federated()) return id;
  const NodeId sure = build_.call("==", {build_.sub(id, id), build_.number(0)});
  return build_.call("where", {sure, id, build_.number(0)});
}

}  // namespace starfold::support

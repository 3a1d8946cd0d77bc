// Derivatives through `each client`: the way back through a block is a block, which gets the adjoint of a result and
// gives, at each client, the products of it with the block's derivatives by what the block saw.
#include <algorithm>

#include "starfold/diff/sweep.h"

namespace starfold::diff {
namespace {

using ir::Kind;
using ir::Label;
using ir::no_label;
using ir::no_node;

bool has_label(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

bool at_clients(const Type& type) {
  return type.federated() && type.record_set() == ir::client_set;
}

}  // namespace

void Sweep::through_block(NodeId id) {
  const bool part = build_.node(id).kind == Kind::project;
  const std::uint32_t result = part ? build_.node(id).index : 0;
  const NodeId block = part ? build_.node(id).args[0] : id;
  // Inside, a derivative is taken by what every record shares: what changes record by record moves in.
  const ir::Node local = ir::inline_maps(build_.program(), build_.node(block),
                                         [&](NodeId operand) { return active(operand); });
  for (const NodeId operand : local.args) {
    const Type& type = build_.type(operand);
    if (!active(operand) || !type.federated()) continue;
    if (at_clients(type) && (star_ == no_label || algebra_.dim(star_).record_set == ir::client_set))
      continue;
    report_.failed = true;
    report_.diagnostics.report(
        {Code::NoDerivative,
         "cannot differentiate through records that one block gives to another",
         {report_.call, report_.variable.empty()
                            ? "the variable is used through two blocks"
                            : "`" + report_.variable + "` is used through two blocks"},
         {{local.span, "this block takes them"}},
         "a derivative by each record of a client does not fit into one value per record",
         "write both blocks as one"});
    return;
  }
  for (Product& adjoint : adjoint_of(id)) {
    through_block(id, local, result, std::move(adjoint));
    if (report_.failed) return;
  }
}

void Sweep::through_block(NodeId id, const ir::Node& local, std::uint32_t result, Product adjoint) {
  const Labels own = labels_of(id);
  const bool per_client = at_clients(build_.type(id));
  const Label client = algebra_.label(Dim::record(ir::client_set));
  const Labels layout = order_for(own);
  const NodeId given = algebra_.node(std::move(adjoint), layout);

  // The adjoint becomes one more operand, and its product with the result a value inside.
  ir::Local block = *local.block;
  ir::Program& body = block.body;
  const Type seen = ir::seen_inside(block, build_.type(given));
  ir::Node input;
  input.kind = Kind::input;
  input.types = {seen};
  input.index = static_cast<std::uint32_t>(body.inputs.size());
  input.span = local.span;
  const NodeId inside = body.graph.add(std::move(input));
  body.inputs.push_back(
      {"adjoint of " + std::to_string(body.inputs.size()), seen, inside, no_node, local.span});
  ir::Builder build(body, local.span);
  ir::Algebra algebra(build);
  const NodeId value = body.outputs[result].node;
  const Labels value_labels = algebra.labels(build.type(value));
  Labels given_labels;  // inside
  Labels kept;          // the axes of what is differentiated
  Labels kept_outside;
  for (const Label label : layout) {
    if (label == client) continue;
    const auto at = std::find(own.begin(), own.end(), label);
    if (at != own.end() && label != star_) {
      given_labels.push_back(
          value_labels[static_cast<std::size_t>(at - own.begin()) - (per_client ? 1 : 0)]);
      continue;
    }
    const Label lead = at != own.end() ? value_labels[static_cast<std::size_t>(at - own.begin())]
                                       : algebra.label(algebra_.dim(label));
    given_labels.push_back(lead);
    kept.push_back(lead);
    kept_outside.push_back(label);
  }
  Labels over;
  for (const Label label : value_labels) {
    if (label != no_label && !has_label(kept, label)) over.push_back(label);
  }
  Product product;
  algebra.multiply(product, inside, given_labels);
  algebra.multiply(product, value, value_labels);
  const NodeId joined = algebra.node(algebra.sum(std::move(product), over, kept), kept);

  std::vector<std::size_t> wanted;
  body.outputs.clear();
  for (std::size_t i = 0; i < local.args.size(); ++i) {
    if (!active(local.args[i])) continue;
    const NodeId by = body.inputs[i].node;
    const ActiveStates states = active_states(body, reach(body, joined), by);
    const NodeId derivative = Sweep(build, joined, by, states, report_).run();
    if (report_.failed) return;
    if (derivative == no_node) continue;
    wanted.push_back(i);
    body.outputs.push_back({std::to_string(wanted.size()), derivative, local.span});
  }
  if (wanted.empty()) return;
  ir::Node back = local;
  back.args.push_back(given);
  back.block = ir::make_local(std::move(block));
  back.types = ir::local_types(*back.block);
  const std::vector<Type> types = back.types;
  const NodeId node = build_.program().graph.add(std::move(back));
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    NodeId part = node;
    if (types.size() > 1) {
      ir::Node project;
      project.kind = Kind::project;
      project.types = {types[k]};
      project.args = {node};
      project.index = static_cast<std::uint32_t>(k);
      project.span = local.span;
      part = build_.program().graph.add(std::move(project));
    }
    const NodeId operand = local.args[wanted[k]];
    const bool row = at_clients(types[k]);
    Labels labels;
    if (row) labels.push_back(client);
    labels.insert(labels.end(), kept_outside.begin(), kept_outside.end());
    for (const Label label : labels_of(operand)) {
      if (label == no_label || !algebra_.is_star(label)) labels.push_back(label);
    }
    Product product_outside;
    algebra_.multiply(product_outside, part, labels);
    const bool stays = !row || star_ == client || build_.type(operand).federated();
    contribute(operand, stays ? std::move(product_outside)
                              : algebra_.sum(std::move(product_outside), {client},
                                             order_for(labels_of(operand))));
  }
}

}  // namespace starfold::diff

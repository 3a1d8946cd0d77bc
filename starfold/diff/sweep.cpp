#include "starfold/diff/sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/base/error.h"

namespace starfold::diff {
namespace {

using ir::Kind;
using ir::no_label;
using ir::no_node;

// Deltas in one order, so that products can be compared by them.
void normalize(Product& product) {
  for (auto& [a, b] : product.deltas) {
    if (a > b) std::swap(a, b);
  }
  std::sort(product.deltas.begin(), product.deltas.end());
}

// A chain of many element-wise operations must not carry each of its factors to the end.
constexpr std::size_t most_factors = 12;

}  // namespace

Sweep::Sweep(ir::Builder& build, NodeId of, NodeId by, const ActiveStates& active_states,
             Report& report)
    : build_(build),
      algebra_(build),
      of_(of),
      by_(by),
      active_states_(active_states),
      report_(report),
      lead_(algebra_.labels(build.type(of))),
      star_(no_label) {
  const std::optional<std::size_t> record_axis = build.type(of).record_axis();
  if (record_axis) star_ = lead_[*record_axis];
}

const Labels& Sweep::labels_of(NodeId id) {
  const auto known = labels_.find(id);
  if (known != labels_.end()) return known->second;
  return labels_.emplace(id, algebra_.labels(build_.type(id))).first->second;
}

// The labels of a value's adjoint as it will be laid out: records first, then the rest of the
// lead, then the value's own axes.
Labels Sweep::order_for(const Labels& labels) const {
  Labels order;
  if (star_ != no_label) order.push_back(star_);
  const auto append = [&](const Labels& more) {
    for (const ir::Label label : more) {
      if (label != no_label && label != star_) order.push_back(label);
    }
  };
  append(lead_);
  append(labels);
  return order;
}

bool Sweep::moves(const ir::Node& node) const {
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    if (active(node.args[i]) && (node.op == nullptr || !node.op->flat_in(i))) return true;
  }
  return false;
}

void Sweep::find_active(const ActiveStates& active_states) {
  active_.assign(of_ - by_ + 1, false);
  active_[0] = true;
  for (NodeId id = by_ + 1; id <= of_; ++id) {
    const ir::Node& node = build_.node(id);
    const bool result = node.kind == Kind::loop_result;
    active_[id - by_] = result ? active_states.count({node.index, node.slot}) != 0 : moves(node);
  }
}

void Sweep::seed() {
  Product one;
  const Labels& labels = labels_of(of_);
  for (std::size_t i = 0; i < lead_.size(); ++i) {
    if (lead_[i] != labels[i]) one.deltas.emplace_back(lead_[i], labels[i]);
  }
  contribute(of_, std::move(one));
}

void Sweep::contribute(NodeId to, Product product) {
  if (product.number == 0) return;
  normalize(product);
  adjoints_[to].push_back(std::move(product));
}

// What has been contributed, added up; products with different deltas stay apart.
std::vector<Product> Sweep::adjoint_of(NodeId id) {
  std::vector<Product> terms;
  const auto found = adjoints_.find(id);
  if (found == adjoints_.end()) return terms;
  const Labels order = order_for(labels_of(id));
  std::reverse(found->second.begin(), found->second.end());  // in the order of the program
  for (Product& product : found->second) {
    const auto same = std::find_if(terms.begin(), terms.end(),
                                   [&](const Product& p) { return p.deltas == product.deltas; });
    if (same == terms.end()) {
      terms.push_back(std::move(product));
    } else {
      *same = algebra_.add(std::move(*same), std::move(product), order);
    }
  }
  std::erase_if(terms, [](const Product& p) { return p.number == 0; });
  for (Product& product : terms) {
    if (product.factors.size() <= most_factors) continue;
    ir::Factor all = algebra_.join(std::move(product.factors), 1, order);
    product.factors = {std::move(all)};
  }
  return terms;
}

void Sweep::fail(const ir::Node& node, std::string reason, std::string help) {
  report_.failed = true;
  const bool loop = node.kind == Kind::loop_result || node.kind == Kind::local;
  const std::string what = loop ? "a `repeat` loop" : fmt::format("`{}`", node.op->name);
  std::vector<starfold::Label> others;
  if (!(node.span == report_.call)) {
    others.push_back(
        {node.kind == Kind::loop_result ? build_.program().loops[node.index].span : node.span,
         fmt::format("{} is used here", what)});
  }
  report_.diagnostics.report(
      {Code::NoDerivative,
       fmt::format("cannot differentiate through {}", what),
       {report_.call, report_.variable.empty()
                          ? fmt::format("the variable is used through {}", what)
                          : fmt::format("`{}` is used through {}", report_.variable, what)},
       std::move(others),
       std::move(reason),
       std::move(help)});
}

void Sweep::visit(NodeId id) {
  const ir::Node node = build_.node(id);  // a copy: the graph grows
  const bool is_apply = node.kind == Kind::apply || node.kind == Kind::project;
  const ir::Node& behind = build_.node(node.kind == Kind::project ? node.args[0] : id);
  const bool passes = behind.block && behind.block->batches;
  if (behind.block && !passes) return through_block(id);
  if (node.kind == Kind::loop_result || passes) {
    return fail(
        passes ? ir::Node(behind) : node,
        "the steps of a loop are not kept, so the way back through them is not known",
        "differentiate inside the loop, or hold the loop's result fixed with `stop_gradient(...)`");
  }
  if (!is_apply && node.kind != Kind::variable) return;
  const NodeId applied = node.kind == Kind::project ? node.args[0] : id;
  const Op* op = build_.node(applied).op;
  if (is_apply && op->derivative == nullptr) {
    return fail(build_.node(applied), "it was registered without a derivative",
                "hold it fixed with `stop_gradient(...)`");
  }
  const bool takes_federated = std::any_of(
      node.args.begin(), node.args.end(), [&](NodeId arg) { return build_.node(arg).federated(); });
  if (star_ != no_label && takes_federated && !node.federated()) return through_fold(id);
  for (Product& product : adjoint_of(id)) {
    Pullback pullback(*this, applied, std::move(product));
    if (is_apply) {
      op->derivative(pullback);
    } else {
      pullback.pass(0);
    }
    if (report_.failed) return;
  }
}

// Record by record, a fold is a shared value that depends on all records. Its own derivative by the
// variable is shared, and the chain rule joins the two.
void Sweep::through_fold(NodeId id) {
  const NodeId inner = Sweep(build_, id, by_, active_states_, report_).run();
  if (inner == no_node || report_.failed) return;
  Labels labels = labels_of(id);
  const Labels& variable = labels_of(by_);
  labels.insert(labels.end(), variable.begin(), variable.end());
  for (Product& product : adjoint_of(id)) {
    algebra_.multiply(product, inner, labels);
    contribute(by_, algebra_.sum(std::move(product), labels_of(id), order_for(variable)));
  }
}

NodeId Sweep::assemble() {
  const std::vector<Product> terms = adjoint_of(by_);
  if (terms.empty()) return no_node;
  const Labels& variable = labels_of(by_);
  Product total = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    // Terms with different deltas meet only here.
    Product other = terms[i];
    for (Product* product : {&total, &other}) {
      for (const auto& [a, b] : product->deltas) {
        product->factors.push_back(
            {build_.call("eye", {}, {}, {algebra_.dim(a).size}), {a, b}, false});
      }
      product->deltas.clear();
    }
    total = algebra_.add(std::move(total), std::move(other), order_for(variable));
  }
  Labels layout = lead_;
  layout.insert(layout.end(), variable.begin(), variable.end());
  return algebra_.node(std::move(total), layout);
}

NodeId Sweep::run() {
  if (of_ < by_) return no_node;
  find_active(active_states_);
  if (!active(of_)) return no_node;
  seed();
  for (NodeId id = of_; id > by_ && !report_.failed; --id) {
    if (active(id) && adjoints_.count(id) != 0) visit(id);
    if (build_.program().graph.size() > report_.most_nodes) throw ir::TooLarge("it is too long");
  }
  return report_.failed ? no_node : assemble();
}

}  // namespace starfold::diff

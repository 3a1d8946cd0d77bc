#include "starfold/privacy/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "starfold/ir/forms.h"
#include "starfold/privacy/box.h"

namespace starfold::privacy {
namespace {

using ir::NodeId;

// The record set with one record per client.
constexpr std::string_view client_set = "client";

// Expressions longer than this are spoken of, not repeated.
constexpr std::size_t long_text = 60;

// The norms of the difference of two such cells.
Norms difference(const CellBound& cell, const Type& type, const SizeValues& sizes, bool acute) {
  const Norms& size = cell.norms;
  Norms change{size.l1 * 2, size.l2 * (acute ? std::sqrt(2.0) : 2.0), size.linf * 2};
  const Interval all = cell.box.hull();
  if (all.lo >= 0 || all.hi <= 0) change.linf = size.linf;
  change = tighter(change, norms_of(widths(cell.box), type, sizes));
  if (at_most(change.l2, change.linf)) change.linf = change.l2;
  return change;
}

class Analysis {
 public:
  Analysis(const Plan& plan, Unit unit, Neighbours neighbours, const Known& known)
      : plan_(plan), bounds_(plan.program, known), unit_(unit), neighbours_(neighbours) {
    find_mixed();
  }

  RoundSensitivity round(const Round& round) const {
    RoundSensitivity result;
    result.change = {0, 0, 0};
    for (const Merge& merge : round.merges) {
      result.merges.push_back(of(merge));
      const Norms& own = result.merges.back().change;
      result.change.l1 = result.change.l1 + own.l1;
      result.change.l2 = result.change.l2 + own.l2 * own.l2;
      result.change.linf = max(result.change.linf, own.linf);
    }
    result.change.l2 = sqrt(result.change.l2);
    return result;
  }

 private:
  const ir::Node& node(NodeId id) const { return plan_.program.graph[id]; }

  // Whether a record's value may depend on other records: it is not made of inputs by operations alone, or of private states that
  // are. A state is taken for such until an update shows that it is not.
  void find_mixed() {
    std::set<std::pair<std::uint32_t, std::uint32_t>> states;  // that are mixed: loop, slot
    std::size_t known = 0;
    do {
      known = states.size();
      mixed_.clear();
      for (NodeId id = 0; id < plan_.program.graph.size(); ++id)
        mixed_.push_back(mixes(id, states));
      for (std::uint32_t loop = 0; loop < plan_.program.loops.size(); ++loop) {
        const auto& carried = plan_.program.loops[loop].carried;
        for (std::uint32_t slot = 0; slot < carried.size(); ++slot) {
          if (mixed_[carried[slot].init] || mixed_[carried[slot].next]) states.insert({loop, slot});
        }
      }
    } while (states.size() > known);
  }

  bool mixes(NodeId id, const std::set<std::pair<std::uint32_t, std::uint32_t>>& states) const {
    const ir::Node& value = node(id);
    bool own = value.kind == ir::Kind::input || value.kind == ir::Kind::apply ||
               value.kind == ir::Kind::variable;
    if (value.kind == ir::Kind::loop_param || value.kind == ir::Kind::loop_result)
      own = states.count({value.index, value.slot}) == 0;
    if (value.federated() && !own) return true;
    return std::any_of(value.args.begin(), value.args.end(),
                       [&](NodeId arg) { return node(arg).federated() && mixed_[arg]; });
  }

  MergeSensitivity of(const Merge& merge) const {
    const ir::Node& fold = node(merge.fold);
    MergeSensitivity result;
    if (!merge.monoid->additive) {
      result.unbounded = not_additive(merge);
      return result;
    }
    const CellBound term = bounds_.term(merge.fold);
    result.term = term.norms;
    result.entry = term.box.hull();
    if (!term.bounded()) {
      result.unbounded = without_bound(merge.fold);
      return result;
    }
    const bool per_client = node(federated_operand(fold)).type().record_set() == client_set;
    if (unit_ == Unit::record && !per_client && mixed_[merge.fold]) {
      result.unbounded = many_terms(merge.fold);
      return result;
    }
    if (unit_ == Unit::client && !per_client && !term.norms.l1.is_zero()) {
      result.unbounded = many_records(merge.fold);
      return result;
    }
    // A record changes what its client sends, but not whether it does.
    const bool replaces =
        neighbours_ == Neighbours::replace || (unit_ == Unit::record && per_client);
    result.change =
        replaces ? difference(term, fold.type(), bounds_.known().sizes, is_acute(fold, term.box))
                 : term.norms;
    result.from = origins(merge.fold);
    return result;
  }

  NodeId federated_operand(const ir::Node& fold) const {
    return *std::find_if(fold.args.begin(), fold.args.end(),
                         [&](NodeId arg) { return node(arg).federated(); });
  }

  // Whether no two terms point away from each other, so that |a - b|^2 <= |a|^2 + |b|^2: terms of one sign, and squares
  // of vectors, x' @ x and x' @ (w * x) with weights w that are not negative.
  bool is_acute(const ir::Node& fold, const Box& term) const {
    const Interval all = term.hull();
    if (all.lo >= 0 || all.hi <= 0) return true;
    if (!ir::is_matmul(fold)) return false;
    const ir::Node& left = node(fold.args[0]);
    if (!ir::is_permutation(left) || left.type().rank() != 2) return false;
    const NodeId vector = left.args[0];
    const ir::Node& right = node(fold.args[1]);
    if (vector == fold.args[1]) return true;
    if (!ir::is_product(right)) return false;
    return (right.args[0] == vector && is_weight(right.args[1])) ||
           (right.args[1] == vector && is_weight(right.args[0]));
  }

  // One number for each record, or for all, that is not negative but for rounding, for which bounds have room.
  bool is_weight(NodeId id) const {
    const std::vector<Dim>& dims = node(id).type().dims;
    const bool single = std::all_of(dims.begin(), dims.end(), [](const Dim& dim) {
      return dim.star || dim.size.evaluate({}) == 1;
    });
    const Interval all = bounds_[id].box.hull();
    return single && all.lo >= -1e-12 * all.hi;
  }

  // Counts have their bound from themselves.
  std::vector<NodeId> origins(NodeId fold) const {
    std::vector<NodeId> all;
    if (!node(fold).op->shape_only) {
      for (const NodeId arg : node(fold).args) {
        for (const NodeId origin : bounds_.origins(arg)) {
          if (std::find(all.begin(), all.end(), origin) == all.end()) all.push_back(origin);
        }
      }
    }
    return all.empty() ? std::vector<NodeId>{fold} : all;
  }

  Unbounded not_additive(const Merge& merge) const {
    Unbounded result;
    result.code = Code::NotASum;
    result.expr = describe_fold(plan_, merge.fold);
    result.where = node(merge.fold).span;
    result.message = fmt::format("`{}` cannot be released privately", shortened(result.expr));
    result.reason = "only sums over records can be masked or released with noise, and this is none";
    result.help = merge.monoid->instead;
    return result;
  }

  Unbounded without_bound(NodeId fold) const {
    NodeId operand = federated_operand(node(fold));
    for (const NodeId arg : node(fold).args) {
      if (!bounds_[arg].bounded()) {
        operand = arg;
        break;
      }
    }
    const NodeId id = bounds_.culprit(operand);
    const ir::Node& value = node(id);
    Unbounded result;
    result.expr = describe(plan_, id);
    result.where = value.kind == ir::Kind::apply ? value.span : node(fold).span;
    result.reason = fmt::format(
        "noise must hide what any one {} adds, so that must have a bound which does not depend "
        "on the data",
        to_string(unit_));
    if (const NodeId at = unknown_bound(value); at != ir::no_node) {
      const std::string bound = describe(plan_, at);
      result.code = Code::UnknownClip;
      result.message = fmt::format("nobody knows yet how large `{}` is, which is to bound `{}`",
                                   bound, shortened(describe(plan_, value.args[0])));
      result.help =
          node(at).kind == ir::Kind::input
              ? fmt::format("write a number, give it a default, or set it: `--set {}=...`", bound)
              : "write a number, or a shared input that is set before the run";
      return result;
    }
    result.message = fmt::format("one {} may change `{}` by any amount", to_string(unit_),
                                 shortened(describe_fold(plan_, fold)));
    const bool long_one = result.expr.size() > long_text;
    const char* clip = value.type().rank() <= 1 ? "clip({}, lo, hi)" : "clip_norm({}, c)";
    result.help = fmt::format("use `{}`{} with numbers that need no look at the data",
                              fmt::format(fmt::runtime(clip), long_one ? "e" : result.expr),
                              long_one ? " in the place of this expression e," : "");
    // Products of two sides may need two clips; what a record adds as a whole needs one.
    if (node(fold).op->family == Family::matmul)
      result.help += "; or clip what each record adds as a whole: `sum[*](clip_norm(e, c))`";
    return result;
  }

  // Of a clip: the bound that is not known; no_node where all are, or this is none.
  NodeId unknown_bound(const ir::Node& value) const {
    if (value.kind != ir::Kind::apply || !value.op->clips) return ir::no_node;
    for (std::size_t i = 1; i < value.args.size(); ++i) {
      if (!bounds_[value.args[i]].bounded() && !node(value.args[i]).federated())
        return value.args[i];
    }
    return ir::no_node;
  }

  Unbounded many_terms(NodeId fold) const {
    Unbounded result;
    result.expr = describe_fold(plan_, fold);
    result.where = node(fold).span;
    result.message =
        fmt::format("one record may change `{}` by any amount", shortened(result.expr));
    result.reason = "what other records of the same client add depends on it too";
    result.help = "fold inside `each client`, clip the result there, and add that up over clients";
    return result;
  }

  Unbounded many_records(NodeId fold) const {
    Unbounded result;
    result.code = Code::UnboundedClient;
    result.expr = describe_fold(plan_, fold);
    result.where = node(fold).span;
    result.message =
        fmt::format("one client may change `{}` by any amount", shortened(result.expr));
    result.reason = "a client may have any number of records, each of which adds to it";
    result.help =
        "bound what each client adds, `each client { clip_norm(sum[*](e), c) }`, and add that up "
        "over clients; "
        "or protect records: unit record";
    return result;
  }

  static std::string shortened(const std::string& text) {
    return text.size() <= long_text ? text : text.substr(0, long_text - 3) + "...";
  }

  const Plan& plan_;
  Bounds bounds_;
  std::vector<bool> mixed_;  // by node
  Unit unit_;
  Neighbours neighbours_;
};

}  // namespace

std::string_view to_string(Unit unit) { return unit == Unit::record ? "record" : "client"; }

std::string_view to_string(Neighbours neighbours) {
  return neighbours == Neighbours::add_remove ? "add_remove" : "replace";
}

bool RoundSensitivity::bounded() const {
  return std::none_of(merges.begin(), merges.end(),
                      [](const MergeSensitivity& merge) { return merge.unbounded.has_value(); });
}

bool Sensitivities::bounded() const { return unbounded() == nullptr; }

const Unbounded* Sensitivities::unbounded() const {
  for (const RoundSensitivity& round : rounds) {
    for (const MergeSensitivity& merge : round.merges) {
      if (merge.unbounded) return &*merge.unbounded;
    }
  }
  return nullptr;
}

Sensitivities sensitivities(const Plan& plan, Unit unit, Neighbours neighbours,
                            const Known& known) {
  const Analysis analysis(plan, unit, neighbours, known);
  Sensitivities result{unit, neighbours, {}};
  for (const Round* round : rounds_of(plan)) result.rounds.push_back(analysis.round(*round));
  return result;
}

}  // namespace starfold::privacy

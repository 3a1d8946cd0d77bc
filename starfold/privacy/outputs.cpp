#include "starfold/privacy/outputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "starfold/runtime/machine.h"

namespace starfold::privacy {
namespace {

using ir::NodeId;

constexpr std::int64_t most_merged = 4096;  // numbers that are tried one by one

[[noreturn]] void refuse(const std::string& why, Span where) {
  throw NotPrivate(fmt::format("the run cannot be private with noise at its outputs: {}", why),
                   where, "add noise to the merged state instead: at = \"server\"");
}

// Which shared values depend on merged ones, and that they do so linearly.
class Dependence {
 public:
  explicit Dependence(const Plan& plan) : program_(plan.program) {
    varies_.resize(program_.graph.size());
    for (NodeId id = 0; id < program_.graph.size(); ++id) {
      const ir::Node& node = program_.graph[id];
      if (node.federated()) continue;
      varies_[id] = ir::is_fold(program_.graph, node) ||
                    std::any_of(node.args.begin(), node.args.end(),
                                [&](NodeId arg) { return varies_[arg] != 0; });
    }
  }

  bool varies(NodeId id) const { return varies_[id] != 0; }

  void require_linear(NodeId id, const ir::Output& output) const {
    const ir::Node& node = program_.graph[id];
    if (!varies(id) || ir::is_fold(program_.graph, node)) return;
    int varying = 0;
    for (const NodeId arg : node.args) {
      require_linear(arg, output);
      varying += varies(arg) ? 1 : 0;
    }
    const Linear linear = node.kind == ir::Kind::apply ? node.op->linear : Linear::no;
    const bool holds = linear == Linear::jointly || (linear == Linear::singly && varying == 1) ||
                       (linear == Linear::first && varying == 1 && varies(node.args[0]));
    if (!holds)
      refuse(fmt::format("output {} is not linear in what clients send", output.name), node.span);
  }

 private:
  const ir::Program& program_;
  std::vector<char> varies_;
};

void require_one_release(const Plan& plan, const Dependence& dependence) {
  const ir::Program& program = plan.program;
  if (!program.loops.empty())
    refuse("it has a loop, which uses values before noise is added", program.loops.front().span);
  if (plan.rounds > 1) {
    const Round& second =
        *rounds_of(plan)[1];  // it folds something, or is there for what clients keep
    const NodeId first =
        second.merges.empty() ? second.stores.front().node : second.merges.front().fold;
    refuse("it has more than one round, and a later one uses values before noise is added",
           program.graph[first].span);
  }
  for (const ir::Trace& trace : program.traces) {
    if (dependence.varies(trace.node))
      refuse("a trace would show values without noise", trace.span);
  }
  for (const ir::Output& output : program.outputs) dependence.require_linear(output.node, output);
}

// The outputs for one merged state, by the decoder itself.
class Decoder {
 public:
  Decoder(std::shared_ptr<const Plan> plan, const SizeValues& sizes, const Terms& terms)
      : plan_(std::move(plan)), sizes_(sizes) {
    settings_.shared = {terms.inputs.begin(), terms.inputs.end()};
    const Machine machine(plan_, sizes_, settings_);
    for (const Merge& merge : machine.round()->merges)
      zero_.push_back(zero(*merge.monoid, machine.fold_shape(merge)));
  }

  std::map<std::string, Tensor> outputs(std::size_t merge, std::size_t entry, double value) const {
    Machine machine(plan_, sizes_, settings_);
    std::vector<MergeState> states = zero_;
    states[merge][0].data[entry] = value;
    machine.absorb(states);
    const auto& all = machine.results().outputs;
    return {all.begin(), all.end()};
  }

 private:
  std::shared_ptr<const Plan> plan_;
  SizeValues sizes_;
  Settings settings_;
  std::vector<MergeState> zero_;
};

}  // namespace

std::vector<OutputChange> output_changes(const std::shared_ptr<const Plan>& plan,
                                         const SizeValues& sizes, const Terms& terms,
                                         const std::vector<MergedChange>& merged) {
  const Dependence dependence(*plan);
  require_one_release(*plan, dependence);
  const ir::Program& program = plan->program;
  std::int64_t numbers = 0;
  for (const MergedChange& merge : merged) numbers += merge.numbers;
  if (numbers > most_merged)
    refuse(fmt::format("{} merged numbers are too many", numbers), program.outputs.front().span);
  std::vector<OutputChange> changes;
  if (merged.empty()) return changes;
  const Decoder decoder(plan, sizes, terms);
  const std::map<std::string, Tensor> base = decoder.outputs(0, 0, 0);
  // More than the rounding of all steps of the decoder, relative to the largest numbers in it.
  const double rounding =
      4 * (static_cast<double>(program.graph.size()) + static_cast<double>(numbers)) * 0x1p-52;
  std::map<std::string, std::vector<double>> most;  // of each entry of an output
  for (const ir::Output& output : program.outputs) {
    changes.push_back({output.name, base.at(output.name).count(), 0, 0, 0, output.span});
    for (const double x : base.at(output.name).data) {
      if (!std::isfinite(x)) refuse("an output is not finite", output.span);
      most[output.name].push_back(std::abs(x));
    }
  }
  for (std::size_t m = 0; m < merged.size(); ++m) {
    std::map<std::string, double> column_l1;  // the largest of a column
    std::map<std::string, double> column_l2;
    std::map<std::string, double> frobenius;  // squared
    for (std::size_t i = 0; i < static_cast<std::size_t>(merged[m].numbers); ++i) {
      for (const auto& [name, value] : decoder.outputs(m, i, 1)) {
        double l1 = 0;
        double l2 = 0;
        for (std::size_t e = 0; e < value.data.size(); ++e) {
          const double by = std::abs(value.data[e] - base.at(name).data[e]) * (1 + rounding);
          l1 += by;
          l2 += by * by;
          most[name][e] += by * merged[m].most;
        }
        column_l1[name] = std::max(column_l1[name], l1);
        column_l2[name] = std::max(column_l2[name], std::sqrt(l2));
        frobenius[name] += l2;
      }
    }
    for (OutputChange& change : changes) {
      change.l1 += column_l1[change.name] * merged[m].l1;
      change.l2 += std::min(std::sqrt(frobenius[change.name]) * merged[m].l2,
                            column_l2[change.name] * merged[m].l1);
    }
  }
  for (std::size_t i = 0; i < changes.size(); ++i) {
    OutputChange& change = changes[i];
    // What nobody's record is in changes by nothing, and needs no noise.
    if (!dependence.varies(program.outputs[i].node)) {
      change.l1 = change.l2 = 0;
      continue;
    }
    double squares = 0;
    for (const double x : most[change.name]) {
      change.most = std::max(change.most, x);
      change.l1 += 2 * rounding * x;
      squares += 4 * rounding * rounding * x * x;
    }
    change.l2 += std::sqrt(squares);
  }
  return changes;
}

}  // namespace starfold::privacy

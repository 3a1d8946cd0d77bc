// Laws of compilation: texts survive the formatter, the base signature is exactly the paper's, and a
// plan has the fewest rounds and nothing that nobody needs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "starfold/base/error.h"
#include "starfold/opt/passes.h"
#include "starfold/syntax/format.h"
#include "starfold/syntax/parser.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

using ir::NodeId;

// Whether an application lies outside def:base-primitive-signature and its typing rules.
bool outside_signature(const ir::Program& p, const ir::Node& node) {
  std::vector<Type> args;
  for (const NodeId arg : node.args) args.push_back(p.graph[arg].type());
  switch (node.op->family) {
    case Family::unary:
    case Family::permutation:
      return false;
    case Family::aggregation:
      return node.op->name == "records" || node.attrs.axes.size() != 1 || node.args.size() != 1;
    case Family::binary:
    case Family::comparison:
      // Both federated: one type. One of them: it is the result's type.
      return (args[0].federated() && !(args[0] == node.type())) ||
             (args[1].federated() && !(args[1] == node.type()));
    case Family::matmul:
      return args[0].rank() != 2 || args[1].rank() != 2 ||
             (!args[0].federated() && !args[1].federated());
    default:
      return true;
  }
}

// Whether constants stand where only expressions may: def:expressions has none, but an element-wise map
// with a number is another one.
bool has_lone_constants(const ir::Program& p) {
  std::vector<bool> number(p.graph.size());
  const auto constant = [&](NodeId id) {
    return p.graph[id].kind == ir::Kind::constant || number[id];
  };
  bool lone = false;
  for (NodeId id = 0; id < p.graph.size(); ++id) {
    const ir::Node& node = p.graph[id];
    number[id] =
        (node.kind == ir::Kind::constant || node.kind == ir::Kind::size) && node.type().is_scalar();
    if (node.kind != ir::Kind::apply) continue;
    const Family family = node.op->family;
    const bool map =
        family == Family::unary || family == Family::binary || family == Family::comparison;
    bool all = map;
    for (const NodeId arg : node.args) {
      all = all && number[arg];
      lone = lone || (constant(arg) && !(map && number[arg]));
    }
    number[id] = all;
  }
  for (const ir::Output& output : p.outputs) lone = lone || constant(output.node);
  for (const ir::Trace& trace : p.traces) lone = lone || constant(trace.node);
  for (const ir::Loop& loop : p.loops) {
    for (const ir::Carried& carried : loop.carried) lone = lone || constant(carried.next);
  }
  return lone;
}

// Whether a program has another form than def:one-round-typed-program and def:iterative-typed-program.
bool outside_programs(const ir::Program& p) {
  std::set<std::string> record_sets;
  for (const ir::Input& input : p.inputs) {
    if (input.type.federated()) record_sets.insert(input.type.record_set());
  }
  bool outside = record_sets.size() > 1;
  for (const ir::Loop& loop : p.loops) {
    const ir::Node& count = p.graph[loop.count];
    const bool fixed = count.kind == ir::Kind::size ||
                       (count.kind == ir::Kind::constant && count.value.item() >= 1);
    outside = outside || !fixed || loop.until != ir::no_node;
  }
  return outside;
}

bool outside_base(const ir::Program& p) {
  for (NodeId id = 0; id < p.graph.size(); ++id) {
    if (p.graph[id].kind == ir::Kind::apply && outside_signature(p, p.graph[id])) return true;
  }
  return has_lone_constants(p) || outside_programs(p);
}

// def:base-primitive-signature: a program made of the base families alone passes `--base`.
TEST(Laws, BaseAccepted) {
  GeneratorOptions options;
  options.base = true;
  options.functions = false;  // a function is checked where it is defined, called or not
  int accepted = 0;
  check_law(
      "Laws.BaseAccepted", options, 1500,
      [&](const Case& c) -> Verdict {
        const Compiled any = compiled(c);
        if (!any.error.empty()) return any.error;
        const ir::Program& p = any.program->compilation.program;
        if (outside_programs(p)) return "the generator left the base language";
        if (has_lone_constants(p)) return Verdict::nothing();
        const Compiled program = compiled(c, true, true);
        if (!program.error.empty()) return program.error;
        ++accepted;
        return compare(run_engine(c, *program.program), run_reference(c, *program.program),
                       rounding);
      },
      0.15);
  EXPECT_GT(accepted, 0);
}

// `--base` refuses exactly what the paper's rules do not type, and programs of another form.
Verdict base_refused(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  const bool outside = outside_base(program.program->compilation.program);
  const Compiled base = compiled(c, true, true);
  if (!outside && !base.error.empty()) return "a base program is refused: " + base.error;
  if (outside && base.error.empty()) return "a program outside the base signature is accepted";
  return std::nullopt;
}

TEST(Laws, BaseRefused) {
  GeneratorOptions options;
  options.functions = false;
  options.statements = 2;
  options.depth = 2;
  check_law("Laws.BaseRefused", options, 1000, base_refused);
  options.base = true;
  check_law("Laws.BaseRefused", options, 1000, base_refused);
}

// The canonical layout of a program is the same program.
Verdict format_then_parse(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  Case again = c;
  const auto formatted = [](const std::string& text) {
    SourceMap sources;
    Diagnostics diagnostics;
    const ast::File file = parse(sources, sources.add("law.fold", text), diagnostics);
    return format(sources, file);
  };
  again.program.text.text = formatted(c.program.text.text);
  for (auto& [name, module] : again.program.text.modules) module = formatted(module);
  const Compiled second = compiled(again);
  if (!second.error.empty()) return "formatted, " + second.error + "\n" + again.program.text.text;
  if (ir::print(second.program->compilation.program) !=
      ir::print(program.program->compilation.program)) {
    return "formatted, it is another program:\n" + again.program.text.text;
  }
  if (formatted(again.program.text.text) != again.program.text.text)
    return "formatting twice changes something";
  if (second.program->hash != program.program->hash) return "formatted, it has another plan hash";
  return std::nullopt;
}

TEST(Laws, FormatThenParse) { check_law("Laws.FormatThenParse", {}, 1500, format_then_parse); }

// The longest chain of folds in which each needs the one before.
int longest_chain(const ir::Program& p) {
  std::vector<int> chain(p.graph.size());
  int longest = 0;
  for (NodeId id = 0; id < p.graph.size(); ++id) {
    const ir::Node& node = p.graph[id];
    bool federated = false;
    for (const NodeId arg : node.args) {
      chain[id] = std::max(chain[id], chain[arg]);
      federated = federated || p.graph[arg].federated();
    }
    if (federated && !node.federated()) ++chain[id];
    longest = std::max(longest, chain[id]);
  }
  return longest;
}

// thm:iterative-shared-state-factorization asks for rounds, and no program without loops needs more of
// them than its longest chain of dependent folds.
Verdict depth_minimal(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  for (const bool optimize : {true, false}) {
    const ir::Program lowered =
        opt::pipeline(program.program->compilation.program, Planning{optimize});
    const Plan plan = make_plan(program.program->compilation.program, Planning{optimize});
    if (!lowered.loops.empty()) continue;
    const int least = longest_chain(lowered);
    if (plan.rounds != least) return fmt::format("{} rounds, but {} would do", plan.rounds, least);
    const int written = longest_chain(ir::prune(program.program->compilation.program));
    if (plan.rounds > written)
      return fmt::format("{} rounds for a chain of {}", plan.rounds, written);
  }
  return std::nullopt;
}

TEST(Laws, PlanIsDepthMinimal) {
  GeneratorOptions options;
  options.loops = false;
  check_law("Laws.PlanIsDepthMinimal", options, 1500, depth_minimal);
}

// Everything that outputs, traces and conditions need, found anew.
std::vector<bool> needed(const ir::Program& p) {
  std::vector<bool> marks(p.graph.size());
  std::vector<NodeId> pending;
  const auto need = [&](NodeId id) {
    if (id == ir::no_node || marks[id]) return;
    marks[id] = true;
    pending.push_back(id);
  };
  const auto need_loop = [&](ir::LoopId loop) {
    need(p.loops[loop].count);
    need(p.loops[loop].until);
  };
  for (const ir::Output& output : p.outputs) need(output.node);
  for (const ir::Trace& trace : p.traces) {
    need(trace.node);
    for (ir::LoopId loop = trace.loop; loop != ir::no_loop; loop = p.loops[loop].parent)
      need_loop(loop);
  }
  while (!pending.empty()) {
    const ir::Node& node = p.graph[pending.back()];
    pending.pop_back();
    for (const NodeId arg : node.args) need(arg);
    if (node.kind != ir::Kind::loop_param && node.kind != ir::Kind::loop_result) continue;
    need_loop(node.index);
    const ir::Carried& carried = p.loops[node.index].carried[node.slot];
    need(carried.init);
    need(carried.param);
    need(carried.next);
  }
  return marks;
}

// Nothing leaves a client, and nothing is sent to one, that no output, trace or condition needs; and
// nothing leaves twice.
Verdict nothing_dead(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  const Plan& plan = *program.program->plan;
  const std::vector<bool> live = needed(plan.program);
  std::set<NodeId> merged;
  for (const Round* round : rounds_of(plan)) {
    for (const Merge& merge : round->merges) {
      if (!live[merge.fold]) return "nobody needs " + describe_fold(plan, merge.fold);
      if (!merged.insert(merge.fold).second)
        return "merged twice: " + describe_fold(plan, merge.fold);
    }
    std::set<NodeId> used;
    for (const Merge& merge : round->merges)
      used.insert(plan.program.graph[merge.fold].args.begin(),
                  plan.program.graph[merge.fold].args.end());
    for (const NodeId id : round->encoders)
      used.insert(plan.program.graph[id].args.begin(), plan.program.graph[id].args.end());
    for (const NodeId id : round->encoders) {
      if (used.count(id) == 0) return "an encoder that nothing uses: " + describe(plan, id);
    }
    for (const NodeId id : round->receives) {
      if (used.count(id) == 0) return "sent for nothing: " + describe(plan, id);
    }
  }
  return std::nullopt;
}

TEST(Laws, NothingDead) { check_law("Laws.NothingDead", {}, 1500, nothing_dead); }

}  // namespace
}  // namespace starfold::laws

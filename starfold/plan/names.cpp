// Names for the readers of a plan: those of functions made unique, and short ones for what is long or repeated.
#include <fmt/format.h>

#include <set>

#include "starfold/plan/explain.h"

namespace starfold {
namespace {

using ir::NodeId;

// A repeated expression gets a name from this length on, any other only when it would fill a line.
constexpr std::size_t long_when_repeated = 28;
constexpr std::size_t long_alone = 60;

std::set<std::string> taken_names(const ir::Program& program) {
  std::set<std::string> taken;
  for (const auto& [node, name] : program.names) taken.insert(name);
  for (const ir::Input& input : program.inputs) taken.insert(input.name);
  for (const ir::SizeVariable& size : program.sizes) taken.insert(size.name);
  for (const ir::Output& output : program.outputs) taken.insert(output.name);
  for (const ir::NameType& name : program.name_types) taken.insert(name.name);
  return taken;
}

// What explain prints as lines of their own: operands before those who use them.
void collect_listed(const Block& block, std::set<NodeId>& listed) {
  listed.insert(block.prelude.begin(), block.prelude.end());
  for (const Step& step : block.steps) {
    if (const auto* round = std::get_if<Round>(&step.action)) {
      listed.insert(round->encoders.begin(), round->encoders.end());
      for (const Merge& merge : round->merges) listed.insert(merge.fold);
    }
    if (const auto* loop = std::get_if<LoopStep>(&step.action))
      collect_listed(loop->body.front(), listed);
    listed.insert(step.decoder.begin(), step.decoder.end());
  }
}

// How often each node would be written out inside other lines.
std::vector<int> count_mentions(const Plan& plan, const std::set<NodeId>& listed) {
  const ir::Program& program = plan.program;
  std::vector<int> mentions(program.graph.size());
  for (const NodeId id : listed) {
    for (const NodeId arg : program.graph[id].args) ++mentions[arg];
  }
  for (const Round* round : rounds_of(plan)) {
    for (const NodeId id : round->receives) ++mentions[id];
    for (const Merge& merge : round->merges) ++mentions[merge.fold];
  }
  for (const ir::Trace& trace : program.traces) ++mentions[trace.node];
  for (const ir::Output& output : program.outputs) ++mentions[output.node];
  return mentions;
}

}  // namespace

void name_locals(ir::Program& program) {
  std::set<std::string> taken = taken_names(program);
  // One name for all that one call calls by it: a state keeps its name through a loop.
  std::map<std::pair<std::size_t, std::string>, std::string> given;
  for (const auto& [node, local] : program.local_names) {
    if (program.names.count(node) != 0 || ir::is_plain(program.graph[node])) continue;
    const auto [place, fresh] = given.emplace(std::pair(local.call, local.name), local.name);
    for (int number = 2; fresh && !taken.insert(place->second).second; ++number)
      place->second = fmt::format("{}_{}", local.name, number);
    program.names.emplace(node, place->second);
  }
  for (ir::Loop& loop : program.loops) {
    for (ir::Carried& carried : loop.carried) {
      const auto name = program.names.find(carried.param);
      if (name != program.names.end()) carried.name = name->second;
    }
  }
}

Plan readable(Plan plan) {
  ir::Program& program = plan.program;
  std::set<NodeId> listed;
  collect_listed(plan.body, listed);
  const std::vector<int> mentions = count_mentions(plan, listed);
  std::set<std::string> taken = taken_names(program);
  int number = 0;
  for (const NodeId id : listed) {
    const ir::Node& node = program.graph[id];
    if (node.kind != ir::Kind::apply || ir::is_plain(node) || program.names.count(id) != 0)
      continue;
    if (node.types.size() > 1 || mentions[id] == 0) continue;
    const std::size_t length = ir::print_expr(program, id).size();
    if (length < (mentions[id] > 1 ? long_when_repeated : long_alone)) continue;
    std::string name;
    do {
      name = fmt::format("v{}", ++number);
    } while (!taken.insert(name).second);
    program.names.emplace(id, name);
  }
  return plan;
}

}  // namespace starfold

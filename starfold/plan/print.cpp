#include <fmt/format.h>

#include "starfold/base/hash.h"
#include "starfold/plan/plan.h"

namespace starfold {
namespace {

std::string ids(const char* title, const std::vector<ir::NodeId>& nodes) {
  std::string text = title;
  for (const ir::NodeId id : nodes) text += fmt::format(" %{}", id);
  return text + "\n";
}

void print_block(const Block& block, int depth, std::string& text) {
  const std::string indent(static_cast<std::size_t>(2 * depth), ' ');
  if (!block.prelude.empty()) text += indent + ids("compute", block.prelude);
  for (const Step& step : block.steps) {
    if (const auto* round = std::get_if<Round>(&step.action)) {
      text += fmt::format("{}round {}\n", indent, round->number);
      text += indent + ids("  receive", round->receives);
      text += indent + ids("  make", round->constants);
      text += indent + ids("  encode", round->encoders);
      text += indent + ids("  steady", round->steady);
      for (const Merge& merge : round->merges)
        text += fmt::format("{}  merge %{} by {}\n", indent, merge.fold, merge.monoid->name);
      for (const Store& store : round->stores)
        text += fmt::format("{}  store %{} as {} {}.{}\n", indent, store.node,
                            store.what == Store::What::result ? "result"
                            : store.what == Store::What::keep ? "keep"
                                                              : "state",
                            store.index, store.slot);
      if (!round->passes.empty()) text += indent + ids("  pass", round->passes);
    }
    if (const auto* loop = std::get_if<LoopStep>(&step.action)) {
      text += fmt::format("{}repeat loop {}\n", indent, loop->loop);
      print_block(loop->body.front(), depth + 1, text);
    }
    if (!step.decoder.empty()) text += indent + ids("decode", step.decoder);
  }
}

}  // namespace

std::string print(const Plan& plan, bool names) {
  std::string text = ir::print(plan.program, names);
  if (plan.exact) text += "exact\n";
  print_block(plan.body, 0, text);
  for (const auto& [id, block] : plan.blocks) {
    text += fmt::format("in %{}\n", id);
    print_block(block->body, 1, text);
  }
  return text;
}

std::string plan_hash(const Plan& plan) { return sha256_hex(print(plan)); }

std::string describe(const Plan& plan, ir::NodeId id) {
  const auto name = plan.program.names.find(id);
  return name != plan.program.names.end() ? name->second : ir::print_expr(plan.program, id);
}

std::string describe_fold(const Plan& plan, ir::NodeId id) {
  return ir::print_expr(plan.program, id);
}

}  // namespace starfold

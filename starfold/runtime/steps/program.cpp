#include "starfold/runtime/steps/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "starfold/runtime/apply.h"
#include "starfold/runtime/steps/compiler.h"
#include "starfold/tensor/portable.h"

namespace starfold::engine {
namespace {

using ir::Kind;
using ir::NodeId;

// The shared values that every client makes itself.
SharedValues make_constants(const ir::Program& program, const Round& round,
                            const SizeValues& sizes) {
  SharedValues values;
  for (const NodeId id : round.constants) compute_shared(program, id, sizes, values);
  return values;
}

SetProgram compile_set(const Plan& plan, const Round& round, const SizeValues& sizes,
                       const std::string& record_set, const Roles& roles) {
  SetProgram set;
  set.record_set = record_set;
  set.tables.shared = {ir::no_node};
  Compiler compiler(plan, sizes, round, record_set, roles, set.tables);
  set.first = compiler.compile({});

  // What is kept gets columns of its own; the second program starts from them.
  std::map<NodeId, Columns> keep = compiler.worth_keeping();
  std::vector<Column> pinned;
  std::map<Column, Column> place;
  std::set<std::uint32_t> depends;
  for (auto& [id, columns] : keep) {
    for (const std::uint32_t part : compiler.shared_parts(id)) depends.insert(part);
    for (Column& column : columns) {
      if (column.source != scratch) continue;
      const auto [at, is_new] =
          place.emplace(column, Column{kept, static_cast<std::uint32_t>(pinned.size())});
      if (is_new) pinned.push_back(column);
      column = at->second;
    }
  }
  place_columns(set.first, pinned);
  set.kept_columns = pinned.size();
  set.kept_depends.assign(depends.begin(), depends.end());
  if (!keep.empty()) {
    set.again = Compiler(plan, sizes, round, record_set, roles, set.tables).compile(keep);
    place_columns(set.again, {});
  }
  return set;
}

// --- printing -----------------------------------------------------------------------------------

// Columns 3, 4, 5 of a source as 3:5, up to a few ranges.
template <typename Numbers>
std::string ranges(const Numbers& numbers) {
  std::string text;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t j = i + 1;
    while (j < numbers.size() && numbers[j] == numbers[i] + (j - i)) ++j;
    std::size_t repeats = j == i + 1 ? i + 1 : j;
    while (repeats < numbers.size() && j == i + 1 && numbers[repeats] == numbers[i]) ++repeats;
    if (++shown > 4) return text + ", ...";
    text += text.empty() ? "" : ", ";
    if (repeats > j) {
      text += fmt::format("{} x {}", numbers[i], repeats - i);
      j = repeats;
    } else {
      text += j == i + 1 ? fmt::format("{}", numbers[i])
                         : fmt::format("{}:{}", numbers[i], numbers[j - 1]);
    }
    i = j;
  }
  return text;
}

std::string source_name(const Plan& plan, const Tables& tables, std::uint32_t source) {
  if (source == scratch) return "t";
  if (source == fills) return "fill";
  if (source == kept) return "kept";
  return describe(plan, tables.inputs[source - first_input]);
}

std::string columns_text(const Plan& plan, const Tables& tables, const Columns& columns) {
  std::string text;
  for (std::size_t i = 0; i < columns.size();) {
    std::vector<std::uint32_t> run;
    const std::uint32_t source = columns[i].source;
    for (; i < columns.size() && columns[i].source == source; ++i) run.push_back(columns[i].index);
    text += fmt::format("{}{}[{}]", text.empty() ? "" : " ", source_name(plan, tables, source),
                        ranges(run));
  }
  return text;
}

std::string operand_text(const Plan& plan, const Tables& tables, const Operand& operand) {
  if (operand.federated()) return columns_text(plan, tables, operand.columns);
  if (operand.shared == 0) {
    std::string text;
    for (std::size_t i = 0; i < operand.entries.size() && i < 4; ++i) {
      text += fmt::format("{}{}", i == 0 ? "" : ", ", tables.numbers[operand.entries[i]]);
    }
    return text + (operand.entries.size() > 4 ? ", ..." : "");
  }
  std::string text = fmt::format("%{}", tables.shared[operand.shared]);
  return operand.entries.empty() ? text : fmt::format("{}[{}]", text, ranges(operand.entries));
}

}  // namespace

std::string_view to_string(Code code) {
  switch (code) {
    case Code::unary:
      return "map";
    case Code::binary:
      return "map";
    case Code::ternary:
      return "map";
    case Code::accumulate:
      return "accumulate";
    case Code::fold_sample:
      return "fold";
    case Code::fold_dot:
      return "dot";
    case Code::combine:
      return "combine";
    case Code::distances:
      return "distances";
    case Code::nearest:
      return "nearest";
    case Code::pair_sum:
      return "pair sum";
    case Code::softmax:
      return "softmax";
    case Code::log_softmax:
      return "log_softmax";
    case Code::logsumexp:
      return "logsumexp";
    case Code::argmax:
      return "argmax";
    case Code::argmin:
      return "argmin";
    case Code::clip_norm:
      return "clip_norm";
    case Code::quantize:
      return "quantize";
    case Code::labels:
      return "labels";
    case Code::lookup:
      return "lookup";
    case Code::general:
      return "general";
    case Code::fold_block:
      return "fold block";
    case Code::fold_records:
      return "fold records";
    case Code::fold_gram:
      return "gram";
    case Code::fold_groups:
      return "groups";
    case Code::fold_count:
      return "count";
    case Code::store:
      return "store";
  }
  return "";
}

void compute_shared(const ir::Program& program, NodeId id, const SizeValues& sizes,
                    SharedValues& values) {
  const ir::Node& node = program.graph[id];
  if (node.kind == Kind::apply) {
    std::vector<const Tensor*> args;
    for (const NodeId arg : node.args) args.push_back(&values.at(arg).front());
    values[id] = apply(program, node, std::move(args), sizes);
  } else if (node.kind == Kind::project) {
    values[id] = {values.at(node.args[0])[node.index]};
  } else {
    values[id] = {leaf_value(node, sizes)};
  }
}

RoundProgram compile_round(const Plan& plan, const Round& round, const SizeValues& sizes) {
  const portable::Scope scope(plan.exact);
  RoundProgram result;
  result.constants = make_constants(plan.program, round, sizes);
  std::set<std::string> record_sets;
  for (const Merge& merge : round.merges)
    record_sets.insert(record_set_of(plan.program, plan.program.graph[merge.fold]));
  for (const Store& store : round.stores) {
    if (!is_array(plan.program, store.node))
      record_sets.insert(plan.program.graph[store.node].type().record_set());
  }
  for (const std::string& record_set : record_sets) {
    result.sets.push_back(
        compile_set(plan, round, sizes, record_set, roles_of(plan.program, record_set)));
  }
  return result;
}

StoreProgram compile_store(const Plan& plan, const Round& round, NodeId node,
                           const SizeValues& sizes) {
  StoreProgram result;
  result.round.number = -1;
  result.round.encoders = round.encoders;
  result.round.stores = {{Store::What::result, node, 0, 0}};
  const std::string& record_set = plan.program.graph[node].type().record_set();
  result.set =
      compile_set(plan, result.round, sizes, record_set, roles_of(plan.program, record_set));
  return result;
}

StoreProgram compile_stores(const Plan& plan, const Roles& roles, const std::vector<NodeId>& stored,
                            const SizeValues& sizes) {
  const portable::Scope scope(plan.exact);
  StoreProgram result;
  result.round.number = -1;
  for (NodeId id = 0; id < roles.size(); ++id) {
    if (roles[id] != Role::other) result.round.encoders.push_back(id);
  }
  for (const NodeId id : stored) result.round.stores.push_back({Store::What::result, id, 0, 0});
  result.set = compile_set(plan, result.round, sizes, ir::client_set, roles);
  return result;
}

std::string print(const Plan& plan, const SetProgram& set, const BlockProgram& program) {
  std::string text;
  for (const Group& group : program.groups) {
    const bool together = group.last - group.first > 1 && program.steps[group.first].cells() > 1;
    if (together)
      text += fmt::format("  for each of {} cells\n", program.steps[group.first].cells());
    for (std::size_t s = group.first; s < group.last; ++s) {
      const Step& step = program.steps[s];
      std::string line = together ? "    " : "  ";
      const bool fold = step.out.empty();
      if (step.code == Code::labels) {
        text += fmt::format("{}check labels of %{}: {}\n", line, step.node,
                            operand_text(plan, set.tables, step.args[0]));
        continue;
      }
      line +=
          fold ? fmt::format("%{} +=", step.node) : columns_text(plan, set.tables, step.out) + " =";
      const bool map =
          step.code == Code::unary || step.code == Code::binary || step.code == Code::ternary;
      if (step.node == ir::no_node) {
        line += " *";
      } else if (map || step.code == Code::general) {
        line += fmt::format(" {}{}", map ? "" : "general ", plan.program.graph[step.node].op->name);
      } else {
        const bool named = step.code == Code::accumulate || step.code == Code::fold_sample;
        line += fmt::format(" {}{}", step.upper ? "symmetric " : "",
                            named ? plan.program.graph[step.node].op->name : to_string(step.code));
      }
      for (std::size_t i = 0; i < step.args.size(); ++i) {
        line += (i == 0 ? " " : "; ") + operand_text(plan, set.tables, step.args[i]);
      }
      text += line + "\n";
    }
  }
  return text;
}

}  // namespace starfold::engine

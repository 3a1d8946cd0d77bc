// Laws of meaning: the foundational propositions of the language, on every node of random programs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "starfold/base/error.h"
#include "starfold/opt/passes.h"
#include "tests/laws/evaluate.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

using ir::NodeId;

// Nodes that no fold stands behind: they depend on a client's records and shared inputs alone.
std::vector<bool> without_folds(const ir::Program& program) {
  std::vector<bool> free(program.graph.size());
  for (NodeId id = 0; id < program.graph.size(); ++id) {
    const ir::Node& node = program.graph[id];
    free[id] = node.kind != ir::Kind::loop_param && node.kind != ir::Kind::loop_result;
    bool federated = false;
    for (const NodeId arg : node.args) {
      free[id] = free[id] && free[arg];
      federated = federated || program.graph[arg].federated();
    }
    if (federated && !node.federated()) free[id] = false;
  }
  return free;
}

// All records at one client, as the definition sees them.
Federation merged(const GeneratedProgram& program, const Federation& federation) {
  Federation one;
  one.settings = federation.settings;
  one.clients.push_back({"all", {}});
  for (const InputSpec& input : program.inputs) {
    if (!input.type.federated()) continue;
    std::vector<Tensor> parts;
    for (const Client& client : federation.clients) parts.push_back(client.arrays.at(input.name));
    one.clients[0].arrays[input.name] = concatenated(parts, *input.type.record_axis());
  }
  return one;
}

// The records that client `c` has in a tensor of all records.
Tensor part_of(const Tensor& whole, std::size_t axis, const std::vector<std::int64_t>& counts,
               std::size_t c) {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < c; ++i) first += counts[i];
  std::int64_t inner = 1;
  for (std::size_t k = axis + 1; k < whole.rank(); ++k) inner *= whole.shape[k];
  Tensor part;
  part.shape = whole.shape;
  part.shape[axis] = counts[c];
  part.data.clear();
  for (std::int64_t i = 0; i < whole.count(); ++i) {
    const std::int64_t record = i / inner % whole.shape[axis];
    if (record >= first && record < first + counts[c])
      part.data.push_back(whole.data[static_cast<std::size_t>(i)]);
  }
  return part;
}

// The federation with other data, and other numbers of records, at all clients but one.
Federation changed_around(Random& random, const GeneratedProgram& program,
                          const Federation& federation, std::size_t keep) {
  Federation changed = federation;
  for (std::size_t c = 0; c < changed.clients.size(); ++c) {
    if (c == keep) continue;
    std::map<std::string, std::int64_t> counts;
    for (const InputSpec& input : program.inputs) {
      if (!input.type.federated()) continue;
      const auto [count, fresh] = counts.emplace(input.type.record_set(), 0);
      if (fresh) count->second = random.between(0, 5);
      Tensor& tensor = changed.clients[c].arrays.at(input.name);
      Shape shape = tensor.shape;
      shape[*input.type.record_axis()] = count->second;
      tensor = random_tensor(random, input, shape, program.special);
    }
  }
  return changed;
}

std::vector<std::int64_t> counts_of(const Federation& federation, const ir::Program& program,
                                    const std::string& set) {
  std::vector<std::int64_t> counts;
  for (const Client& client : federation.clients)
    counts.push_back(record_counts(program, client)[set]);
  return counts;
}

}  // namespace

// prop:client-locality: the value of a federated application at a client depends on that client's
// operands and on shared values only, not on which client it is or what the others hold.
Verdict client_locality(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  Random random = c.choices();
  const auto keep =
      static_cast<std::size_t>(random.below(static_cast<int>(c.federation.clients.size())));
  const Federation around = changed_around(random, c.program, c.federation, keep);
  try {
    // The same records lie among others in the tensor of all records.
    const Federation all = merged(c.program, c.federation);
    const Federation others = merged(c.program, around);
    Distributed one(program.program->compilation.program, all);
    Distributed two(program.program->compilation.program, others);
    one.run();
    two.run();
    const std::vector<bool> free = without_folds(one.program());
    for (NodeId id = 0; id < one.program().graph.size(); ++id) {
      const ir::Node& node = one.program().graph[id];
      if (!node.federated() || !free[id]) continue;
      const std::size_t axis = *node.type().record_axis();
      const std::string& set = node.type().record_set();
      const Tensor a = part_of(one.value(id).local.at(0), axis,
                               counts_of(c.federation, one.program(), set), keep);
      const Tensor b =
          part_of(two.value(id).local.at(0), axis, counts_of(around, one.program(), set), keep);
      // Blocks of a matrix product may round differently; everything else is the same bits.
      const bool product = node.op != nullptr && node.op->family == Family::matmul;
      if (const Verdict broken = product ? compare(a, b, 1e-12) : same_bits(a, b)) {
        return fmt::format("{} at client {}: {}", ir::print_expr(one.program(), id), keep, *broken);
      }
    }
  } catch (const RunError&) {
    return Verdict::nothing();
  }
  // What a client sends in the first round does not depend on the others either.
  const auto first_answer = [&](const Federation& federation) {
    std::vector<std::string> names;
    for (const Client& client : federation.clients) names.push_back(client.name);
    Coordinator coordinator(program.program, federation.settings, names);
    ProgramCache cache(*c.options.signature);
    std::vector<Node> nodes;
    for (const Client& client : federation.clients) nodes.emplace_back(client, cache);
    Bytes answer;
    for (int step = 0; step < 2 && !coordinator.done(); ++step) {
      const Bytes request = coordinator.request();
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const Bytes bytes = nodes[i].handle(request);
        if (i == keep) answer = bytes;
        coordinator.absorb(i, bytes);
      }
    }
    return answer;
  };
  try {
    if (first_answer(c.federation) != first_answer(around))
      return "a client's first message depends on other clients";
  } catch (const RunError&) {
  }
  return std::nullopt;
}

namespace {

TEST(Laws, ClientLocality) { check_law("Laws.ClientLocality", {}, 800, client_locality); }

}  // namespace

// prop:exposure-discipline: a shared value comes from federated ones only by aggregating their
// record axis or by contracting two record axes in a matrix product.
Verdict exposure_discipline(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  const auto check = [](const ir::Program& p) -> Verdict {
    for (NodeId id = 0; id < p.graph.size(); ++id) {
      const ir::Node& node = p.graph[id];
      std::vector<const Type*> federated;
      for (const NodeId arg : node.args) {
        if (p.graph[arg].federated()) federated.push_back(&p.graph[arg].type());
      }
      const bool loop = node.kind == ir::Kind::loop_param || node.kind == ir::Kind::loop_result;
      if (loop && node.federated()) return "a state is federated";
      if (federated.empty() || node.federated()) continue;
      if (node.kind != ir::Kind::apply) return "something other than an operation lost the star";
      const std::string text = ir::print_expr(p, id);
      if (node.op->family == Family::aggregation) {
        const auto star = static_cast<std::int64_t>(*federated[0]->record_axis());
        const auto& axes = node.attrs.axes;
        if (node.op->monoid == nullptr) return "a holistic aggregation folds records: " + text;
        if (std::find(axes.begin(), axes.end(), star) == axes.end())
          return "an aggregation lost the star: " + text;
        continue;
      }
      if (node.op->family != Family::matmul) return "an operation lost the star: " + text;
      const Type& a = p.graph[node.args[0]].type();
      const Type& b = p.graph[node.args[1]].type();
      const Dim& right = b.rank() == 1 ? b.dims[0] : b.dims[b.rank() - 2];
      if (!a.dims.back().star || !(a.dims.back() == right))
        return "a matrix product lost the star: " + text;
    }
    for (const ir::Output& output : p.outputs) {
      if (p.graph[output.node].federated()) return "an output is federated";
    }
    for (const ir::Trace& trace : p.traces) {
      if (p.graph[trace.node].federated()) return "a trace is federated";
    }
    return std::nullopt;
  };
  if (const Verdict broken = check(program.program->compilation.program)) return broken;
  const Plan& plan = *program.program->plan;
  if (const Verdict broken = check(plan.program)) return "in the plan: " + *broken;
  for (const Round* round : rounds_of(plan)) {
    for (const NodeId id : round->receives) {
      if (plan.program.graph[id].federated()) return "a federated value is sent to clients";
    }
    for (const Merge& merge : round->merges) {
      if (merge.monoid == nullptr || plan.program.graph[merge.fold].federated())
        return "a merge without a monoid";
    }
  }
  return std::nullopt;
}

namespace {

TEST(Laws, ExposureDiscipline) {
  check_law("Laws.ExposureDiscipline", {}, 2000, exposure_discipline);
}

}  // namespace

// prop:virtual-global-consistency: joined along the record axis, the values at the clients are the
// ordinary operation on the virtual global tensors of the operands.
Verdict virtual_global_consistency(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  Verdict broken;
  try {
    Distributed values(program.program->compilation.program, c.federation);
    const ir::Program& p = values.program();
    values.run([&](NodeId id) {
      const ir::Node& node = p.graph[id];
      if (broken || node.kind != ir::Kind::apply || !node.federated()) return;
      const Tensor joined = concatenated(values.value(id).local, *node.type().record_axis());
      if (const Verdict differs = compare(joined, values.ordinary(node)[0], 1e-12)) {
        broken = fmt::format("{}: {}", ir::print_expr(p, id), *differs);
      }
    });
  } catch (const RunError&) {
    return Verdict::nothing();
  }
  return broken;
}

namespace {

TEST(Laws, VirtualGlobalConsistency) {
  check_law("Laws.VirtualGlobalConsistency", {}, 1200, virtual_global_consistency);
}

TEST(Laws, VirtualGlobalConsistencyOnSpecialValues) {
  GeneratorOptions options;
  options.special = true;
  check_law("Laws.VirtualGlobalConsistencyOnSpecialValues", options, 600,
            virtual_global_consistency);
}

// def:expressions, def:iterative-typed-program: the typed graph means what the text says, read
// statement by statement.
Verdict graph_means_the_text(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  Outcome read;
  try {
    read.report.emplace();
    read.report->results =
        as_written(c.program.text, c.federation, c.program.sizes, *c.options.signature);
  } catch (const RunError& error) {
    return Verdict::nothing();  // what nobody needs is computed here too, and may be what stops
  }
  Outcome graph = run_reference(c, *program.program);
  if (graph.report) {
    graph.report->results.iterations.clear();  // a loop that does not change in another runs once
    for (const auto& [name, values] : std::map(graph.report->results.traces)) {
      if (read.report->results.traces.count(name) == 0) graph.report->results.traces.erase(name);
    }
  }
  return compare(graph, read, rounding);
}

TEST(Laws, GraphMeansTheText) {
  check_law("Laws.GraphMeansTheText", {}, 1500, graph_means_the_text);
}

TEST(Laws, GraphMeansTheTextOnSpecialValues) {
  GeneratorOptions options;
  options.special = true;
  check_law("Laws.GraphMeansTheTextOnSpecialValues", options, 600, graph_means_the_text);
}

}  // namespace
}  // namespace starfold::laws

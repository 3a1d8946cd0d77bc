// Laws of factorization: every program is encode, merge, decode; what is encode, merge, decode is a
// program; and shared-only post-processing or conservative extensions change nothing about it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "starfold/base/error.h"
#include "starfold/runtime/apply.h"
#include "starfold/runtime/machine.h"
#include "starfold/theory/factorization.h"
#include "tests/laws/evaluate.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

using ir::NodeId;

// The fold of a tensor's records, entry by entry, written down once more: an encoder and its merge
// on finished values (def:one-round-typed-program).
double folded(const Monoid& monoid, const std::vector<double>& entries) {
  const Monoid* by = &monoid;
  double result = by == &monoids::prod || by == &monoids::all ? 1 : 0;
  if (by == &monoids::min) result = INFINITY;
  if (by == &monoids::max) result = -INFINITY;
  for (const double x : entries) {
    if (by == &monoids::sum) {
      result += x;
    } else if (by == &monoids::prod) {
      result *= x;
    } else if (by == &monoids::min) {
      result = std::isnan(x) || x < result ? x : result;
    } else if (by == &monoids::max) {
      result = std::isnan(x) || x > result ? x : result;
    } else if (by == &monoids::any) {
      result = x != 0 ? 1 : result;
    } else if (by == &monoids::all) {
      result = x == 0 ? 0 : result;
    } else if (by == &monoids::count) {
      result += 1;
    } else {
      throw std::logic_error("not distributive");
    }
  }
  return result;
}

Tensor fold_records(const Monoid& monoid, const Tensor& tensor, std::size_t axis) {
  Shape shape = tensor.shape;
  const std::int64_t records = shape[axis];
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  std::int64_t inner = 1;
  for (std::size_t k = axis; k < shape.size(); ++k) inner *= shape[k];
  Tensor result(shape);
  for (std::int64_t i = 0; i < result.count(); ++i) {
    std::vector<double> entries;
    for (std::int64_t r = 0; r < records; ++r) {
      entries.push_back(
          tensor.data[static_cast<std::size_t>((i / inner * records + r) * inner + i % inner)]);
    }
    result.data[static_cast<std::size_t>(i)] = folded(monoid, entries);
  }
  return result;
}

// The merge of two finished values of a distributive fold.
Tensor merged_values(const Monoid& monoid, const Tensor& a, const Tensor& b) {
  Tensor result = a;
  const Monoid& by = &monoid == &monoids::count ? monoids::sum : monoid;
  for (std::size_t i = 0; i < a.data.size(); ++i)
    result.data[i] = folded(by, {a.data[i], b.data[i]});
  return result;
}

// One engine per client, and merges in any order and grouping.
struct ByHand {
  std::shared_ptr<const Plan> plan;
  SizeValues sizes;
  std::vector<Engine> engines;
  Random random;

  ByHand(const Case& c, std::shared_ptr<const Plan> of) : plan(std::move(of)), random(c.choices()) {
    sizes = bind_settings(plan->program, c.federation.settings);
    for (const Client& client : c.federation.clients)
      sizes = bind_client(plan->program, client, sizes);
    require_sizes(plan->program, sizes);
    for (const Client& client : c.federation.clients)
      engines.emplace_back(plan, sizes, client, EngineOptions{2, 1});
  }

  Shape shape(const Component& component) const {
    Shape result;
    for (const Size& size : component.shape) result.push_back(*size.evaluate(sizes));
    return result;
  }

  // phi of every client, merged: a random tree over the clients in random order, with zeros in it.
  std::vector<MergeState> encoded(const Factorization& f, const std::map<NodeId, Tensor>& theta) {
    const Round& round = *rounds_of(*plan).at(static_cast<std::size_t>(f.round));
    std::vector<std::vector<MergeState>> states;
    for (Engine& engine : engines) states.push_back(engine.encode(round, theta));
    std::vector<MergeState> none;
    for (const Component& component : f.state)
      none.push_back(zero(*component.merge, shape(component)));
    states.push_back(none);
    random.shuffle(states);
    while (states.size() > 1) {
      const auto at = static_cast<std::size_t>(random.below(static_cast<int>(states.size()) - 1));
      for (std::size_t i = 0; i < f.state.size(); ++i)
        f.state[i].merge->merge(states[at][i], states[at + 1][i]);
      states.erase(states.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    return states.front();
  }
};

// Runs the factorizations of a plan round by round.
Outcome run_by_hand(const Case& c, const std::shared_ptr<const Plan>& plan) {
  Outcome outcome;
  try {
    ByHand hand(c, plan);
    const std::vector<Factorization> rounds = factor(*plan);
    Machine machine(plan, hand.sizes, c.federation.settings);
    while (const Round* round = machine.round()) {
      const Factorization& f = rounds.at(static_cast<std::size_t>(round->number));
      machine.absorb(hand.encoded(f, machine.to_send()));
    }
    outcome.report.emplace();
    outcome.report->results = machine.results();
  } catch (const RunError& error) {
    outcome.error = error.what();
  }
  return outcome;
}

// What a factorization must look like, whatever the program.
Verdict well_formed(const Plan& plan) {
  const std::vector<Factorization> rounds = factor(plan);
  if (rounds.size() != static_cast<std::size_t>(plan.rounds)) return "another number of rounds";
  const ir::Graph& graph = plan.program.graph;
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    const Factorization& f = rounds[r];
    if (f.round != static_cast<int>(r)) return "rounds are not in program order";
    if (f.state.empty()) return "a round without a component";
    for (const NodeId id : f.phi) {
      if (!graph[id].federated()) return "an encoder is not federated";
      for (const NodeId arg : graph[id].args) {
        const bool known =
            std::find(f.phi.begin(), f.phi.end(), arg) != f.phi.end() || !graph[arg].federated();
        if (!known) return "an encoder without its operand";
      }
    }
    for (const NodeId id : f.psi) {
      if (graph[id].federated()) return "a decoder is not shared";
      for (const NodeId arg : graph[id].args) {
        if (graph[arg].federated()) return "a decoder is not shared-only";
      }
    }
    for (const NodeId id : f.theta) {
      if (graph[id].federated()) return "a client receives a federated value";
    }
  }
  return std::nullopt;
}

// thm:one-round-shared-state-factorization: a one-round program is psi of the merged phi of its
// clients, through a state space that is fixed in advance.
Verdict one_round_factorization(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  const std::shared_ptr<const Plan>& plan = program.program->plan;
  if (plan->rounds > 1) return fmt::format("{} rounds", plan->rounds);
  if (const Verdict broken = well_formed(*plan)) return broken;
  return compare(run_by_hand(c, plan), run_reference(c, *program.program), rounding);
}

TEST(Laws, OneRoundFactorization) {
  GeneratorOptions options;
  options.one_round = true;
  options.loops = false;
  check_law("Laws.OneRoundFactorization", options, 1500, one_round_factorization);
}

}  // namespace

// thm:iterative-shared-state-factorization: every round of an iterative program is psi_t of the
// merged phi_t, given the shared state that the round begins with.
Verdict iterative_factorization(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  const std::shared_ptr<const Plan>& plan = program.program->plan;
  if (const Verdict broken = well_formed(*plan)) return broken;
  if (const Verdict broken =
          compare(run_by_hand(c, plan), run_reference(c, *program.program), rounding))
    return broken;
  // Each round by itself: phi_t by the definition, client by client, with theta_t given.
  try {
    ByHand hand(c, plan);
    const std::vector<Factorization> rounds = factor(*plan);
    Machine machine(plan, hand.sizes, c.federation.settings);
    while (const Round* round = machine.round()) {
      const Factorization& f = rounds.at(static_cast<std::size_t>(round->number));
      const std::map<NodeId, Tensor> theta = machine.to_send();
      const std::vector<MergeState> states = hand.encoded(f, theta);
      Distributed definition(plan->program, c.federation);
      if (definition.program().graph.size() != plan->program.graph.size())
        return "a plan with dead nodes";
      for (const auto& [id, value] : theta) definition.set(id, value);
      for (const NodeId id : round->constants) definition.compute(id);
      for (const NodeId id : f.phi) definition.compute(id);
      for (std::size_t i = 0; i < f.state.size(); ++i) {
        const Tensor want = definition.ordinary(plan->program.graph[f.state[i].fold])[0];
        if (const Verdict broken = compare(f.state[i].merge->finish(states[i]), want, rounding)) {
          return fmt::format("round {}, {}: {}", f.round, f.state[i].expression, *broken);
        }
      }
      machine.absorb(states);
    }
  } catch (const RunError&) {
  }
  return std::nullopt;
}

namespace {

TEST(Laws, IterativeFactorization) {
  check_law("Laws.IterativeFactorization", {}, 1000, iterative_factorization);
}

// thm:one-round-realization: encoders, merges and a decoder that the language can express are a
// one-round program, which computes psi(merge of phi).
TEST(Laws, OneRoundRealization) {
  const char* only = std::getenv("STARFOLD_LAW_SEED");
  const int count = only != nullptr ? 1 : law_programs(1500);
  for (int number = 0; number < count; ++number) {
    const std::uint64_t seed = only != nullptr ? std::strtoull(only, nullptr, 10)
                                               : 7919ULL * static_cast<std::uint64_t>(number);
    Random random(seed);
    GeneratedFactorization made = generate_factorization(random);
    const Federation federation = generate_federation(random, made.inputs);
    FactorizationText text;
    text.inputs = made.inputs.text.text;
    text.output = "result";
    text.decoder = made.decoder;
    for (std::size_t i = 0; i < made.components.size(); ++i) {
      const GeneratedComponent& component = made.components[i];
      text.components.push_back(
          {made.names[i], component.aggregation, component.encoder, component.right});
    }
    SCOPED_TRACE(fmt::format(
        "again: STARFOLD_LAW_SEED={} build/dev/law_tests --gtest_filter=Laws.OneRoundRealization",
        seed));
    std::string realized;
    ASSERT_NO_THROW(realized = realize(text)) << text.inputs << text.components[0].encoder << "\n"
                                              << text.decoder;
    SCOPED_TRACE(realized);
    const auto program = compile_program({"law.fold", realized, {}});
    ASSERT_TRUE(program->compilation.ok());
    ASSERT_LE(program->plan->rounds, 1);

    // phi, client by client; the merge; psi, as a program on shared inputs alone.
    const ir::Program& p = program->compilation.program;
    std::string decoder;
    Settings settings = federation.settings;
    try {
      Distributed values(p, federation);
      std::map<std::string, NodeId> by_name;
      for (const auto& [id, name] : values.program().names) by_name[name] = id;
      values.run();
      for (std::size_t i = 0; i < made.components.size(); ++i) {
        const auto found = by_name.find(made.names[i]);
        if (found == by_name.end()) continue;  // the decoder does not use it
        NodeId fold = found->second;
        while (values.program().graph[fold].kind == ir::Kind::variable)
          fold = values.program().graph[fold].args[0];
        const ir::Node& node = values.program().graph[fold];
        const Monoid& monoid = *node.op->monoid;
        std::optional<Tensor> merged;
        for (std::size_t client = 0; client < federation.clients.size(); ++client) {
          Tensor phi;
          if (node.op->family == Family::matmul) {
            phi = apply(values.program(), node,
                        {&values.value(node.args[0]).local[client],
                         &values.value(node.args[1]).local[client]},
                        values.sizes())[0];
          } else {
            const std::size_t axis = *values.program().graph[node.args[0]].type().record_axis();
            phi = fold_records(monoid, values.value(node.args[0]).local[client], axis);
          }
          merged = merged ? merged_values(monoid, *merged, phi) : phi;
        }
        settings.shared[made.names[i]] = *merged;
      }
      for (const auto& [name, value] : values.sizes()) settings.sizes[name] = value;
    } catch (const RunError&) {
      continue;
    }
    for (const auto& [name, value] : settings.sizes)
      decoder += fmt::format("size {} = {}\n", name, value);
    for (const InputSpec& input : made.inputs.inputs) {
      if (input.type.federated() || settings.shared.count(input.name) == 0) continue;
      decoder += fmt::format("input {} : {}\n", input.name, input.type.to_string());
    }
    bool defaults = false;
    for (const InputSpec& input : made.inputs.inputs) {
      defaults = defaults || (!input.type.federated() && settings.shared.count(input.name) == 0);
    }
    if (defaults) continue;
    for (std::size_t i = 0; i < made.components.size(); ++i) {
      if (settings.shared.count(made.names[i]) == 0) continue;
      decoder +=
          fmt::format("input {} : {}\n", made.names[i], made.components[i].shape.to_string());
    }
    decoder += "output result = " + made.decoder + "\n";
    const Compilation alone = compile("decoder.fold", decoder);
    ASSERT_TRUE(alone.ok()) << decoder;
    Case c;
    c.seed = seed;
    c.program = made.inputs;
    c.program.text = program->text;
    c.federation = federation;
    Outcome want;
    try {
      want.report.emplace();
      want.report->results = evaluate_reference(alone.program, {}, settings);
    } catch (const RunError& error) {
      want.report.reset();
      want.error = error.what();
    }
    const Verdict broken = compare(run_engine(c, *program), want, rounding);
    ASSERT_EQ(broken, Verdict()) << decoder << show(c);
  }
}

// What realize refuses is no factorization.
TEST(Laws, OneRoundRealizationRefuses) {
  const std::string inputs = "input x : [*, p]\ninput b : [p]\n";
  const auto refused = [&](std::vector<ComponentText> components, const std::string& decoder) {
    try {
      realize({inputs, std::move(components), "r", decoder});
      return false;
    } catch (const std::invalid_argument&) {
      return true;
    }
  };
  EXPECT_FALSE(refused({{"s", "sum", "x * b", ""}}, "s @ s"));
  EXPECT_FALSE(refused({{"s", "", "x'", "x"}}, "s @ b"));
  EXPECT_TRUE(refused({{"s", "sum", "x - mean[*](x)", ""}}, "s")) << "an encoder that folds";
  EXPECT_TRUE(refused({{"s", "sum", "b", ""}}, "s")) << "an encoder that is shared";
  EXPECT_TRUE(refused({{"s", "sum", "x", ""}}, "s + max[*](x)")) << "a decoder that sees records";
  EXPECT_TRUE(refused({{"s", "median", "x", ""}}, "s")) << "a fold without a merge";
  EXPECT_TRUE(refused({{"s", "sum", "x)\noutput y = sum[*](x", ""}}, "s")) << "two expressions";
  EXPECT_TRUE(refused({{"s", "sum", "x", ""}}, "s +")) << "no expression";
}

// cor:one-round-shared-postprocessing: a shared-only program after a one-round program is one
// one-round program with the same messages.
Verdict post_processing_closure(const Case& c) {
  const Compiled first = compiled(c);
  if (!first.error.empty()) return first.error;
  std::vector<InputSpec> inputs;
  const ir::Program& p = first.program->compilation.program;
  for (const ir::Output& output : p.outputs) {
    const auto promised = c.program.outputs.find(output.name);
    if (promised == c.program.outputs.end()) continue;
    InputSpec input;
    input.name = output.name;
    input.type = p.graph[output.node].type();
    input.facts = promised->second;
    inputs.push_back(input);
  }
  // Only inputs whose sizes some axis fixes by itself.
  SizeValues sizes;
  for (std::size_t before = inputs.size() + 1; before != inputs.size();) {
    before = inputs.size();
    sizes.clear();
    for (const InputSpec& input : inputs) {
      for (const Dim& dim : input.type.dims) {
        if (const auto name = dim.size.as_variable())
          sizes[std::string(*name)] = c.program.sizes.at(std::string(*name));
      }
    }
    std::erase_if(inputs, [&](const InputSpec& input) {
      return std::any_of(input.type.dims.begin(), input.type.dims.end(),
                         [&](const Dim& dim) { return !dim.size.evaluate(sizes); });
    });
  }
  Random random = c.choices();
  GeneratorOptions options = c.options;
  options.functions = false;
  options.loops = true;
  options.statements = 3;
  options.first_name = 1000;
  const GeneratedProgram post = generate_shared_program(random, inputs, sizes, options);
  const Compilation alone = compile("post.fold", post.text.text);
  if (!alone.ok()) return "the post-processing program does not compile:\n" + post.text.text;
  std::string text;
  try {
    text = compose({c.program.text.text}, post.text.text);
  } catch (const std::invalid_argument& error) {
    return std::string("compose refuses: ") + error.what() + "\n" + post.text.text;
  }
  Case composed = c;
  composed.program.text.text = text;
  const Compiled whole = compiled(composed);
  if (!whole.error.empty()) return whole.error + "\n" + text;
  if (whole.program->plan->rounds > 1) return "the composed program needs another round:\n" + text;
  const Outcome before = run_reference(c, *first.program);
  if (!before.report) return Verdict::nothing();
  Outcome want;
  try {
    Settings settings;
    for (const InputSpec& input : inputs)
      settings.shared[input.name] = before.report->results.outputs.at(input.name);
    want.report.emplace();
    want.report->results = evaluate_reference(alone.program, {}, settings);
  } catch (const RunError& error) {
    want.report.reset();
    want.error = error.what();
  }
  Outcome got = run_engine(composed, *whole.program);
  if (got.report && want.report) {
    got.report->results.iterations.clear();
    want.report->results.iterations.clear();
    want.report->results.traces.clear();
    got.report->results.traces.clear();
  }
  const Verdict broken = compare(got, want, rounding);
  return broken ? Verdict(*broken + "\n" + text) : broken;
}

TEST(Laws, PostProcessingClosure) {
  GeneratorOptions options;
  options.one_round = true;
  options.loops = false;
  options.functions = false;
  options.statements = 3;
  check_law("Laws.PostProcessingClosure", options, 800, post_processing_closure);
}

}  // namespace
}  // namespace starfold::laws

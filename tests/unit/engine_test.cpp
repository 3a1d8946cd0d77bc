// The engine against the definition: encoders on blocks, merged, equal the fold of the whole.
#include "starfold/runtime/engine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "starfold/compile.h"
#include "starfold/runtime/apply.h"
#include "starfold/runtime/reference.h"
#include "tests/unit/meaning_testing.h"

namespace starfold::testing {
namespace {

ir::Program program_of(const std::string& text) {
  Compilation compilation = compile("test.fold", text);
  EXPECT_TRUE(compilation.ok()) << text;
  for (const Diagnostic& d : compilation.diagnostics.items()) {
    if (!compilation.ok()) ADD_FAILURE() << d.message << "\n" << text;
  }
  return std::move(compilation.program);
}

// The outputs of a program without loops, its rounds encoded by engines.
std::map<std::string, Tensor> run(const ir::Program& program, const std::vector<Client>& clients,
                                  const Settings& settings, EngineOptions options,
                                  bool optimize = true) {
  const auto plan = std::make_shared<const Plan>(make_plan(program, optimize));
  const ir::Program& p = plan->program;
  SizeValues sizes = bind_settings(p, settings);
  for (const Client& client : clients) sizes = bind_client(p, client, sizes);
  std::vector<Engine> engines;
  for (const Client& client : clients) engines.emplace_back(plan, sizes, client, options);

  std::map<ir::NodeId, std::vector<Tensor>> values;
  const auto compute = [&](const std::vector<ir::NodeId>& nodes) {
    for (const ir::NodeId id : nodes) {
      const ir::Node& node = p.graph[id];
      if (node.kind == ir::Kind::apply) {
        std::vector<const Tensor*> args;
        for (const ir::NodeId arg : node.args) args.push_back(&values.at(arg).front());
        values[id] = apply(p, node, args, sizes);
      } else if (node.kind == ir::Kind::project) {
        values[id] = {values.at(node.args[0])[node.index]};
      } else if (node.kind == ir::Kind::input) {
        values[id] = {settings.shared.at(p.inputs[node.index].name)};
      } else {
        values[id] = {leaf_value(node, sizes)};
      }
    }
  };
  compute(plan->body.prelude);
  for (const Step& step : plan->body.steps) {
    const Round& round = std::get<Round>(step.action);
    std::map<ir::NodeId, Tensor> received;
    for (const ir::NodeId id : round.receives) received[id] = values.at(id).front();
    std::vector<MergeState> merged;
    for (Engine& engine : engines) {
      const std::vector<MergeState> states = engine.encode(round, received);
      EXPECT_EQ(states.size(), round.merges.size());
      for (std::size_t i = 0; i < states.size(); ++i) {
        const Monoid monoid = round.merges[i].monoid;
        const Shape shape = cell_shape(p.graph[round.merges[i].fold].type(), sizes);
        EXPECT_EQ(invalid_state(monoid, states[i], shape), "");
        if (merged.size() <= i) merged.push_back(zero(monoid, shape));
        merge(monoid, merged[i], states[i]);
      }
    }
    for (std::size_t i = 0; i < merged.size(); ++i)
      values[round.merges[i].fold] = {finish(round.merges[i].monoid, merged[i])};
    compute(step.decoder);
  }
  std::map<std::string, Tensor> outputs;
  for (const ir::Output& output : p.outputs) outputs[output.name] = values.at(output.node).front();
  return outputs;
}

Tensor random_tensor(Shape shape, std::mt19937_64& random) {
  Tensor tensor(std::move(shape));
  std::normal_distribution<double> normal;
  for (double& value : tensor.data) value = normal(random);
  return tensor;
}

TEST(Engine, FoldsEqualTheReference) {
  const ir::Program program = program_of(R"(
input x : [*, p]
input y : [*]
input z : [q, *, p]
input b : [p]
let eta = x @ b
output a1 = sum[*](x)
output a2 = sum[*, 2](x * b)
output a3 = var[*](x)
output a4 = var[*, 2](x)
output a5 = logsumexp[*](x)
output a6 = logsumexp[1, 2](x)
output a7 = x' @ y
output a8 = x' @ x
output a9 = y @ y
output b1 = max[*](eta)
output b2 = min[*](x)
output b3 = prod[*](cos(y))
output b4 = any[*](y > 2)
output b5 = all[*](y > -2)
output b6 = records(x)
output b7 = count[*](x)
output b8 = mean[*](y - mean[*](y))
output b9 = norm[*](x)
output c1 = sum[2](z)
output c2 = var[1, 2](z)
output c3 = std[*](x)
)");
  std::mt19937_64 random(1);
  for (const std::int64_t records : {0, 1, 5, 1000}) {
    Client client{"a", {}};
    client.arrays["x"] = random_tensor({records, 3}, random);
    client.arrays["y"] = random_tensor({records}, random);
    client.arrays["z"] = random_tensor({2, records, 3}, random);
    Settings settings;
    settings.shared["b"] = random_tensor({3}, random);
    const Results want = evaluate_reference(program, {client}, settings);
    for (const std::int64_t block : {1, 3, 512}) {
      const auto got = run(program, {client}, settings, {block, 1});
      for (const auto& [name, tensor] : want.outputs) {
        SCOPED_TRACE(fmt::format("{} with {} records in blocks of {}", name, records, block));
        ASSERT_EQ(got.count(name), 1u);
        if (name == "b8") {
          if (records > 0) {
            EXPECT_NEAR(got.at(name).item(), 0, 1e-14);
          }
          continue;
        }
        expect_tensor(got.at(name), tensor.shape, tensor.data, 1e-10);
      }
    }
  }
}

}  // namespace
}  // namespace starfold::testing

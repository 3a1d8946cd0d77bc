// A plan that runs over clients with engines, and what it is compared with.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "starfold/compile/compile.h"
#include "starfold/runtime/engine/engine.h"
#include "starfold/runtime/machine.h"
#include "starfold/runtime/reference.h"
#include "tests/unit/meaning_testing.h"

namespace starfold::testing {

inline ir::Program program_of(const std::string& text, const CheckOptions& options = {}) {
  Compilation compilation = compile("test.fold", text, options);
  if (!compilation.ok()) {
    for (const Diagnostic& d : compilation.diagnostics.items())
      ADD_FAILURE() << d.message << "\n" << text;
    throw std::invalid_argument("the program has errors");
  }
  return std::move(compilation.program);
}

// A plan ready to run over clients with engines.
struct EngineFederation {
  EngineFederation(const ir::Program& program, const std::vector<Client>& clients, Settings given,
                   EngineOptions options = {}, bool optimize = true)
      : plan(std::make_shared<const Plan>(make_plan(program, Planning{optimize}))),
        settings(std::move(given)) {
    sizes = bind_settings(plan->program, settings);
    for (const Client& client : clients) sizes = bind_client(plan->program, client, sizes);
    encoders = std::make_shared<const Encoders>(plan, sizes);
    for (const Client& client : clients) engines.emplace_back(encoders, client, options);
  }

  Results run() {
    Machine machine(plan, sizes, settings);
    while (machine.round() != nullptr) {
      const Round& round = *machine.round();
      std::vector<MergeState> merged;
      for (const Merge& m : round.merges) merged.push_back(zero(*m.monoid, machine.fold_shape(m)));
      for (Engine& engine : engines) {
        const std::vector<MergeState> states = engine.encode(round, machine.to_send());
        EXPECT_EQ(states.size(), merged.size());
        for (std::size_t i = 0; i < states.size(); ++i) {
          const Monoid& monoid = *round.merges[i].monoid;
          EXPECT_EQ(invalid_state(monoid, states[i], machine.fold_shape(round.merges[i])), "");
          monoid.merge(merged[i], states[i]);
        }
      }
      machine.absorb(merged);
    }
    return machine.results();
  }

  std::string print() const {
    std::string text;
    for (const Round* round : rounds_of(*plan)) text += encoders->print(*round);
    return text;
  }

  std::shared_ptr<const Plan> plan;
  Settings settings;
  SizeValues sizes;
  std::shared_ptr<const Encoders> encoders;
  std::vector<Engine> engines;
};

inline void expect_close(const Results& got, const Results& want, double tolerance) {
  EXPECT_EQ(got.iterations, want.iterations);
  for (const auto& [name, tensor] : want.outputs) {
    SCOPED_TRACE(name);
    ASSERT_EQ(got.outputs.count(name), 1u);
    const Tensor& other = got.outputs.at(name);
    ASSERT_EQ(other.shape, tensor.shape);
    for (std::size_t i = 0; i < tensor.data.size(); ++i) {
      const double a = other.data[i];
      const double b = tensor.data[i];
      const bool same = std::isnan(b) ? std::isnan(a)
                        : std::isinf(b)
                            ? a == b
                            : std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b));
      EXPECT_TRUE(same) << "entry " << i << ": got " << a << ", want " << b;
    }
  }
}

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : generator_(seed) {}
  Tensor normal(Shape shape) {
    return fill(std::move(shape), [&] { return std::normal_distribution<double>()(generator_); });
  }
  // Whole numbers from 1 to k.
  Tensor labels(Shape shape, int k) {
    return fill(std::move(shape), [&] {
      return static_cast<double>(std::uniform_int_distribution<int>(1, k)(generator_));
    });
  }

 private:
  template <typename Next>
  Tensor fill(Shape shape, const Next& next) {
    Tensor tensor(std::move(shape));
    for (double& value : tensor.data) value = next();
    return tensor;
  }
  std::mt19937_64 generator_;
};

inline const std::string kInputs = R"(
input x : [*, p]
input u : [p, *]
input z : [q, *, p]
input y : [*]
input label : [*]
input b : [p]
input w : [p, q]
input c : [q, p]
input t : [4]
input table : [3, q]
input s : []
)";

inline Client client_of(const std::string& name, std::int64_t n, Draws& random) {
  Client client{name, {}};
  client.arrays["x"] = random.normal({n, 3});
  client.arrays["u"] = random.normal({3, n});
  client.arrays["z"] = random.normal({2, n, 3});
  client.arrays["y"] = random.normal({n});
  client.arrays["label"] = random.labels({n}, 3);
  return client;
}

inline Settings settings_of(Draws& random) {
  Settings settings;
  settings.shared["b"] = random.normal({3});
  settings.shared["w"] = random.normal({3, 2});
  settings.shared["c"] = random.normal({2, 3});
  settings.shared["t"] = random.normal({4});
  settings.shared["table"] = random.normal({3, 2});
  settings.shared["s"] = random.normal({});
  return settings;
}

}  // namespace starfold::testing

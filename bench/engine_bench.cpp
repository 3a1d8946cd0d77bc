// One client's encoders: how long a round takes, beside merely reading the data.
#include "starfold/runtime/engine.h"

#include <benchmark/benchmark.h>
#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "starfold/compile.h"
#include "starfold/runtime/kernels/kernels.h"

namespace starfold {
namespace {

Tensor random_tensor(Shape shape) {
  Tensor tensor(std::move(shape));
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (double& value : tensor.data) value = uniform(random);
  return tensor;
}

// The last round of a program, encoded again and again with shared values that change a little.
void encode(benchmark::State& state, const std::string& text, const Client& client) {
  const Compilation compilation = compile("bench.fold", text);
  if (!compilation.ok()) throw std::runtime_error(compilation.diagnostics.items().front().message);
  const auto plan = std::make_shared<const Plan>(make_plan(compilation.program));
  const SizeValues sizes = bind_client(plan->program, client, {});
  Engine engine(plan, sizes, client, {512, static_cast<int>(state.range(0))});
  const Round& round = *rounds_of(*plan).back();
  std::map<ir::NodeId, Tensor> received;
  for (const ir::NodeId id : round.receives) {
    Shape shape;
    for (const Dim& dim : plan->program.graph[id].type().dims)
      shape.push_back(*dim.size.evaluate(sizes));
    received[id] = random_tensor(shape);
  }
  for (auto _ : state) {
    for (auto& [id, value] : received) value.data[0] *= 0.999;
    benchmark::DoNotOptimize(engine.encode(round, received));
  }
  std::int64_t numbers = 0;
  for (const auto& [name, tensor] : client.arrays) numbers += tensor.count();
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(numbers) * 8e-9,
                                              benchmark::Counter::kIsIterationInvariantRate);
}

void read(benchmark::State& state, std::int64_t numbers) {
  const auto data = hwy::AllocateAligned<double>(static_cast<std::size_t>(numbers));
  std::fill_n(data.get(), numbers, 1.0);
  for (auto _ : state)
    benchmark::DoNotOptimize(kernels::folds().sum(data.get(), static_cast<std::size_t>(numbers)));
  state.counters["GB/s"] = benchmark::Counter(static_cast<double>(numbers) * 8e-9,
                                              benchmark::Counter::kIsIterationInvariantRate);
}

const char* const kLogistic = R"(
input x : [*, p]
input y : [*]
state beta : [p] = zeros(p)
repeat 10 {
  beta <- beta - x' @ (sigmoid(x @ beta) - y)
}
output beta
)";

const char* const kNewton = R"(
input x : [*, p]
input y : [*]
state beta : [p] = zeros(p)
repeat 10 {
  let mu = sigmoid(x @ beta)
  beta <- beta - solve(x' @ ((mu * (1 - mu))[:, new] * x), x' @ (mu - y))
}
output beta
)";

const char* const kCovariance = R"(
input x : [*, p]
let d = x - mean[*](x)
output cov = d' @ d / (records(x) - 1)
)";

const char* const kMaps = R"(
input x : [*]
input a : [] = 1
input b : [] = 2
output o = mean[*](log1p(exp(a * x + b)) * tanh(x))
)";

const char* const kMoments = "input x : [*, p]\noutput m = mean[*](x)\noutput v = var[*](x)\n";

const char* const kClusters = R"(
input x : [*, p]
state centre : [10, p] = zeros(10, p)
repeat 5 {
  let d = sum[3](square(x[:, new, :] - centre))
  let member = one_hot(argmax[2](-d), 10)
  centre <- member' @ x / max(sum[*](member), 1)[:, new]
}
output centre
)";

void logistic(benchmark::State& state, const char* text, std::int64_t n, std::int64_t p) {
  Client client{"a", {{"x", random_tensor({n, p})}, {"y", random_tensor({n})}}};
  encode(state, text, client);
}
void columns(benchmark::State& state, const char* text, std::int64_t n, std::int64_t p) {
  encode(state, text, {"a", {{"x", random_tensor({n, p})}}});
}
void vector(benchmark::State& state, const char* text, std::int64_t n) {
  encode(state, text, {"a", {{"x", random_tensor({n})}}});
}

#define STARFOLD_ENGINE_BENCH(function, name, ...) \
  BENCHMARK_CAPTURE(function, name, __VA_ARGS__)   \
      ->Arg(1)                                     \
      ->Arg(2)                                     \
      ->Unit(benchmark::kMillisecond)              \
      ->UseRealTime()

BENCHMARK_CAPTURE(read, 1M_x_50, 50'000'000)->Unit(benchmark::kMillisecond);
STARFOLD_ENGINE_BENCH(logistic, gradient_1M_x_50, kLogistic, 1'000'000, 50);
STARFOLD_ENGINE_BENCH(logistic, newton_1M_x_50, kNewton, 1'000'000, 50);
BENCHMARK_CAPTURE(read, 1M_x_20, 20'000'000)->Unit(benchmark::kMillisecond);
STARFOLD_ENGINE_BENCH(columns, covariance_1M_x_20, kCovariance, 1'000'000, 20);
STARFOLD_ENGINE_BENCH(columns, moments_1M_x_20, kMoments, 1'000'000, 20);
STARFOLD_ENGINE_BENCH(columns, clusters_1M_x_20, kClusters, 1'000'000, 20);
BENCHMARK_CAPTURE(read, 10M, 10'000'000)->Unit(benchmark::kMillisecond);
STARFOLD_ENGINE_BENCH(vector, maps_10M, kMaps, 10'000'000);
BENCHMARK_CAPTURE(logistic, gradient_5_x_50, kLogistic, 5, 50)
    ->Arg(1)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(logistic, newton_5_x_10, kNewton, 5, 10)->Arg(1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace starfold

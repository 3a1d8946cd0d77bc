// What privacy costs: noise for a million numbers (goal: under 1 s), and rounds of logistic regression with gradients of bounded
// records, plain and private over the same records (goal: within 1.5 of plain). build/release/starfold_bench --benchmark_filter=Noise
#include <benchmark/benchmark.h>

#include <random>

#include "starfold/privacy/sampler.h"
#include "starfold/starfold.h"

namespace starfold {
namespace {

constexpr int million = 1'000'000;

void NoiseGaussian(benchmark::State& state) {
  privacy::RandomBits random;
  const auto deviation = static_cast<std::uint64_t>(state.range(0));
  for (auto _ : state) {
    std::int64_t sum = 0;
    for (int i = 0; i < million; ++i)
      sum += privacy::discrete_gaussian({deviation * deviation, 1}, random);
    benchmark::DoNotOptimize(sum);
  }
}
BENCHMARK(NoiseGaussian)->Arg(1000)->Arg(1 << 24)->Unit(benchmark::kMillisecond);

void NoiseLaplace(benchmark::State& state) {
  privacy::RandomBits random;
  const auto scale = static_cast<std::uint64_t>(state.range(0));
  for (auto _ : state) {
    std::int64_t sum = 0;
    for (int i = 0; i < million; ++i)
      sum += privacy::discrete_laplace({scale << 16U, 1 << 16}, random);
    benchmark::DoNotOptimize(sum);
  }
}
BENCHMARK(NoiseLaplace)->Arg(1000)->Arg(1 << 20)->Unit(benchmark::kMillisecond);

// Ten rounds; `x` is bounded before the loop, as a private program needs it.
const char* const kLogistic =
    "input x : [*, p]\ninput y : [*]\nlet z = clip_norm(x, 4)\nstate b : [p] = zeros(p)\n"
    "repeat 10 {\n  let g = z' @ (sigmoid(z @ b) - clip(y, 0, 1))\n  b <- b - 0.000001 * g\n}\n"
    "output b\n";

void NoiseLogistic(benchmark::State& state) {
  constexpr std::int64_t records = 1'000'000;
  constexpr std::int64_t p = 50;
  static const Client client = [] {
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    Client made{"a", {{"x", Tensor(Shape{records, p})}, {"y", Tensor(Shape{records})}}};
    for (double& x : made.arrays.at("x").data) x = normal(random);
    for (double& y : made.arrays.at("y").data) y = normal(random) > 0 ? 1 : 0;
    return made;
  }();
  ProgramOptions options;
  options.planning.additive = true;
  const auto program = compile_program({"logistic.fold", kLogistic, {}}, options);
  RunOptions run;
  if (state.range(0) != 0) {
    run.privacy.emplace();
    run.privacy->delta = 1e-6;
  }
  for (auto _ : state) {
    double seconds = 0;
    run.watch = [&](const Progress& progress) { seconds += progress.round_seconds; };
    benchmark::DoNotOptimize(run_local(program, {client}, {}, run));
    state.SetIterationTime(seconds);  // of the rounds, without laying out the data
  }
}
BENCHMARK(NoiseLogistic)
    ->ArgName("private")
    ->Arg(0)
    ->Arg(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace starfold

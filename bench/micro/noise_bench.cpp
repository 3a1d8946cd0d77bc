// Noise for a million numbers, narrow and wide (bench/run has it beside what it is measured against, and private rounds).
// build/release/starfold_bench --benchmark_filter=Noise
#include <benchmark/benchmark.h>

#include "starfold/privacy/noise/sampler.h"

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

}  // namespace
}  // namespace starfold

// One round of secure aggregation among all its members and the server, in one process on two threads. The sum is compared with that
// of the integers.
#include <benchmark/benchmark.h>

#include "bench/masked_round.h"

namespace starfold::bench {
namespace {

// Arguments: members, numbers, words of each, members that drop out after they have shared.
void BM_SecureRound(benchmark::State& state) {
  const auto members = static_cast<std::size_t>(state.range(0));
  const auto gone = static_cast<std::size_t>(state.range(3));
  MaskedRound round(members, static_cast<std::uint64_t>(state.range(1)),
                    static_cast<std::uint32_t>(state.range(2)), 2);
  for (auto _ : state) {
    if (round.sum(gone)[0][1] != (members - gone) * round.input()[0][1])
      throw std::runtime_error("a wrong sum");
  }
}
BENCHMARK(BM_SecureRound)
    ->Args({20, 100'000, 1, 0})
    ->Args({20, 100'000, 1, 3})
    ->Args({20, 10'000, 34, 0})
    ->Args({200, 1'000, 1, 0})
    ->Args({3, 10, 34, 0})
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace starfold::bench

// What privacy costs, as contestants: a round under masks, noise, the rounds of a private run.
#include <cmath>
#include <random>

#include "bench/contestant.h"
#include "bench/masked_round.h"
#include "starfold/privacy/noise/sampler.h"

namespace starfold::bench {

Contestant make_masked(const Arguments& arguments) {
  auto round =
      std::make_shared<MaskedRound>(static_cast<std::size_t>(arguments.number("clients")),
                                    static_cast<std::uint64_t>(arguments.number("numbers")), 1,
                                    static_cast<std::size_t>(arguments.number("threads")));
  return [round](int) {
    const Clock::time_point start = Clock::now();
    const secure::Words sum = round->sum();
    const double seconds = since(start);
    return Outcome{seconds, {sum[0].begin(), sum[0].end()}, {}};
  };
}

Contestant make_unmasked(const Arguments& arguments) {
  const auto clients = static_cast<std::size_t>(arguments.number("clients"));
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(arguments.number("numbers")));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  const auto all = std::make_shared<std::vector<std::vector<std::uint64_t>>>(clients, numbers);
  return [all](int) {
    const Clock::time_point start = Clock::now();
    std::vector<std::uint64_t> sum(all->front().size());
    for (const std::vector<std::uint64_t>& one : *all)
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
    const double seconds = since(start);
    return Outcome{seconds, {sum.begin(), sum.end()}, {}};
  };
}

namespace {

// The mean of squares, which the noise of both contestants has in common.
template <typename Draw>
Outcome draws(std::int64_t numbers, const Draw& draw) {
  const Clock::time_point start = Clock::now();
  double squares = 0;
  for (std::int64_t i = 0; i < numbers; ++i) squares += std::pow(static_cast<double>(draw()), 2);
  return Outcome{since(start), {squares / static_cast<double>(numbers)}, {}};
}

}  // namespace

Contestant make_noise(const Arguments& arguments) {
  const auto numbers = arguments.number("numbers");
  const auto deviation = static_cast<std::uint64_t>(arguments.number("deviation"));
  auto random = std::make_shared<privacy::RandomBits>();
  return [=](int) {
    return draws(numbers, [&] {
      return privacy::discrete_gaussian({deviation * deviation, 1}, *random);
    });
  };
}

Contestant make_rounded_noise(const Arguments& arguments) {
  const auto numbers = arguments.number("numbers");
  const auto deviation = static_cast<double>(arguments.number("deviation"));
  auto random = std::make_shared<std::mt19937_64>(1);
  return [=](int) {
    std::normal_distribution<double> normal(0, deviation);
    return draws(numbers, [&] { return std::llround(normal(*random)); });
  };
}

}  // namespace starfold::bench

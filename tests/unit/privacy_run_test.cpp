// Private runs in one process: noise is what was promised, sums are exact, and what cannot be private is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "starfold/privacy/noise/accountant.h"
#include "starfold/privacy/noise/grid.h"
#include "starfold/starfold.h"

namespace starfold {
namespace {

using privacy::At;
using privacy::Promise;

std::shared_ptr<const CompiledProgram> program_of(const std::string& text) {
  ProgramOptions options;
  options.planning.additive = true;
  auto program = compile_program({"test.fold", text, {}}, options);
  EXPECT_TRUE(program->plan) << text;
  return program;
}

Promise promise_of(double epsilon, double delta, At at = At::server) {
  Promise promise;
  promise.epsilon = epsilon;
  promise.delta = delta;
  promise.at = at;
  promise.seed = 1;
  return promise;
}

std::vector<double> numbers(std::size_t count, double lo, double hi, unsigned seed = 5) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(lo, hi);
  std::vector<double> values(count);
  for (double& x : values) x = uniform(random);
  return values;
}

// The records of [*] inputs cut into so many clients.
std::vector<Client> clients_of(const std::map<std::string, std::vector<double>>& columns,
                               std::size_t count) {
  std::vector<Client> clients(count);
  for (std::size_t c = 0; c < count; ++c) {
    clients[c].name = "c" + std::to_string(c);
    for (const auto& [name, all] : columns) {
      const std::size_t first = all.size() * c / count;
      const std::size_t last = all.size() * (c + 1) / count;
      clients[c].arrays[name] =
          Tensor(Shape{static_cast<std::int64_t>(last - first)},
                 std::vector<double>(all.begin() + static_cast<std::ptrdiff_t>(first),
                                     all.begin() + static_cast<std::ptrdiff_t>(last)));
    }
  }
  return clients;
}

RunReport run(const std::string& text, const std::vector<Client>& clients, const Promise& promise,
              RunOptions options = {}) {
  options.privacy = promise;
  return run_local(program_of(text), clients, {}, options);
}

bool is_multiple(double x, double grid) { return x / grid == std::round(x / grid); }

const char* const kSum = "input y : [*]\noutput s = sum[*](clip(y, 0, 10))\n";

TEST(PrivateRun, NoiseIsWhatTheBudgetAsksFor) {
  const auto clients = clients_of({{"y", numbers(1000, -2, 12)}}, 3);
  const RunReport gauss = run(kSum, clients, promise_of(1, 1e-5));
  ASSERT_TRUE(gauss.privacy);
  ASSERT_EQ(gauss.privacy->releases.size(), 1U);
  EXPECT_NEAR(gauss.privacy->releases[0].sensitivity, 10, 0.01);
  EXPECT_GE(gauss.privacy->releases[0].sensitivity, 10);
  EXPECT_NEAR(gauss.privacy->releases[0].scale, 37.30631635, 0.05);
  EXPECT_GE(gauss.privacy->releases[0].scale, 37.30631635);
  EXPECT_EQ(gauss.privacy->epsilon, 1);
  EXPECT_EQ(gauss.privacy->mechanism(), "discrete_gaussian");
  const RunReport laplace = run(kSum, clients, promise_of(0.5, 0));
  EXPECT_NEAR(laplace.privacy->releases[0].scale, 20, 0.03);
  EXPECT_GE(laplace.privacy->releases[0].scale, 20);
  EXPECT_EQ(laplace.privacy->mechanism(), "discrete_laplace");
}

// A known mistake: noise whose low-order bits tell the value below it (Mironov 2012). Everything released lies on a grid that
// follows from the program alone, whatever the records.
TEST(PrivateRun, WhatIsReleasedLiesOnTheGrid) {
  for (const double delta : {0.0, 1e-6}) {
    for (const unsigned seed : {1U, 2U, 3U}) {
      const RunReport report =
          run(kSum, clients_of({{"y", numbers(100, 0, 10, seed)}}, 2), promise_of(1, delta));
      const double grid = report.privacy->releases[0].grid;
      EXPECT_EQ(std::exp2(std::round(std::log2(grid))), grid);
      EXPECT_TRUE(is_multiple(report.results.outputs.at("s").item(), grid));
      EXPECT_LT(grid, 0.001);
    }
  }
}

TEST(PrivateRun, TheSameSumsForEverySplit) {
  const std::string text =
      "input x : [*]\ninput y : [*]\nlet a = clip(x, -3, 3)\nlet b = clip(y, 0, 10)\n"
      "output s = sum[*](b)\noutput d = a @ b\noutput n = records(x)\noutput m = mean[*](a * b)\n";
  const std::map<std::string, std::vector<double>> columns = {{"x", numbers(3000, -5, 5, 1)},
                                                              {"y", numbers(3000, -1, 11, 2)}};
  const RunReport one = run(text, clients_of(columns, 1), promise_of(1, 1e-6));
  // The number of clients is part of what the grid has room for, so it is the same here.
  for (const int threads : {1, 2}) {
    for (const std::int64_t block : {1, 64, 512}) {
      RunOptions options;
      options.threads = threads;
      options.block_records = block;
      const RunReport other = run(text, clients_of(columns, 1), promise_of(1, 1e-6), options);
      for (const auto& [name, value] : one.results.outputs)
        EXPECT_EQ(value.item(), other.results.outputs.at(name).item()) << name;
    }
  }
  // Cut anywhere, the same integers and the same seed give the same bits.
  const RunReport two = run(text, clients_of(columns, 2), promise_of(1, 1e-6));
  std::map<std::string, std::vector<double>> turned = columns;
  for (auto& [name, all] : turned) std::rotate(all.begin(), all.begin() + 777, all.end());
  const RunReport moved = run(text, clients_of(turned, 2), promise_of(1, 1e-6));
  for (const auto& [name, value] : two.results.outputs)
    EXPECT_EQ(value.item(), moved.results.outputs.at(name).item()) << name;
}

TEST(PrivateRun, CloseToThePlainAnswer) {
  const std::string text =
      "input x : [*]\nlet a = clip(x, 0, 10)\noutput m = mean[*](a)\noutput v = var[*](a)\n";
  const auto clients = clients_of({{"x", numbers(200000, 0, 10)}}, 4);
  const RunReport plain = run_local(program_of(text), clients, {});
  const RunReport noised = run(text, clients, promise_of(5, 1e-6));
  for (const char* name : {"m", "v"})
    EXPECT_NEAR(noised.results.outputs.at(name).item(), plain.results.outputs.at(name).item(), 0.01)
        << name;
  EXPECT_NE(noised.results.outputs.at("m").item(), plain.results.outputs.at("m").item());
}

// What one record adds is bounded whatever is in it.
TEST(PrivateRun, HostileRecordsAreHeldToTheirBounds) {
  const std::string text =
      "input x : [*]\ninput y : [*]\n"
      "output s = sum[*](clip(x, -1, 1) / clip(y, 0.5, 2))\noutput n = records(x)\n";
  std::vector<double> x(50, 0.0);
  std::vector<double> y(50, 1.0);
  Promise promise = promise_of(1000, 1e-6);
  const double before =
      run(text, clients_of({{"x", x}, {"y", y}}, 1), promise).results.outputs.at("s").item();
  const double nan = std::nan("");
  const double inf = HUGE_VAL;
  for (const double hostile : {nan, inf, -inf, 1e308, -1e308, 5e-324}) {
    x[7] = hostile;
    y[7] = hostile;
    const RunReport report = run(text, clients_of({{"x", x}, {"y", y}}, 1), promise);
    const double after = report.results.outputs.at("s").item();
    EXPECT_TRUE(std::isfinite(after));
    // The same seed, so the same noise.
    EXPECT_LE(std::abs(after - before), report.privacy->rounds[0].merges[0].sensitivity) << hostile;
  }
}

// Elsewhere a label or an index outside stops a run; that would tell what one record holds.
TEST(PrivateRun, LabelsThatAreNoneAddNothing) {
  const std::vector<double> labels = {1, 1, 2, 3, 0, -1, 1.5, 4, 1e300, std::nan(""), HUGE_VAL};
  const auto outputs = [&](const std::string& text) {
    return run("input g : [*]\n" + text, clients_of({{"g", labels}}, 2), promise_of(1e4, 1e-6))
        .results.outputs.at("s")
        .data;
  };
  const auto near = [](const std::vector<double>& found, const std::vector<double>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 0.4);
  };
  near(outputs("output s = sum[*](one_hot(g, 3))\n"), {2, 1, 1});
  near(outputs("output s = one_hot(g, 3)' @ clip(g, 0, 2)\n"), {2, 2, 2});
  near(outputs("output s = sum[*](clip([0, 6, 7][g], 0, 9))\n"), {6 + 7});
  near(outputs("output s = sum[*](clip([[0, 2], [3, 4], [5, 6]][g], 0, 9))\n"), {8, 14});
  // Tables that the server sends, and those inside blocks.
  near(outputs("input t : [3] = [0, 6, 7]\noutput s = sum[*](clip(t[g], 0, 9))\n"), {6 + 7});
  near(outputs("state t : [3] = [0, 6, 7]\nstate s : [] = 0\nrepeat 2 {\n  s <- sum[*](clip(t[g], "
               "0, 9))\n  t <- t + 0 * s\n}\n"
               "output s\n"),
       {6 + 7});
  near(outputs(
           "let c = each client { clip_norm(sum[*](one_hot(g, 3)), 3) }\noutput s = sum[*](c)\n"),
       {2, 1, 1});
  // Seven of them: 5 is the number nearest to 0 that a record can add.
  near(outputs("output s = sum[*](clip([5, 6, 7][g], 0, 9))\n"), {5 + 5 + 6 + 7 + 7 * 5});
}

TEST(PrivateRun, LoopsAreAccountedByTheRoundsTheyRan) {
  const std::string loop =
      "input x : [*]\nstate t : [] = 0\nrepeat 20 {\n  let g = sum[*](clip(x - t, -1, 1))\n"
      "  t <- t + 0.01 * g\n}";
  const auto clients = clients_of({{"x", numbers(500, 0, 1)}}, 2);
  const RunReport all = run(loop + "\noutput t\n", clients, promise_of(2, 1e-6));
  EXPECT_EQ(all.privacy->epsilon, 2);
  EXPECT_EQ(all.privacy->releases.size(), 20U);
  double before = 0;
  for (const auto& release : all.privacy->releases) {
    EXPECT_GT(release.epsilon, before);
    before = release.epsilon;
  }
  const double mu = privacy::gaussian_mu(2, 1e-6);
  EXPECT_NEAR(all.privacy->releases[4].epsilon, privacy::gaussian_epsilon(mu / 2, 1e-6), 1e-9);
  EXPECT_NEAR(all.privacy->releases[0].scale, std::sqrt(20.0) / mu, 0.02);
  const RunReport some = run(loop + " until t > -1\noutput t\n", clients, promise_of(2, 1e-6));
  EXPECT_EQ(some.privacy->releases.size(), 1U);
  EXPECT_LT(some.privacy->epsilon, 0.6);
  EXPECT_EQ(some.privacy->promise.epsilon, 2);
  const RunReport pure = run(loop + "\noutput t\n", clients, promise_of(2, 0));
  for (std::size_t i = 0; i < 20; ++i)
    EXPECT_NEAR(pure.privacy->releases[i].epsilon, 0.1 * static_cast<double>(i + 1), 1e-9);
  EXPECT_NEAR(run(loop + " until t > -1\noutput t\n", clients, promise_of(2, 0)).privacy->epsilon,
              0.1, 1e-9);
}

// Squares of noise in units of sensitivity are least in sum: the budget goes by roots of how many numbers a value has.
TEST(PrivateRun, TheBudgetIsSplitByNumbers) {
  const std::string text =
      "input x : [*, p]\nlet r = clip_norm(x, 2)\noutput s = sum[*](r)\noutput n = records(x)\n";
  Client client{"a", {{"x", Tensor(Shape{100, 16}, 0.1)}}};
  for (const double delta : {0.0, 1e-6}) {
    const RunReport report = run(text, {client}, promise_of(1, delta));
    const auto& merges = report.privacy->rounds[0].merges;
    ASSERT_EQ(merges.size(), 2U);
    const bool first = merges[0].numbers == 16;
    const auto& sum = merges[first ? 0 : 1];
    const auto& count = merges[first ? 1 : 0];
    EXPECT_NEAR(sum.cost / count.cost, delta == 0 ? std::cbrt(16.0) : 4.0, 1e-9);
    EXPECT_NEAR(count.sensitivity, 1, 2e-9);
    EXPECT_NEAR(sum.sensitivity, delta == 0 ? 8 : 2, 0.01);
    double spent = 0;
    for (const auto& merge : merges)
      spent += delta == 0 ? merge.sensitivity / merge.scale
                          : std::pow(merge.sensitivity / merge.scale, 2);
    const double mu = privacy::gaussian_mu(1, 1e-6);
    EXPECT_LE(spent, (delta == 0 ? 1 : mu * mu) * (1 + 1e-9));
    EXPECT_GE(spent, (delta == 0 ? 1 : mu * mu) * 0.999);
  }
}

TEST(PrivateRun, CountsNeedNoNoiseWhenRecordsAreReplaced) {
  Promise promise = promise_of(1, 1e-6);
  promise.neighbours = privacy::Neighbours::replace;
  const std::string text =
      "input y : [*]\noutput n = records(y)\noutput s = sum[*](clip(y, -10, 10))\n";
  const RunReport report = run(text, clients_of({{"y", numbers(123, 0, 1)}}, 2), promise);
  EXPECT_EQ(report.results.outputs.at("n").item(), 123);
  EXPECT_NEAR(report.privacy->releases[0].sensitivity, 20, 0.02);
}

TEST(PrivateRun, EachClientsNoise) {
  const auto clients = clients_of({{"y", numbers(1000, 0, 10)}}, 4);
  const double plain = run_local(program_of(kSum), clients, {}).results.outputs.at("s").item();
  double squares = 0;
  constexpr int runs = 300;
  double scale = 0;
  for (int i = 0; i < runs; ++i) {
    Promise promise = promise_of(1, 1e-5, At::client);
    promise.seed = 100 * i;
    const RunReport report = run(kSum, clients, promise);
    scale = report.privacy->releases[0].scale;
    squares += std::pow(report.results.outputs.at("s").item() - plain, 2);
  }
  // Four times the variance of the noise of one; within five deviations of its estimate.
  EXPECT_NEAR(squares / runs / (4 * scale * scale), 1, 5 * std::sqrt(2.0 / runs));
}

TEST(PrivateRun, WhatCannotBePrivateIsRefusedWithItsPlace) {
  const auto clients = clients_of({{"y", numbers(100, 0, 1)}}, 2);
  const auto refused = [&](const std::string& text, const Promise& promise, std::size_t line) {
    try {
      run(text, clients, promise);
      ADD_FAILURE() << text;
    } catch (const privacy::NotPrivate& error) {
      ASSERT_TRUE(error.where()) << error.what();
      const auto program = program_of(text);
      EXPECT_EQ(
          program->compilation.sources[error.where()->file].position(error.where()->begin).line,
          line)
          << error.what();
    }
  };
  refused("input y : [*]\n\noutput s = sum[*](y)\n", promise_of(1, 0), 3);
  refused("input y : [*]\noutput s = max[*](clip(y, 0, 1))\n", promise_of(1, 1e-6), 2);
  refused(kSum, promise_of(1e-9, 0), 2);
  refused(kSum, promise_of(1e-9, 1e-12), 2);
  refused(
      "input y : [*]\nlet n = sum[*](clip(y, 0, 1))\nstate t : [] = 0\nrepeat n {\n"
      "  t <- t + sum[*](clip(y, 0, 1))\n}\noutput t\n",
      promise_of(1, 1e-6), 4);
}

TEST(PrivateRun, ValuesOfInputsCountAsBounds) {
  const std::string text = "input y : [*]\ninput c : [] = 2\noutput s = sum[*](clip(y, 0, c))\n";
  const auto clients = clients_of({{"y", numbers(100, 0, 1)}}, 2);
  EXPECT_NEAR(run(text, clients, promise_of(1, 1e-5)).privacy->releases[0].sensitivity, 2, 0.01);
  RunOptions options;
  options.privacy = promise_of(1, 1e-5);
  Settings settings;
  settings.shared["c"] = Tensor::scalar(5);
  const RunReport report = run_local(program_of(text), clients, settings, options);
  EXPECT_NEAR(report.privacy->releases[0].sensitivity, 5, 0.01);
}

// --- the same bytes ---------------------------------------------------------------------------------

TEST(PrivateRun, ARequestThatIsRepeatedGetsTheSameNoise) {
  const auto program = program_of(kSum);
  ProgramCache cache;
  const std::vector<Client> clients = clients_of({{"y", numbers(100, 0, 10)}}, 1);
  Node node(clients[0], cache);
  RunIdentity identity;
  identity.terms.emplace();
  identity.terms->promise = promise_of(1, 1e-6, At::client);
  identity.terms->promise.seed.reset();
  identity.terms->clients = 1;
  Coordinator coordinator(program, {}, {"c0"}, nullptr, identity);
  coordinator.absorb(0, node.handle(coordinator.request(0)));
  const Bytes request = coordinator.request(0);
  const Bytes first = node.handle(request);
  EXPECT_EQ(first, node.handle(request));
  // Another node with the same records has other noise.
  Node other(clients[0], cache);
  other.handle(coordinator.greeting(0));
  EXPECT_NE(first, other.handle(request));
}

TEST(PrivateRun, ACheckpointHoldsWhatWasReleased) {
  const auto program = program_of(
      "input x : [*]\nstate t : [] = 0\nrepeat 4 {\n  let g = sum[*](clip(x - t, -1, 1))\n"
      "  trace g = g\n  t <- t + 0.01 * g\n}\noutput t\n");
  const std::vector<Client> clients = clients_of({{"x", numbers(100, 0, 1)}}, 1);
  ProgramCache cache;
  Node node(clients[0], cache);
  RunIdentity identity;
  identity.terms.emplace();
  identity.terms->promise = promise_of(1, 1e-6);
  identity.terms->promise.seed.reset();
  identity.terms->clients = 1;
  Coordinator coordinator(program, {}, {"c0"}, nullptr, identity);
  for (int i = 0; i < 3; ++i) coordinator.absorb(0, node.handle(coordinator.request(0)));
  const std::vector<double> seen = coordinator.results().traces.at("g");
  ASSERT_EQ(seen.size(), 2U);
  Coordinator again =
      Coordinator::resume(program, {}, {"c0"}, coordinator.save(), nullptr, identity);
  EXPECT_EQ(again.results().traces.at("g"), seen);
  EXPECT_EQ(again.request(0), coordinator.request(0));
  while (!again.done()) again.absorb(0, node.handle(again.request(0)));
  EXPECT_EQ(again.privacy()->releases.size(), 4U);
  EXPECT_EQ(again.privacy()->epsilon, 1);
  EXPECT_EQ(again.results().traces.at("g")[1], seen[1]);
}

TEST(PrivateRun, MessagesAreWholeNumbersAndNothingElse) {
  const auto program = program_of(kSum);
  ProgramCache cache;
  const std::vector<Client> clients = clients_of({{"y", numbers(100, 0, 10)}}, 1);
  Node node(clients[0], cache);
  RunIdentity identity;
  identity.terms.emplace();
  identity.terms->promise = promise_of(1, 1e-6);
  identity.terms->clients = 1;
  Coordinator coordinator(program, {}, {"c0"}, nullptr, identity);
  coordinator.absorb(0, node.handle(coordinator.request(0)));
  auto state = std::get<StateMessage>(decode_message(node.handle(coordinator.request(0))));
  for (const double wrong : {0.5, std::nan(""), HUGE_VAL, 1e300}) {
    StateMessage forged = state;
    forged.states[0][0].data[0] = wrong;
    EXPECT_THROW(coordinator.absorb(0, encode_message(forged)), UnusableAnswer) << wrong;
  }
  EXPECT_NO_THROW(coordinator.absorb(0, encode_message(state)));
}

TEST(PrivateRun, TermsTravel) {
  privacy::Terms terms;
  terms.promise = promise_of(0.25, 1e-7, At::client);
  terms.promise.unit = privacy::Unit::client;
  terms.promise.neighbours = privacy::Neighbours::replace;
  terms.clients = 7;
  terms.inputs["c"] = Tensor::scalar(3);
  const Bytes bytes = privacy::encode_terms(terms);
  const privacy::Terms back = privacy::decode_terms(bytes);
  EXPECT_EQ(privacy::encode_terms(back), bytes);
  EXPECT_FALSE(back.promise.seed);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    EXPECT_THROW(privacy::decode_terms(bytes.substr(0, i)), RunError);
  terms.promise.epsilon = -1;
  EXPECT_THROW(privacy::decode_terms(privacy::encode_terms(terms)), RunError);
}

// --- shares of noise under masks --------------------------------------------------------------------

TEST(PrivateRun, SharesOfNoiseUnderMasks) {
  const auto clients = clients_of({{"y", numbers(1000, 0, 10)}}, 4);
  const double plain = run_local(program_of(kSum), clients, {}).results.outputs.at("s").item();
  RunOptions options;
  options.secure = RunOptions::Secure{};
  options.secure->threshold = 3;
  double squares = 0;
  double scale = 0;
  constexpr int runs = 60;
  for (int i = 0; i < runs; ++i) {
    Promise promise = promise_of(1, 1e-5, At::distributed);
    promise.seed = 1000 * i;
    const RunReport report = run(kSum, clients, promise, options);
    scale = report.privacy->releases[0].scale;
    EXPECT_TRUE(
        is_multiple(report.results.outputs.at("s").item(), report.privacy->releases[0].grid));
    squares += std::pow(report.results.outputs.at("s").item() - plain, 2);
  }
  // Four add shares where two are promised: there are twice the promised squares, or a little less than that.
  const double shares = static_cast<double>(
      run(kSum, clients, promise_of(1, 1e-5, At::distributed), options).privacy->shares);
  EXPECT_NEAR(squares / runs / (scale * scale * 4 / shares), 1, 5 * std::sqrt(2.0 / runs));
  // By Renyi divergences, so a little more noise than one discrete Gaussian needs.
  EXPECT_GT(scale, 37.3);
  EXPECT_LT(scale, 45);
}

TEST(PrivateRun, SharesOfNoiseNeedMasks) {
  const auto clients = clients_of({{"y", numbers(100, 0, 10)}}, 4);
  EXPECT_THROW(run(kSum, clients, promise_of(1, 1e-5, At::distributed)), privacy::NotPrivate);
}

// The same noise, the same integers: masks change nothing.
TEST(PrivateRun, MaskedSumsAreThePlainOnes) {
  const auto clients = clients_of({{"y", numbers(1000, 0, 10)}}, 4);
  RunOptions options;
  options.secure = RunOptions::Secure{};
  options.secure->threshold = 3;
  const double masked =
      run(kSum, clients, promise_of(1, 1e-5), options).results.outputs.at("s").item();
  EXPECT_EQ(masked, run(kSum, clients, promise_of(1, 1e-5)).results.outputs.at("s").item());
}

// --- noise at the outputs ---------------------------------------------------------------------------

TEST(PrivateRun, OutputsThatAreLinear) {
  const std::string text =
      "input y : [*]\nlet s = sum[*](clip(y, 0, 10))\nlet n = records(y)\n"
      "output both = s / 4 - 3 * n + 7\noutput n\n";
  const auto clients = clients_of({{"y", numbers(1000, 0, 10)}}, 3);
  const RunReport plain = run_local(program_of(text), clients, {});
  const RunReport noised = run(text, clients, promise_of(100, 1e-6, At::output));
  const auto& outputs = noised.privacy->rounds[0].merges;
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_NEAR(outputs[0].sensitivity, 10 / 4.0 + 3, 0.02);
  EXPECT_NEAR(outputs[1].sensitivity, 1, 0.001);
  for (const char* name : {"both", "n"}) {
    const double error =
        noised.results.outputs.at(name).item() - plain.results.outputs.at(name).item();
    EXPECT_NE(error, 0);
    EXPECT_LT(std::abs(error), 5);
    // Digits beyond the noise's grid would be those of the answer.
    const auto& merge = outputs[std::string_view(name) == "n" ? 1 : 0];
    EXPECT_TRUE(is_multiple(noised.results.outputs.at(name).item(), merge.noise_grid())) << name;
  }
}

// A number that is given out several times changes as often.
TEST(PrivateRun, OutputsThatRepeatThemselves) {
  const auto clients = clients_of({{"y", numbers(100, 0, 1)}}, 2);
  for (const double delta : {0.0, 1e-6}) {
    const RunReport noised =
        run("input y : [*]\nlet s = sum[*](clip(y, 0, 1))\noutput t = [s, -s, 2 * s]\n", clients,
            promise_of(1, delta, At::output));
    EXPECT_NEAR(noised.privacy->rounds[0].merges[0].sensitivity, delta == 0 ? 4 : std::sqrt(6.0),
                0.02);
  }
}

// What a node charges round by round comes to what the run promised, however it stops.
TEST(PrivateRun, ChargesAddUp) {
  const auto program = program_of(
      "input x : [*]\nstate t : [] = 0\nrepeat 20 {\n  let g = sum[*](clip(x - t, -1, 1))\n"
      "  t <- t + 0.01 * g\n}\noutput t\n");
  for (const double delta : {0.0, 1e-6}) {
    privacy::Terms terms;
    terms.promise = promise_of(2, delta);
    terms.clients = 1;
    const privacy::PrivatePlan plan(program->plan, {}, terms);
    double spent = 0;
    for (int i = 1; i <= 20; ++i) {
      spent = plan.spent_with(spent, 0);
      const double expected =
          delta == 0 ? 0.1 * i
                     : privacy::gaussian_epsilon(
                           privacy::gaussian_mu(2, delta) * std::sqrt(i / 20.0), delta);
      EXPECT_NEAR(spent, expected, 1e-6) << i;
    }
    EXPECT_NEAR(spent, 2, 1e-6);
  }
}

TEST(PrivateRun, OutputsThatAreNot) {
  const auto clients = clients_of({{"y", numbers(100, 0, 1)}}, 2);
  for (const char* text :
       {"input y : [*]\noutput m = mean[*](clip(y, 0, 1))\n",
        "input y : [*]\nlet s = sum[*](clip(y, 0, 1))\noutput t = s * s\n",
        "input y : [*]\nlet s = sum[*](clip(y, 0, 1))\ntrace t = s\noutput s\n",
        "input y : [*]\nlet s = sum[*](clip(y, 0, 1))\noutput t = sum[*](clip(y - s, 0, 1))\n",
        "input y : [*]\nstate t : [] = 0\nrepeat 2 {\n  t <- t + sum[*](clip(y, 0, 1))\n}\noutput "
        "t\n"})
    EXPECT_THROW(run(text, clients, promise_of(1, 1e-6, At::output)), privacy::NotPrivate) << text;
}

}  // namespace
}  // namespace starfold

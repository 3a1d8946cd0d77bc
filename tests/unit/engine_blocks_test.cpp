// How blocks run at a client: updates of many numbers, states that change places, and where they stop.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "starfold/base/error.h"
#include "tests/unit/engine_testing.h"

namespace starfold::testing {
namespace {

Client client_with_columns(std::int64_t records, std::int64_t columns) {
  std::mt19937_64 random(static_cast<std::uint64_t>(records + columns));
  std::normal_distribution<double> normal;
  Tensor x({records, columns});
  for (double& value : x.data) value = normal(random);
  return {fmt::format("c{}", records), {{"x", std::move(x)}}};
}

// Many numbers change in each of many small steps: what is made on the way is not laid down, and the answer is the same. Chains
// that branch, that end in two values, that read a value twice, with maps that have no kernel, and a rest of a strip.
TEST(EngineBlocks, UpdatesOfManyNumbers) {
  const ir::Program program = program_of(R"(
input x : [*, p]
input rate : [] = 0.1
let (b, v, w, u) = each client {
  state b : [p] = zeros(p)
  state v = ones(p)
  state w = full(2, p)
  state u = zeros(p)
  repeat batches(3, 1) {
    let g = sum[*](x) / records(x) + 0.01 * b
    let step = tanh(g * rate) - v / 3
    let old = w
    v <- 0.9 * v + (g - b) * (g - b) / (1 + abs(g))
    w <- u
    u <- old
    b <- b - rate * (step + exp(-abs(step)) * 2 ^ (step / 4))
  }
  repeat 2 {
    b <- (b + rate * v) / 2 - 1
  }
  (b, v, w, u)
}
output a = sum[*](b)
output c = sum[*](v)
output d = sum[*](w + 10 * u)
)");
  const std::vector<Client> clients = {client_with_columns(7, 5003), client_with_columns(0, 5003),
                                       client_with_columns(12, 5003)};
  const Results want = evaluate_reference(program, clients, {});
  for (const bool optimize : {true, false}) {
    EngineFederation federation(program, clients, {}, {}, optimize);
    expect_close(federation.run(), want, 1e-12);
    expect_close(federation.run(), want, 1e-12);  // with the memory of the first time
  }
}

// A program that a stranger sent must not decide how deep the stack of a client gets.
TEST(EngineBlocks, ChainsOfManyMaps) {
  constexpr int maps = 20'000;
  std::string text = "input x : [*, p]\nlet b = each client {\n  let m0 = sum[*](x) / 7\n";
  for (int i = 1; i <= maps; ++i)
    text += fmt::format("  let m{} = m{} {} 3\n", i, i - 1, i % 2 == 0 ? "-" : "+");
  text += fmt::format("  m{}\n}}\noutput a = sum[*](b)\n", maps);
  const ir::Program program = program_of(text);
  const std::vector<Client> clients = {client_with_columns(3, 2051), client_with_columns(0, 2051)};
  const Results want = evaluate_reference(program, clients, {});
  EngineFederation federation(program, clients, {}, {}, false);
  expect_close(federation.run(), want, 1e-9);
}

// What is summed over few records and changes places with what was summed before belongs to the batch at hand.
TEST(EngineBlocks, GradientsOfMatricesInBatches) {
  const ir::Program program = program_of(R"(
size q = 37
input x : [*, p]
let (w, m) = each client {
  state w : [p, q] = normal(3, p, q)
  state m = zeros(p, q)
  repeat 3 {
    repeat batches(5, 2) {
      let h = tanh(x @ w)
      m <- 0.5 * m + x' @ h / records(x)
      w <- w - 0.1 * m
    }
  }
  (w, m)
}
output a = sum[*](w)
output b = sum[*](m)
)");
  const Settings settings;
  const std::vector<Client> clients = {client_with_columns(23, 60), client_with_columns(0, 60),
                                       client_with_columns(66, 60)};
  const Results want = evaluate_reference(program, clients, settings);
  EngineFederation federation(program, clients, settings);
  expect_close(federation.run(), want, 1e-11);
  expect_close(federation.run(), want, 1e-11);
}

// Blocks without records, or that compute without them, look at the wish to stop as well.
TEST(EngineBlocks, StopWhereThereAreNoRecords) {
  std::atomic<bool> stop = true;
  EngineOptions options;
  options.stop = &stop;
  const std::vector<std::string> bodies = {
      "solve(eye(p) + outer(own, own), own)",  // at many clients at once
      "state b = own\n  repeat 2 { b <- b / 2 }\n  b",
  };
  for (const std::string& body : bodies) {
    const ir::Program program = program_of(
        fmt::format("input x : [*, p]\ninput own : [*client, p]\nlet r = each client {{\n  {}\n}}\n"
                    "output s = sum[*](r)\n",
                    body));
    Client client = client_with_columns(0, 4);
    client.arrays["own"] = Tensor({1, 4}, {1, 2, 3, 4});
    stop = true;
    EngineFederation federation(program, {client}, {}, options);
    try {
      federation.run();
      FAIL() << "it did not stop: " << body;
    } catch (const RunError& error) {
      EXPECT_STREQ(error.what(), "the run was stopped");
    }
    stop = false;
    EXPECT_EQ(federation.run().outputs.at("s").shape, Shape{4});
  }
}

// A loop that would go on for years meets no record at which it could be stopped.
TEST(EngineBlocks, StopInALoopWithoutRecords) {
  std::atomic<bool> stop = false;
  EngineOptions options;
  options.stop = &stop;
  const ir::Program program = program_of(
      "input x : [*, p]\nlet r = each client {\n  state b = 1\n  repeat 1000000000000 { b <- b / 2 "
      "+ 1 }\n"
      "  b + sum[*](x[:, 1])\n}\noutput s = sum[*](r)\n");
  EngineFederation federation(program, {client_with_columns(3, 2)}, {}, options);
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stop = true;
  });
  EXPECT_THROW(federation.run(), RunError);
}

}  // namespace
}  // namespace starfold::testing

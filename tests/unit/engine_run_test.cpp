// How the engine runs: threads, what it keeps between rounds, where it stops, what it refuses and prints.
#include "starfold/data/arrays/given.h"
#include "starfold/ops/standard.h"
#include "tests/unit/engine_testing.h"

namespace starfold::testing {
namespace {

TEST(Engine, SameBitsForAnyNumberOfThreads) {
  const ir::Program program = program_of(kInputs + R"(
output a = sum[*](exp(x))
output v = var[*](x)
output l = logsumexp[*](u)
output g = x' @ (y[:, new] * x)
output m = max[*](softmax[2](x))
output q1 = sum[*](median[2](x))
)");
  Draws random(11);
  const Settings settings = settings_of(random);
  const std::vector<Client> clients = {client_of("a", 100'011, random)};
  const Results one = EngineFederation(program, clients, settings, {64, 1}).run();
  for (const int threads : {2, 3, 8}) {
    const Results many = EngineFederation(program, clients, settings, {64, threads}).run();
    for (const auto& [name, tensor] : one.outputs)
      EXPECT_EQ(tensor.data, many.outputs.at(name).data) << name;
  }
  expect_close(one, evaluate_reference(program, clients, settings), 1e-11);
}

// What is kept between iterations is computed anew when the shared values it came from change.
TEST(Engine, KeptValues) {
  const ir::Program program = program_of(kInputs + R"(
state k : [] = s
repeat 3 {
  state beta : [p] = zeros(p)
  let f = exp(x * k + b)
  let r = y - log(abs(x @ b) + 1)
  repeat 4 {
    let eta = f @ beta
    beta <- beta + 0.001 * f' @ (r - eta)
  }
  k <- sum(beta)
}
output k
)");
  Draws random(13);
  const Settings settings = settings_of(random);
  const std::vector<Client> clients = {client_of("a", 1000, random), client_of("b", 0, random)};
  const Results want = evaluate_reference(program, clients, settings);
  for (const int threads : {1, 2}) {
    EngineFederation federation(program, clients, settings, {32, threads});
    EXPECT_NE(federation.print().find("again"), std::string::npos) << federation.print();
    expect_close(federation.run(), want, 1e-9);
    expect_close(federation.run(), want, 1e-9);  // a second run starts with what the first kept
  }
}

// What is kept between rounds is taken from the room there is; where there is too little, it is computed in every round.
TEST(Engine, KeptValuesTakeRoom) {
  const ir::Program program = program_of(kInputs + R"(
state beta : [p] = zeros(p)
let f = exp(x)
repeat 4 { beta <- beta + 0.001 * f' @ (y - f @ beta) }
output beta
)");
  Draws random(14);
  const Settings settings = settings_of(random);
  const std::vector<Client> clients = {client_of("a", 1000, random), client_of("b", 600, random)};
  const Results want = EngineFederation(program, clients, settings).run();
  const auto left_of = [&](std::int64_t room) {
    EngineOptions options;
    options.room = std::make_shared<std::atomic<std::int64_t>>(room);
    std::int64_t left = 0;
    {
      EngineFederation federation(program, clients, settings, options);
      expect_close(federation.run(), want, 0);
      left = options.room->load();
    }
    EXPECT_EQ(options.room->load(), room);  // engines that are no more keep nothing
    return left;
  };
  constexpr std::int64_t plenty = 1'000'000'000;
  const std::int64_t taken = plenty - left_of(plenty);
  EXPECT_GE(taken, static_cast<std::int64_t>(1600 * sizeof(double)));
  EXPECT_EQ(left_of(taken), 0);
  EXPECT_EQ(left_of(0), 0);
  const std::int64_t one = left_of(taken - 1);  // room for one of the two
  EXPECT_GT(one, 0);
  EXPECT_LT(one, taken - 1);
}

// Records that lie in memory are read where they lie, and laid out once in a long run, where there is room for copies: the same bits.
TEST(Engine, RecordsInMemoryAreLaidOutInLongRuns) {
  const auto program_with = [](int rounds) {
    return program_of(fmt::format(
        "input x : [*, p]\nstate beta : [p] = zeros(p)\nrepeat {} {{ beta <- beta + 1e-9 * "
        "x' @ (1 - x @ beta) }}\noutput beta\n",
        rounds));
  };
  constexpr std::int64_t records = 300'001;
  constexpr std::int64_t columns = 4;
  const Tensor numbers = Draws(21).normal({records, 2 * columns});
  ArrayView view;  // every other column of a wider array
  view.shape = {records, columns};
  view.strides = {2 * columns * 8, 2 * 8};
  view.data = numbers.data.data();
  const DataSource source = given_source(
      "a", std::make_shared<GivenArrays>(std::map<std::string, ArrayView>{{"x", view}}));
  constexpr std::int64_t copy = (records + 511) / 512 * 512 * columns * 8;
  const auto run = [&](int rounds, std::int64_t copies, std::int64_t taken) {
    const ir::Program program = program_with(rounds);
    std::int64_t room = std::int64_t{1} << 40U;
    const std::vector<Client> clients = {load_client(program, source, {}, {}, room).client};
    EngineOptions options;
    options.copies = std::make_shared<std::atomic<std::int64_t>>(copies);
    Results results;
    {
      EngineFederation federation(program, clients, {}, options);
      results = federation.run();
      EXPECT_EQ(options.copies->load(), copies - taken);
    }
    EXPECT_EQ(options.copies->load(), copies);  // engines that are no more have no copy
    return results.outputs.at("beta").data;
  };
  EXPECT_EQ(run(30, copy, copy), run(30, copy - 1, 0));
  run(3, copy, 0);
}

// Between blocks a round sees that it is no longer wanted.
TEST(Engine, StopsBetweenBlocks) {
  const ir::Program program = program_of(kInputs + "output t = sum[*](exp(x))\n");
  Draws random(15);
  const Settings settings = settings_of(random);
  std::atomic<bool> stop = true;
  EngineOptions options;
  options.stop = &stop;
  EngineFederation federation(program, {client_of("a", 10, random)}, settings, options);
  EXPECT_THROW(federation.run(), RunError);
  stop = false;
  federation.run();
}

TEST(Engine, ReceivedValuesAreChecked) {
  const ir::Program program =
      program_of("input x : [*, p]\ninput b : [p]\noutput o = sum[*](x @ b)\n");
  Settings settings;
  settings.shared["b"] = vec({1, 2});
  EngineFederation federation(program, {{"a", {{"x", Tensor({2, 2}, 1.0)}}}}, settings);
  const Round& round = *rounds_of(*federation.plan).front();
  ASSERT_EQ(round.receives.size(), 1u);
  EXPECT_NE(run_error_of([&] { federation.engines[0].encode(round, {}); }), "");
  EXPECT_NE(run_error_of([&] {
              federation.engines[0].encode(round, {{round.receives[0], vec({1, 2, 3})}});
            }),
            "");
  EXPECT_EQ(federation.engines[0].encode(round, {{round.receives[0], vec({1, 2})}})[0][0].item(),
            6);
}

TEST(Engine, FailuresAreReportedFromAnyThread) {
  const ir::Program program = program_of("input t : [3]\ninput l : [*]\noutput o = sum[*](t[l])\n");
  Settings settings;
  settings.shared["t"] = vec({1, 2, 3});
  Client client{"a", {{"l", Tensor({1'200'000}, 2.0)}}};
  client.arrays["l"].data[700'000] = 7;
  for (const int threads : {1, 4}) {
    EngineFederation federation(program, {client}, settings, {512, threads});
    EXPECT_EQ(run_error_of([&] { federation.run(); }),
              "1 index of a table of length 3 is not a whole number from 1 to 3");
  }
}

TEST(Engine, UserPrimitives) {
  Signature signature = standard_signature();
  Signature::ClientLocal range;
  range.name = "spread";
  range.doc = "largest minus smallest";
  range.cell_shape = [](std::span<const std::vector<Size>>) { return std::vector<Size>{}; };
  range.cell_value = [](std::span<const Tensor> cells) {
    const auto [low, high] = std::minmax_element(cells[0].data.begin(), cells[0].data.end());
    return Tensor::scalar(*high - *low);
  };
  signature.add(range);
  CheckOptions options;
  options.signature = &signature;
  const ir::Program program =
      program_of("input x : [p, *]\noutput o = sum[*](spread(x))\n", options);
  Draws random(17);
  const Client client{"a", {{"x", random.normal({3, 100})}}};
  EngineFederation federation(program, {client}, {}, {7, 1});
  expect_close(federation.run(), evaluate_reference(program, {client}, {}), 1e-12);
}

// A logistic Hessian is one symmetric product of scaled columns, and a wide chain of maps needs few
// columns of scratch.
TEST(Engine, ProgramsPrint) {
  const ir::Program program =
      program_of("input x : [*, 9]\ninput w : [*]\noutput h = x' @ (w[:, new] * x)\n");
  const std::string hessian =
      EngineFederation(program, {{"a", {{"x", Tensor({2, 9})}, {"w", Tensor({2})}}}}, {}).print();
  EXPECT_NE(hessian.find("symmetric gram"), std::string::npos) << hessian;
  const ir::Program chain =
      program_of("input x : [*, 9]\noutput h = sum[*](exp(sin(x) + 1) * cos(x))\n");
  const std::string steps = EngineFederation(chain, {{"a", {{"x", Tensor({2, 9})}}}}, {}).print();
  EXPECT_NE(steps.find("2 scratch columns"), std::string::npos) << steps;
}

}  // namespace
}  // namespace starfold::testing

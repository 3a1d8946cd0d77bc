// The protocol's preconditions, one by one, and what each side learns when one does not hold: the server
// a fixed sentence, the owner of the data the detail.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <new>
#include <set>

#include "starfold/federation/coordinator.h"
#include "starfold/federation/local.h"
#include "starfold/federation/node.h"
#include "starfold/ops/standard.h"

namespace starfold {
namespace {

const std::string nothing = "nothing was refused";

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const RunError& error) {
    return error.what();
  }
  return nothing;
}

std::shared_ptr<const CompiledProgram> program_of(
    const std::string& text, const Signature& signature = standard_signature()) {
  ProgramOptions options;
  options.signature = &signature;
  auto program = compile_program({"test.fold", text, {}}, options);
  EXPECT_TRUE(program->plan) << text;
  return program;
}

Client client_with(const std::string& name, std::vector<double> x) {
  Client client{name, {}};
  const auto count = static_cast<std::int64_t>(x.size());
  client.arrays["x"] = Tensor({count}, std::move(x));
  return client;
}

const char* const loop_text =
    "input x : [*]\n"
    "state m = 0\n"
    "repeat 3 {\n"
    "  m <- m + sum[*](x - m) / 10\n"
    "}\n"
    "output m\n";

// A coordinator and one node in the second of three iterations.
struct InALoop {
  std::shared_ptr<const CompiledProgram> program = program_of(loop_text);
  Coordinator coordinator{program, {}, {"a"}};
  ProgramCache cache;
  Node node{client_with("a", {1, 2, 3}), cache};
  Bytes first_answer;

  InALoop() {
    coordinator.absorb(0, node.handle(coordinator.request()));
    first_answer = node.handle(coordinator.request());
    coordinator.absorb(0, first_answer);
  }
  StateMessage answer() {
    return std::get<StateMessage>(decode_message(node.handle(coordinator.request())));
  }
  std::string refused(const Message& message) {
    return refusal([&] { coordinator.absorb(0, encode_message(message)); });
  }
};

TEST(Protocol, AnAnswerToAnEarlierOrLaterRequest) {
  InALoop run;
  const std::string words = "the answer of client a cannot be used: it answers another request";
  EXPECT_EQ(refusal([&] { run.coordinator.absorb(0, run.first_answer); }), words);
  const StateMessage good = run.answer();
  ASSERT_EQ(good.sequence, 1);
  for (const std::uint64_t sequence : {0, 2, 1000}) {
    StateMessage bad = good;
    bad.sequence = sequence;
    EXPECT_EQ(run.refused(bad), words) << sequence;
  }
  // Nothing of a refused answer was merged: the run ends as if there had been none.
  run.coordinator.absorb(0, encode_message(good));
  run.coordinator.absorb(0, run.node.handle(run.coordinator.request()));
  ASSERT_TRUE(run.coordinator.done());
  EXPECT_EQ(
      run.coordinator.results().outputs.at("m").item(),
      run_local(run.program, {client_with("a", {1, 2, 3})}, {}).results.outputs.at("m").item());
}

TEST(Protocol, AnotherPlanHashOfTheSameLength) {
  InALoop run;
  const StateMessage good = run.answer();
  ASSERT_EQ(good.agreement.size(), 64);
  for (const std::size_t place : {0, 31, 63}) {
    StateMessage bad = good;
    bad.agreement[place] = bad.agreement[place] == '0' ? '1' : '0';
    EXPECT_EQ(run.refused(bad),
              "the answer of client a cannot be used: it belongs to another program");
    Coordinator greeting(run.program, {}, {"a"});
    EXPECT_EQ(refusal([&] {
                greeting.absorb(0, encode_message(HelloMessage{bad.agreement, {}}));
              }),
              "the answer of client a cannot be used: it arrived at another plan");
  }
}

TEST(Protocol, AnotherRound) {
  InALoop run;
  StateMessage bad = run.answer();
  ++bad.round;
  EXPECT_EQ(run.refused(bad), "the answer of client a cannot be used: it belongs to another round");
}

TEST(Protocol, StatesOfTheWrongNumberOrSize) {
  InALoop run;
  const StateMessage good = run.answer();
  StateMessage bad = good;
  bad.states.push_back(bad.states.front());
  EXPECT_EQ(run.refused(bad),
            "the answer of client a cannot be used: it has the wrong number of values");
  for (const auto& spoil : std::vector<std::function<void(MergeState&)>>{
           [](MergeState& state) { state.clear(); },
           [](MergeState& state) { state.push_back(Tensor::scalar(1)); },
           [](MergeState& state) { state[0] = Tensor(Shape{1}); },
           [](MergeState& state) { state[0] = Tensor(Shape{2}); }}) {
    bad = good;
    spoil(bad.states[0]);
    const std::string words = run.refused(bad);
    EXPECT_NE(words.find("the answer of client a cannot be used"), std::string::npos) << words;
    EXPECT_TRUE(words.ends_with("it has the wrong number of parts") ||
                words.ends_with("a part has the wrong shape"))
        << words;
  }
  run.coordinator.absorb(0, encode_message(good));
}

TEST(Protocol, AStateMessageInsteadOfAGreetingAndTheOtherWayRound) {
  InALoop run;
  Coordinator greeting(run.program, {}, {"a"});
  EXPECT_EQ(refusal([&] { greeting.absorb(0, run.first_answer); }),
            "the answer of client a cannot be used: a greeting was expected");
  EXPECT_EQ(run.refused(HelloMessage{run.program->hash, {}}),
            "the answer of client a cannot be used: an encoded state was expected");
  EXPECT_EQ(run.refused(StartMessage{run.program->hash, run.program->text, {}, true}),
            "the answer of client a cannot be used: an encoded state was expected");
}

TEST(Protocol, TooManyAnswersOrStrangers) {
  InALoop run;
  EXPECT_THROW(run.coordinator.absorb(1, run.first_answer), Bug);
  run.coordinator.absorb(0, encode_message(run.answer()));
  const StateMessage last = run.answer();
  run.coordinator.absorb(0, encode_message(last));
  EXPECT_EQ(run.refused(last), "the answer of client a cannot be used: the run has ended");
}

TEST(Protocol, NoClients) {
  EXPECT_EQ(refusal([] { Coordinator(program_of(loop_text), {}, {}); }),
            "a federation needs at least one client: the program reads records");
  EXPECT_EQ(refusal([] { run_local(program_of(loop_text), {}, {}); }),
            "a federation needs at least one client: the program reads records");
  // Without records there is nobody to ask.
  const auto shared = program_of("input a : [] = 2\noutput b = a ^ 10\n");
  EXPECT_EQ(run_local(shared, {}, {}).results.outputs.at("b").item(), 1024);
}

TEST(Protocol, TwoClientsOfOneName) {
  const auto program = program_of(loop_text);
  for (const std::vector<std::string>& names : std::vector<std::vector<std::string>>{
           {"b", "b"}, {"a", "b", "b"}, {"b", "a", "c", "b"}, {"a", "c", "d", "b", "b"}}) {
    EXPECT_EQ(refusal([&] { Coordinator(program, {}, names); }), "two clients are named b");
    std::vector<Client> clients;
    for (const std::string& name : names) clients.push_back(client_with(name, {1}));
    EXPECT_EQ(refusal([&] { run_local(program, clients, {}); }), "two clients are named b");
    EXPECT_EQ(refusal([&] { pack_clients(program->plan->program, clients); }),
              "two clients are named b");
  }
}

// --- the node's side

struct Answered {
  std::string server;  // what the server learns
  std::string owner;   // what the owner of the data learns
};

Answered answer_of(Node& node, std::string_view request) {
  const Bytes bytes = node.handle(request);
  const Message reply = decode_message(bytes);
  const auto* refused = std::get_if<RefuseMessage>(&reply);
  if (refused == nullptr) return {nothing, node.trouble() ? node.trouble()->what() : nothing};
  // A refusal is as long as any other: only its number differs.
  EXPECT_EQ(bytes.size(), encode_message(RefuseMessage{}).size());
  return {std::string(sentence(refused->reason)), node.trouble()->what()};
}

TEST(Protocol, NodesRefuse) {
  const auto program = program_of("input x : [*, p]\ninput b : [p]\noutput t = sum[*](x * b)\n");
  ProgramCache cache;
  Client client{"a", {}};
  client.arrays["x"] = Tensor({3, 2}, std::vector<double>{1, 2, 3, 4, 5, 6});
  Node node(client, cache);
  const auto check = [&](const Message& request, const std::string& server,
                         const std::string& owner) {
    const Answered answered = answer_of(node, encode_message(request));
    EXPECT_EQ(answered.server, server);
    EXPECT_NE(answered.owner.find(owner), std::string::npos) << answered.owner;
  };
  const std::string& hash = program->hash;
  std::string other = hash;
  other[63] = other[63] == '0' ? '1' : '0';
  check(EncodeMessage{hash, 0, 0, {}}, "no program was started",
        "client a: no program was started");
  for (const Message& message : {Message(HelloMessage{hash, {}}),
                                 Message(StateMessage{hash, 0, 0, {}}), Message(RefuseMessage{})})
    check(message, "this message is not for a client", "client a");
  check(StartMessage{other, program->text, {}, true},
        "the same text gives another plan there; client and server run different versions",
        "another plan here");
  check(StartMessage{hash, {"t", "output x = ", {}}, {}, true}, "the program has errors",
        "client a");
  check(StartMessage{hash, program->text, {{"p", 7}}, true}, "its data do not fit the program",
        "client a, input x, axis 2 is 2, but its size p with p = 7 is 7");
  // A start that fails leaves nothing started.
  check(EncodeMessage{hash, 0, 0, {Tensor(Shape{2})}}, "no program was started", "client a");
  check(StartMessage{hash, program->text, {}, true}, nothing, nothing);
  check(EncodeMessage{other, 0, 0, {}}, "the request belongs to another program", "client a");
  check(EncodeMessage{hash, 0, 9, {}}, "the plan has no such round", "no round 9");
  check(EncodeMessage{hash, 0, 0, {}}, "the shared values are not those that the round needs",
        "needs 1 shared values, not 0");
  check(EncodeMessage{hash, 0, 0, {Tensor(Shape{3})}},
        "the shared values are not those that the round needs", "b has the wrong shape");
  check(EncodeMessage{hash, 0, 0, {Tensor(Shape{2})}}, nothing, nothing);
  EXPECT_EQ(answer_of(node, "STARFOLD but no message").server, "the request cannot be read");
}

TEST(Protocol, EveryRefusalHasWordsOfItsOwn) {
  std::set<std::string_view> words;
  for (std::size_t i = 0; i < refusal_count; ++i) {
    const auto reason = static_cast<Refusal>(i);
    EXPECT_TRUE(words.insert(sentence(reason)).second) << i;
    const Message again = decode_message(encode_message(RefuseMessage{reason}));
    EXPECT_EQ(std::get<RefuseMessage>(again).reason, reason);
  }
  EXPECT_EQ(refusal([] {
              decode_message(encode_message(RefuseMessage{static_cast<Refusal>(refusal_count)}));
            }),
            "a message is malformed: a length or an order does not fit");
}

// What records make a computation say reaches the owner with client and line, and the server never.
TEST(Protocol, WhatFailsOnRecordsIsForTheOwner) {
  const char* const text = "input x : [*]\ninput t : [4]\n\noutput s = sum[*](t[x])\n";
  const auto program = program_of(text);
  Settings settings;
  settings.shared["t"] = Tensor({4}, std::vector<double>{1, 2, 3, 4});
  Coordinator coordinator(program, settings, {"a"});
  ProgramCache cache;
  Node node(client_with("a", {1, 2, 77}), cache);
  coordinator.absorb(0, node.handle(coordinator.request()));
  const Bytes answer = node.handle(coordinator.request());
  EXPECT_EQ(refusal([&] { coordinator.absorb(0, answer); }),
            "client a refuses: its records cannot be folded as the program asks");
  ASSERT_TRUE(node.trouble());
  EXPECT_TRUE(std::string(node.trouble()->what()).starts_with("client a: "))
      << node.trouble()->what();
  ASSERT_TRUE(node.trouble()->where());
  EXPECT_EQ(program->compilation.sources[0].position(node.trouble()->where()->begin).line, 4);
  // A node that failed once goes on.
  EXPECT_EQ(
      answer_of(node, encode_message(StartMessage{program->hash, program->text, {}, true})).server,
      nothing);
}

// A client-local primitive that fails in a way of its own.
Signature failing(std::function<void()> failure) {
  Signature signature = standard_signature();
  Signature::ClientLocal primitive;
  primitive.name = "fragile";
  primitive.cell_shape = [](std::span<const std::vector<Size>> cells) {
    return std::optional(cells[0]);
  };
  primitive.cell_value = [failure = std::move(failure)](std::span<const Tensor> cells) {
    failure();
    return cells[0];
  };
  signature.add(std::move(primitive));
  return signature;
}

TEST(Protocol, TheWordsOfAnExceptionStayWhereTheyAre) {
  const std::string secret = "the patient was born on the 7th";
  const auto refusal_of = [&](const std::function<void()>& failure) {
    const Signature signature = failing(failure);
    const auto program = program_of("input x : [*]\noutput s = sum[*](fragile(x))\n", signature);
    Coordinator coordinator(program, {}, {"a"});
    ProgramCache cache(signature);
    Node node(client_with("a", {1, 2, 3}), cache);
    coordinator.absorb(0, node.handle(coordinator.request()));
    const Bytes answer = node.handle(coordinator.request());
    EXPECT_EQ(answer.find("patient"), std::string::npos);
    return Answered{refusal([&] { coordinator.absorb(0, answer); }), node.trouble()->what()};
  };
  Answered told = refusal_of([&] { throw std::runtime_error(secret); });
  EXPECT_EQ(told.server, "client a refuses: an internal error");
  EXPECT_EQ(told.owner, "client a: an internal error");
  told = refusal_of([&] { throw RunError(secret); });
  EXPECT_EQ(told.server, "client a refuses: its records cannot be folded as the program asks");
  EXPECT_EQ(told.owner, "client a: " + secret);
  told = refusal_of([&] { throw std::bad_alloc(); });
  EXPECT_EQ(told.server, "client a refuses: it has not enough memory or threads");
  EXPECT_EQ(told.owner, "client a: it has not enough memory or threads");
  told = refusal_of([&] { throw Bug(secret); });
  EXPECT_EQ(told.server, "client a refuses: an internal error");
}

// --- many clients

std::vector<Client> many(std::size_t count, std::size_t wrong) {
  std::vector<Client> clients;
  for (std::size_t i = 0; i < count; ++i)
    clients.push_back(client_with(fmt::format("c{}", i), {1, 2, i == wrong ? 9.0 : 3.0}));
  return clients;
}

TEST(Protocol, TheLocalUserLearnsClientAndLine) {
  const char* const text = "input x : [*]\ninput t : [4]\n\noutput s = sum[*](t[x])\n";
  const auto program = program_of(text);
  Settings settings;
  settings.shared["t"] = Tensor({4}, std::vector<double>{1, 2, 3, 4});
  const auto failure = [&](std::vector<Pack> packs) {
    try {
      run_packs(program, std::move(packs), settings);
    } catch (const RunError& error) {
      const std::uint32_t line =
          error.where() ? program->compilation.sources[0].position(error.where()->begin).line : 0;
      const std::string what = error.what();
      return fmt::format("{} line {}", what.substr(0, what.find(':')), line);
    }
    return nothing;
  };
  for (const std::size_t wrong : {0, 1, 16, 39}) {
    const std::string expected = fmt::format("client c{} line 4", wrong);
    EXPECT_EQ(failure(keep_apart(program->plan->program, many(40, wrong))), expected);
    std::vector<Pack> packs = pack_clients(program->plan->program, many(40, wrong));
    EXPECT_EQ(packs.size(), 1);
    EXPECT_EQ(failure(std::move(packs)), expected);
  }
  EXPECT_EQ(failure(pack_clients(program->plan->program, many(40, 40))), nothing);
}

// However many they are, clients with data of their own are asked one by one.
TEST(Protocol, OnlySimulationsArePacked) {
  const auto program = program_of("input x : [*]\noutput s = sum[*](x)\noutput v = var[*](x)\n");
  const RunReport apart = run_local(program, many(40, 3), {});
  const RunReport together =
      run_packs(program, pack_clients(program->plan->program, many(40, 3)), {});
  EXPECT_EQ(apart.packed, 0);
  EXPECT_EQ(together.packed, 40);
  ASSERT_EQ(apart.clients.size(), 40);
  ASSERT_EQ(together.clients.size(), 40);
  for (std::size_t i = 0; i < 40; ++i) {
    // A packed client is told what it would have sent, and that is what it does send.
    EXPECT_EQ(apart.clients[i].name, together.clients[i].name);
    EXPECT_EQ(apart.clients[i].bytes_sent, together.clients[i].bytes_sent);
    EXPECT_EQ(apart.clients[i].numbers_sent, together.clients[i].numbers_sent);
    EXPECT_EQ(apart.clients[i].numbers_sent, 1 + 3);
  }
  for (const auto& [name, value] : apart.results.outputs)
    EXPECT_DOUBLE_EQ(value.item(), together.results.outputs.at(name).item());
}

// Unpacked again, clients hold what they held, wherever their star is.
TEST(Protocol, PackingLosesNothing) {
  const auto program = program_of(
      "input a : [*, 2]\ninput b : [2, *visits, 3]\noutput s = sum[*](a)\n"
      "output t = sum[*visits](b)\n");
  std::vector<Client> clients;
  double next = 0;
  for (int i = 0; i < 20; ++i) {
    Client client{fmt::format("c{}", i), {}};
    client.arrays["a"] = Tensor(Shape{i % 3, 2});
    client.arrays["b"] = Tensor(Shape{2, i % 4, 3});
    for (auto& [name, array] : client.arrays) {
      for (double& value : array.data) value = next++;
    }
    clients.push_back(std::move(client));
  }
  const ir::Program& typed = program->plan->program;
  const std::vector<Pack> packs = pack_clients(typed, clients);
  ASSERT_EQ(packs.size(), 1);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const Client again = unpack(typed, packs[0], packs[0].records.arrays, i, i + 1);
    EXPECT_EQ(again.name, clients[i].name);
    for (const auto& [name, array] : clients[i].arrays) {
      EXPECT_EQ(again.arrays.at(name).shape, array.shape);
      EXPECT_EQ(again.arrays.at(name).data, array.data);
    }
  }
}

// Columns of a packed client are as far apart as the largest one's: kernels may go through them in another way, but to the same bits. More records
// and columns than random programs have, so that blocks come from memory.
TEST(Protocol, PackedClientsOfManyColumnsComputeTheSameBits) {
  const auto program = program_of(
      "input x : [*, p]\ninput y : [*]\n"
      "let own = each client {\n  x' @ (x @ (x' @ y) - y)\n}\nkeep own = own\n");
  std::vector<Client> clients;
  for (std::int64_t i = 0; i < 100; ++i) {
    Client client{fmt::format("c{}", i), {}};
    const std::int64_t records = 290 + 2 * (i * 37 % 100);
    client.arrays["x"] = Tensor(Shape{records, 20});
    client.arrays["y"] = Tensor(Shape{records});
    double turn = static_cast<double>(i);
    for (auto& [name, array] : client.arrays) {
      for (double& value : array.data) value = std::sin(turn++);
    }
    clients.push_back(std::move(client));
  }
  const ir::Program& typed = program->plan->program;
  const RunReport together = run_packs(program, pack_clients(typed, clients), {});
  const RunReport apart = run_packs(program, keep_apart(typed, clients), {});
  EXPECT_EQ(together.packed, 100);
  ASSERT_EQ(apart.results.kept.at("own").size(), 100);
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_EQ(together.results.kept.at("own")[i].data, apart.results.kept.at("own")[i].data) << i;
}

}  // namespace
}  // namespace starfold

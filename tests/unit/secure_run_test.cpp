// Runs whose states are masked, through coordinator and nodes: in one process and over carriers that lose messages and clients.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <set>

#include "starfold/base/error.h"
#include "starfold/federation/remote.h"
#include "starfold/secure/masked_states.h"

namespace starfold {
namespace {

const std::string run_id(32, 'c');

const char* const program_text =
    "input x : [*, p]\n"
    "input g : [*]\n"
    "state m : [p] = zeros(p)\n"
    "repeat 3 {\n  m <- m + sum[*](x - m) / 100\n}\n"
    "output m\n"
    "output n = count[*](g)\n"
    "output high = sum[*](g > 0.5)\n";

struct Setting {
  std::shared_ptr<const CompiledProgram> program;
  std::vector<Client> clients;
  std::vector<std::string> names;
  std::vector<secure::Identity> identities;
  RunIdentity identity;

  explicit Setting(std::size_t count, const std::string& text = program_text,
                   std::uint32_t threshold = 0)
      : program(compile_program({"test.fold", text, {}})) {
    identity.run = run_id;
    identity.group = secure::Group{threshold, secure::least_members, {}};
    for (std::size_t i = 0; i < count; ++i) {
      Client client{"n" + std::to_string(i), {}};
      Tensor x({20, 2});
      Tensor g(Shape{20});
      for (std::size_t k = 0; k < x.data.size(); ++k)
        x.data[k] = static_cast<double>((k * 7919 + i * 31) % 1000) / 7;
      for (std::size_t k = 0; k < g.data.size(); ++k) g.data[k] = static_cast<double>((k + i) % 2);
      client.arrays["x"] = std::move(x);
      client.arrays["g"] = std::move(g);
      names.push_back(client.name);
      clients.push_back(std::move(client));
      identities.push_back(std::make_shared<const secure::Secret>(secure::Secret::random()));
      identity.group->members.push_back({names.back(), secure::signing_key(*identities.back())});
    }
  }
  Coordinator coordinator() const { return Coordinator(program, {}, names, nullptr, identity); }

  // The definition: states of the engine as integers, added up, and decoded, without any mask.
  Results plain_integers(std::set<std::size_t> without = {}) const {
    ProgramCache cache;
    std::vector<Node> nodes;
    RunIdentity open = identity;
    open.group.reset();
    Coordinator greeter(program, {}, names, nullptr, open);
    for (std::size_t i = 0; i < clients.size(); ++i) nodes.emplace_back(clients[i], cache);
    for (std::size_t i = 0; i < clients.size(); ++i)
      greeter.absorb(i, nodes[i].handle(greeter.request(i)));
    const SizeValues sizes = greeter.sizes();
    Machine machine(program->plan, sizes, {});
    std::uint64_t sequence = 0;
    while (machine.round() != nullptr) {
      const Round& round = *machine.round();
      const secure::Layout layout = secure::masked_layout(*program->plan, round, sizes);
      secure::Words sum = secure::zeros(layout);
      EncodeMessage asked{
          program->hash, sequence++, static_cast<std::uint32_t>(round.number), {}, run_id};
      std::map<ir::NodeId, Tensor> values = machine.to_send();
      for (const ir::NodeId id : round.receives) asked.values.push_back(values.at(id));
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const Message state = nodes[i].answer(asked);
        if (without.count(i) == 0)
          secure::combine(
              sum, secure::to_words(*program->plan, round, std::get<StateMessage>(state).states),
              layout, secure::Direction::add);
      }
      machine.absorb(secure::from_words(*program->plan, round, sizes, sum));
    }
    return machine.results();
  }
};

// Nodes that answer at once, unless they are away; all that they say is looked at.
class DirectCarrier : public Carrier {
 public:
  explicit DirectCarrier(const Setting& setting) : setting_(setting) {
    for (std::size_t i = 0; i < setting.clients.size(); ++i) {
      nodes_.push_back(nullptr);
      start(i);
    }
  }
  // A node that is started anew remembers its records alone.
  void start(std::size_t i) {
    nodes_[i] = std::make_unique<Node>(setting_.clients[i], cache_, EngineOptions{},
                                       setting_.identities[i]);
  }
  void send(std::size_t client, const Bytes& request) override {
    ++sent;
    if (before) before(client, request);
    if (away.count(client) != 0) {
      arriving_.push_back({client, std::nullopt});
      return;
    }
    Bytes answer = nodes_[client]->handle(request);
    if (after) after(client, request, answer);
    said.push_back(answer);
    arriving_.push_back({client, std::move(answer)});
  }
  std::optional<Delivery> receive(double /*seconds*/) override {
    if (arriving_.empty()) return std::nullopt;
    Delivery delivery = std::move(arriving_.front());
    arriving_.pop_front();
    return delivery;
  }

  std::function<void(std::size_t, const Bytes&)> before;
  std::function<void(std::size_t, const Bytes&, Bytes&)> after;
  std::set<std::size_t> away;
  std::vector<Bytes> said;
  std::size_t sent = 0;

 private:
  const Setting& setting_;
  ProgramCache cache_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::deque<Delivery> arriving_;
};

void expect_same(const Results& a, const Results& b) {
  ASSERT_EQ(a.outputs.size(), b.outputs.size());
  for (const auto& [name, value] : a.outputs) {
    const std::vector<double>& other = b.outputs.at(name).data;
    ASSERT_EQ(value.data.size(), other.size());
    EXPECT_EQ(std::memcmp(value.data.data(), other.data(), other.size() * sizeof(double)), 0)
        << name;
  }
}

template <typename Body>
bool is_step(const Bytes& request) {
  const Message message = decode_message(request);
  const auto* step = std::get_if<SecureRequest>(&message);
  return step != nullptr && std::holds_alternative<Body>(step->body);
}

TEST(SecureRun, ResultsAreThoseOfTheIntegersToTheBit) {
  for (const std::size_t clients : {3, 5}) {
    const Setting s(clients);
    DirectCarrier carrier(s);
    const RunReport report = run_remote(s.coordinator(), *s.program, s.names, carrier, {});
    expect_same(report.results, s.plain_integers());
    ASSERT_TRUE(report.group);
    // Counts are whole numbers, which any sum has right.
    const RunReport plain = run_local(s.program, s.clients, {});
    for (const char* name : {"n", "high"})
      EXPECT_EQ(report.results.outputs.at(name).data, plain.results.outputs.at(name).data);
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_NEAR(report.results.outputs.at("m").data[i], plain.results.outputs.at("m").data[i],
                  1e-12);
    EXPECT_EQ(report.rounds, plain.rounds);
    EXPECT_EQ(report.round_runs, plain.round_runs);
    // A greeting, keys and shares once for all rounds, and two steps for each round.
    EXPECT_EQ(carrier.sent, clients * static_cast<std::size_t>(3 + 2 * report.rounds));
  }
}

TEST(SecureRun, InOneProcess) {
  const Setting s(4);
  RunOptions options;
  options.secure = RunOptions::Secure{};
  const RunReport report = run_local(s.program, s.clients, {}, options);
  expect_same(report.results, s.plain_integers());
  EXPECT_EQ(report.group->members.size(), 4U);
  EXPECT_EQ(report.clients[0].numbers_sent,
            run_local(s.program, s.clients, {}).clients[0].numbers_sent);
}

// The coordinator is given nothing in which a number of a client's state can be found, and takes no state that is not masked.
TEST(SecureRun, TheCoordinatorNeverHoldsAClientsState) {
  const Setting s(3);
  DirectCarrier carrier(s);
  std::vector<Bytes> saved;
  RemoteOptions options;
  options.checkpoint = [&](const Bytes& state) { saved.push_back(state); };
  run_remote(s.coordinator(), *s.program, s.names, carrier, options);
  // What the clients' states hold, as doubles and as integers.
  RunIdentity open = s.identity;
  open.group.reset();
  ProgramCache cache;
  Coordinator plain(s.program, {}, s.names, nullptr, open);
  std::vector<Node> nodes;
  for (const Client& client : s.clients) nodes.emplace_back(client, cache);
  std::vector<Bytes> secrets;
  while (!plain.done()) {
    std::vector<Bytes> answers;
    for (std::size_t i = 0; i < 3; ++i) answers.push_back(nodes[i].handle(plain.request(i)));
    for (std::size_t i = 0; i < 3; ++i) {
      const Message message = decode_message(answers[i]);
      if (const auto* state = std::get_if<StateMessage>(&message)) {
        for (const MergeState& one : state->states) {
          for (const Tensor& part : one) {
            for (const double number : part.data) {
              if (number == std::floor(number)) continue;  // too few bytes to tell it by
              secrets.emplace_back(reinterpret_cast<const char*>(&number), sizeof number);
            }
          }
        }
      }
      plain.absorb(i, answers[i]);
    }
  }
  ASSERT_GT(secrets.size(), 6U);
  for (const Bytes& secret : secrets) {
    for (const Bytes& answer : carrier.said) EXPECT_EQ(answer.find(secret), Bytes::npos);
    for (const Bytes& state : saved) EXPECT_EQ(state.find(secret), Bytes::npos);
  }
  for (const Bytes& answer : carrier.said)
    EXPECT_FALSE(std::holds_alternative<StateMessage>(decode_message(answer)));
}

TEST(SecureRun, MessagesOfAnotherKindDoNotPassUnmasked) {
  const Setting s(3);
  ProgramCache cache;
  Node node(s.clients[0], cache, {}, s.identities[0]);
  Coordinator coordinator = s.coordinator();
  ASSERT_TRUE(is_greeting(node.handle(coordinator.request(0))));
  const std::string agreed = agreement(s.program->hash, "", s.identity.group);
  const Bytes plain = encode_message(EncodeMessage{agreed, 0, 0, {}, run_id});
  const Message answer = decode_message(node.handle(plain));
  ASSERT_TRUE(std::holds_alternative<RefuseMessage>(answer));
  EXPECT_EQ(std::get<RefuseMessage>(answer).reason, Refusal::broken_protocol);
  // Nor does the coordinator take what is not masked.
  for (std::size_t i = 0; i < 3; ++i) {
    Node other(s.clients[i], cache, {}, s.identities[i]);
    coordinator.absorb(i, other.handle(coordinator.request(i)));
  }
  const Bytes state = encode_message(StateMessage{agreed, 0, 0, {}, run_id});
  EXPECT_THROW(coordinator.absorb(0, state), UnusableAnswer);
}

TEST(SecureRun, WhatCannotBeMaskedIsRefusedBeforeTheFirstRound) {
  const auto refusal = [](const std::string& fold) {
    const Setting s(3, "input x : [*, p]\ninput g : [*]\noutput r = " + fold + "\n");
    try {
      s.coordinator();
    } catch (const secure::NotMaskable& error) {
      EXPECT_TRUE(error.where());
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal("sum[*](x)"), "");
  EXPECT_EQ(refusal("count[*](x)"), "");
  for (const char* name : {"min", "max"}) {
    const std::string words = refusal(std::string(name) + "[*](g)");
    EXPECT_NE(words.find(std::string("merged by ") + name), std::string::npos) << words;
    EXPECT_NE(words.find("histogram"), std::string::npos) << words;
  }
  EXPECT_NE(refusal("prod[*](g)").find("sum[*](log(x))"), std::string::npos);
  EXPECT_NE(refusal("any[*](g > 0)").find("count"), std::string::npos);
  EXPECT_NE(refusal("all[*](g > 0)").find("count"), std::string::npos);
  // Two clients are too few: each would learn the other's.
  EXPECT_THROW(Setting(2).coordinator(), secure::NotMaskable);
  EXPECT_THROW(Setting(4, program_text, 5).coordinator(), secure::NotMaskable);
}

TEST(SecureRun, AClientThatIsNotInTheGroupTakesNoPart) {
  const Setting s(3);
  ProgramCache cache;
  const auto stranger = std::make_shared<const secure::Secret>(secure::Secret::random());
  for (const secure::Identity& identity : {secure::Identity(), secure::Identity(stranger)}) {
    Node node(s.clients[0], cache, {}, identity);
    EXPECT_FALSE(is_greeting(node.handle(s.coordinator().request(0))));
    EXPECT_TRUE(node.trouble());
  }
}

// --- clients that are lost ----------------------------------------------------------------------------

TEST(SecureRun, OnDropoutContinueGoesOnWithoutAClient) {
  // At each step of the protocol, in the first round and in a later one.
  for (int step = 0; step < 4; ++step) {
    for (const int round : {0, 1}) {
      if (step < 2 && round > 0) continue;  // keys are made once
      SCOPED_TRACE(testing::Message() << "step " << step << ", round " << round);
      const Setting s(5);
      DirectCarrier carrier(s);
      int seen = 0;
      carrier.before = [&](std::size_t client, const Bytes& request) {
        if (client != 2) return;
        const bool now = step == 0   ? is_step<secure::KeysRequest>(request)
                         : step == 1 ? is_step<secure::ShareRequest>(request)
                         : step == 2 ? is_step<secure::MaskRequest>(request)
                                     : is_step<secure::UnmaskRequest>(request);
        if (now && seen++ >= (step < 2 ? 0 : round)) carrier.away.insert(2);
      };
      RemoteOptions options;
      options.on_dropout = RemoteOptions::Dropout::go_on;
      options.timeout = 3;  // far more than the others take, also on a busy machine
      const RunReport report = run_remote(s.coordinator(), *s.program, s.names, carrier, options);
      ASSERT_EQ(report.departures.size(), 1U);
      EXPECT_EQ(report.departures[0].client, 2U);
      // A client whose masked state is there is still in the sum of that round.
      EXPECT_EQ(report.departures[0].rounds, step < 2 ? 0 : step == 2 ? round : round + 1);
      EXPECT_EQ(report.rounds, 4);
      if (step < 2 || (step == 2 && round == 0)) expect_same(report.results, s.plain_integers({2}));
    }
  }
}

TEST(SecureRun, TooManyDropOutsEndTheRun) {
  const Setting s(5);
  DirectCarrier carrier(s);
  carrier.before = [&](std::size_t client, const Bytes& request) {
    if (client < 3 && is_step<secure::MaskRequest>(request)) carrier.away.insert(client);
  };
  RemoteOptions options;
  options.on_dropout = RemoteOptions::Dropout::go_on;
  options.timeout = 0.2;
  EXPECT_THROW(run_remote(s.coordinator(), *s.program, s.names, carrier, options), secure::TooFew);
}

// A client that is lost after its masked state came is not waited for: the others are enough to unmask.
TEST(SecureRun, UnmaskingDoesNotWaitForOne) {
  const Setting s(3);
  DirectCarrier carrier(s);
  carrier.before = [&](std::size_t client, const Bytes& request) {
    if (client != 1) return;
    if (is_step<secure::UnmaskRequest>(request)) {
      carrier.away.insert(1);
    } else {
      carrier.away.erase(1);
    }
  };
  const RunReport report = run_remote(s.coordinator(), *s.program, s.names, carrier, {});
  EXPECT_TRUE(report.departures.empty());
  expect_same(report.results, s.plain_integers());
}

// Nodes that forget, as those do that are started anew: new keys, the same sums.
TEST(SecureRun, NodesThatForgetMakeNewKeys) {
  for (int kind = 0; kind < 4; ++kind) {
    SCOPED_TRACE(kind);
    const Setting s(4);
    DirectCarrier carrier(s);
    int times = 0;
    std::uint64_t sequence = 0;
    std::optional<std::uint32_t> round;
    carrier.before = [&](std::size_t client, const Bytes& request) {
      const bool now = kind == 0   ? is_step<secure::ShareRequest>(request)
                       : kind == 1 ? is_step<secure::MaskRequest>(request)
                       : kind == 2 ? is_step<secure::UnmaskRequest>(request)
                                   : is_step<secure::KeysRequest>(request);
      if (client == 3 && now && times++ < 2) carrier.start(3);
      const Message message = decode_message(request);
      if (const auto* step = std::get_if<SecureRequest>(&message)) {
        if (const auto* mask = std::get_if<secure::MaskRequest>(&step->body)) {
          sequence = mask->sequence;
          round = mask->round;
        }
      }
    };
    if (kind == 2) {
      // A node that was started anew knows from its ledger where the run stands; here there is none, and the rounds to come
      // would be out of order for it. It is not needed to unmask, so the run gets that far.
      EXPECT_THROW(run_remote(s.coordinator(), *s.program, s.names, carrier, {}), ClientRefused);
      continue;
    }
    const RunReport report = run_remote(s.coordinator(), *s.program, s.names, carrier, {});
    expect_same(report.results, s.plain_integers());
    EXPECT_GE(times, 2);
  }
}

// --- a coordinator that is started anew ---------------------------------------------------------------

TEST(SecureRun, EveryCheckpointGoesOnToTheSameBits) {
  const Setting s(4);
  std::vector<Bytes> saved;
  {
    DirectCarrier carrier(s);
    RemoteOptions options;
    options.checkpoint = [&](const Bytes& state) { saved.push_back(state); };
    run_remote(s.coordinator(), *s.program, s.names, carrier, options);
  }
  const Results expected = s.plain_integers();
  for (std::size_t stop = 0; stop < saved.size(); ++stop) {
    SCOPED_TRACE(stop);
    DirectCarrier carrier(s);
    RemoteOptions options;
    std::size_t count = 0;
    Bytes last;
    struct Stopped {};
    options.checkpoint = [&](const Bytes& state) {
      last = state;
      if (count++ == stop) throw Stopped();
    };
    try {
      run_remote(s.coordinator(), *s.program, s.names, carrier, options);
    } catch (const Stopped&) {
    }
    options.checkpoint = nullptr;
    Coordinator again = Coordinator::resume(s.program, {}, s.names, last, nullptr, s.identity);
    const RunReport report = run_remote(std::move(again), *s.program, s.names, carrier, options);
    expect_same(report.results, expected);
  }
}

// The answer to a request for shares was lost with the coordinator that asked: the next one asks the same.
TEST(SecureRun, SharesThatWereGivenAwayAreAskedForAgain) {
  const Setting s(3);
  DirectCarrier carrier(s);
  RemoteOptions options;
  Bytes last;
  options.checkpoint = [&](const Bytes& state) { last = state; };
  struct Stopped {};
  carrier.after = [&](std::size_t client, const Bytes& request, Bytes&) {
    if (client == 1 && is_step<secure::UnmaskRequest>(request)) throw Stopped();
  };
  EXPECT_THROW(run_remote(s.coordinator(), *s.program, s.names, carrier, options), Stopped);
  carrier.after = nullptr;
  Coordinator again = Coordinator::resume(s.program, {}, s.names, last, nullptr, s.identity);
  const RunReport report = run_remote(std::move(again), *s.program, s.names, carrier, {});
  expect_same(report.results, s.plain_integers());
}

TEST(SecureRun, CheckpointsOfAnotherGroupAreRefused) {
  const Setting s(3);
  const Bytes saved = s.coordinator().save();
  RunIdentity other = s.identity;
  other.group->threshold = 3;
  EXPECT_THROW(Coordinator::resume(s.program, {}, s.names, saved, nullptr, other), RunError);
  other.group.reset();
  EXPECT_THROW(Coordinator::resume(s.program, {}, s.names, saved, nullptr, other), RunError);
}

// --- what states may hold -----------------------------------------------------------------------------

TEST(SecureRun, NumbersThatAreNotFiniteComeOutAsInAnySum) {
  Setting s(3, "input x : [*, p]\ninput g : [*]\noutput t = sum[*](x)\n");
  s.clients[1].arrays["x"].data[0] = std::numeric_limits<double>::infinity();
  s.clients[2].arrays["x"].data[1] = std::numeric_limits<double>::quiet_NaN();
  RunOptions options;
  options.secure = RunOptions::Secure{};
  const RunReport report = run_local(s.program, s.clients, {}, options);
  EXPECT_TRUE(std::isinf(report.results.outputs.at("t").data[0]));
  EXPECT_TRUE(std::isnan(report.results.outputs.at("t").data[1]));
}

TEST(SecureRun, ClientsWithoutRecordsAddNothing) {
  Setting s(4, "input x : [*, p]\ninput g : [*]\noutput t = sum[*](x)\noutput n = count[*](g)\n");
  s.clients[3].arrays["x"] = Tensor({0, 2});
  s.clients[3].arrays["g"] = Tensor(Shape{0});
  RunOptions options;
  options.secure = RunOptions::Secure{};
  const RunReport report = run_local(s.program, s.clients, {}, options);
  EXPECT_EQ(report.results.outputs.at("n").data[0], 60);
  expect_same(report.results, s.plain_integers());
}

TEST(SecureRun, LargeStatesOfManyClients) {
  Setting s(20, "input x : [*, p]\ninput g : [*]\noutput t = x' @ x\n");
  RunOptions options;
  options.secure = RunOptions::Secure{};
  const RunReport report = run_local(s.program, s.clients, {}, options);
  expect_same(report.results, s.plain_integers());
}

}  // namespace
}  // namespace starfold

// Messages: what is cut, changed, of another version or not an answer to the question is refused
// with a reason, by both sides.
#include "starfold/federation/message.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "starfold/base/error.h"
#include "starfold/federation/coordinator.h"
#include "starfold/federation/node.h"

namespace starfold {
namespace {

// The reason of a RunError; what else happens is a failure.
std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const RunError& error) {
    return error.what();
  }
  return "nothing was refused";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::shared_ptr<const CompiledProgram> program_of(const std::string& text) {
  auto program = compile_program({"test.fold", text, {}});
  EXPECT_TRUE(program->plan);
  return program;
}

const char* const text =
    "input x : [*, p]\n"
    "input b : [p]\n"
    "output total = sum[*](x * b)\n"
    "output spread = var[*](x)\n"
    "output n = records(x)\n"
    "output some = any[*](x > 0)\n"
    "output soft = logsumexp[*](x)\n";

// A coordinator and one node that have greeted; the first round is waiting for its answer.
struct Dialogue {
  std::shared_ptr<const CompiledProgram> program = program_of(text);
  Coordinator coordinator;
  ProgramCache cache;
  Node node;

  explicit Dialogue(std::vector<std::string> clients = {"a"})
      : coordinator(program, settings(), std::move(clients)), node(client(), cache) {
    const Bytes hello = node.handle(coordinator.request());
    coordinator.absorb(0, hello);
  }
  static Settings settings() {
    Settings given;
    given.shared["b"] = Tensor({2}, std::vector<double>{1, 2});
    return given;
  }
  static Client client() {
    Client owner{"a", {}};
    owner.arrays["x"] = Tensor({3, 2}, std::vector<double>{1, 2, 3, 4, 5, 6});
    return owner;
  }
  StateMessage state() {
    return std::get<StateMessage>(decode_message(node.handle(coordinator.request())));
  }
  std::string refused(const Message& message) {
    return refusal([&] { coordinator.absorb(0, encode_message(message)); });
  }
  // The state of the merge with this monoid.
  MergeState& part(StateMessage& message, const Monoid& monoid) {
    const Round& round = *coordinator.round();
    for (std::size_t i = 0; i < round.merges.size(); ++i) {
      if (round.merges[i].monoid == &monoid) return message.states[i];
    }
    ADD_FAILURE() << "no such merge";
    return message.states[0];
  }
};

std::vector<Message> one_of_each() {
  return {
      StartMessage{"hash", {"name", "text", {{"m", "fn f(x : []) = x\n"}}}, {{"p", 3}}, false},
      HelloMessage{"hash", {{"p", 3}, {"q", 4}}},
      EncodeMessage{"hash", 7, 2, {Tensor::scalar(1.5), Tensor(Shape{2, 3}, 2.0)}},
      StateMessage{"hash", 7, 2, {{Tensor::scalar(3)}, {Tensor(Shape{2}), Tensor(Shape{2}, 1.0)}}},
      RefuseMessage{Refusal::cannot_encode}};
}

TEST(Message, EveryKindSurvives) {
  for (const Message& message : one_of_each()) {
    const Bytes bytes = encode_message(message);
    const Message again = decode_message(bytes);
    EXPECT_EQ(again.index(), message.index());
    EXPECT_EQ(encode_message(again), bytes);
  }
}

TEST(Message, CutAnywhere) {
  for (const Message& message : one_of_each()) {
    const Bytes bytes = encode_message(message);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_NE(refusal([&] { decode_message(std::string_view(bytes).substr(0, length)); }),
                "nothing was refused")
          << length;
    }
    EXPECT_NE(refusal([&] { decode_message(bytes + "x"); }), "nothing was refused");
  }
}

TEST(Message, AnyBitFlipped) {
  for (const Message& message : one_of_each()) {
    const Bytes bytes = encode_message(message);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      Bytes changed = bytes;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
      EXPECT_NE(refusal([&] { decode_message(changed); }), "nothing was refused") << "bit " << bit;
    }
  }
}

TEST(Message, AnotherVersion) {
  Bytes bytes = encode_message(HelloMessage{"hash", {}});
  bytes[8] = static_cast<char>(message_version + 1);
  EXPECT_EQ(refusal([&] { decode_message(bytes); }),
            fmt::format("a message has format version {}, but this Starfold speaks version {}",
                        message_version + 1, message_version));
}

TEST(Message, NotAMessage) {
  EXPECT_EQ(refusal([] { decode_message("GET / HTTP/1.1"); }),
            "these bytes are not a Starfold message");
  EXPECT_EQ(refusal([] { decode_message(""); }), "these bytes are not a Starfold message");
}

TEST(Message, AnAnswerToAnotherQuestion) {
  Dialogue d;
  StateMessage state = d.state();
  StateMessage other = state;
  other.agreement[0] = other.agreement[0] == 'a' ? 'b' : 'a';
  EXPECT_EQ(d.refused(other),
            "the answer of client a cannot be used: it belongs to another program");
  other = state;
  ++other.sequence;
  EXPECT_EQ(d.refused(other), "the answer of client a cannot be used: it answers another request");
  other = state;
  ++other.round;
  EXPECT_EQ(d.refused(other), "the answer of client a cannot be used: it belongs to another round");
  EXPECT_EQ(d.refused(HelloMessage{d.program->hash, {}}),
            "the answer of client a cannot be used: an encoded state was expected");
  EXPECT_EQ(d.refused(RefuseMessage{Refusal::cannot_encode}),
            "client a refuses: its records cannot be folded as the program asks");
  d.coordinator.absorb(0, encode_message(state));
  EXPECT_TRUE(d.coordinator.done());
  EXPECT_EQ(d.refused(state), "the answer of client a cannot be used: the run has ended");
}

TEST(Message, TheSameAnswerTwice) {
  auto program = program_of(text);
  Coordinator coordinator(program, Dialogue::settings(), {"a", "b"});
  ProgramCache cache;
  Node node(Dialogue::client(), cache);
  const Bytes hello = node.handle(coordinator.request());
  coordinator.absorb(0, hello);
  EXPECT_EQ(refusal([&] { coordinator.absorb(0, hello); }),
            "the answer of client a cannot be used: it has answered already");
}

TEST(Message, StatesOfTheWrongForm) {
  Dialogue d;
  const StateMessage good = d.state();
  StateMessage bad = good;
  bad.states.pop_back();
  EXPECT_TRUE(contains(d.refused(bad), "it has the wrong number of values"));
  bad = good;
  bad.states[0].clear();
  EXPECT_TRUE(contains(d.refused(bad), "it has the wrong number of parts"));
  bad = good;
  bad.states[0][0] = Tensor(Shape{3});
  EXPECT_TRUE(contains(d.refused(bad), "a part has the wrong shape"));
  for (const double count : {std::nan(""), -1.0, 1.5, std::numeric_limits<double>::infinity()}) {
    bad = good;
    d.part(bad, monoids::count)[0].data[0] = count;
    EXPECT_TRUE(contains(d.refused(bad), "a count is not a whole number")) << count;
    bad = good;
    d.part(bad, monoids::moments)[0].data[0] = count;
    EXPECT_TRUE(contains(d.refused(bad), "a count is not a whole number")) << count;
  }
  bad = good;
  d.part(bad, monoids::moments)[2].data[0] = -1;
  EXPECT_TRUE(contains(d.refused(bad), "a sum of squares is negative"));
  bad = good;
  for (const double truth : {std::nan(""), 5.0, -1.0, 0.5}) {
    d.part(bad, monoids::any)[0].data[0] = truth;
    EXPECT_TRUE(contains(d.refused(bad), "a truth value is neither 0 nor 1")) << truth;
  }
  // Numbers that are right one by one but cannot be together.
  bad = good;
  d.part(bad, monoids::moments)[0].data[0] = 0;
  EXPECT_TRUE(contains(d.refused(bad), "the answer of client a cannot be used: var[*](x): "));
  // After all that, the right answer is still welcome.
  d.coordinator.absorb(0, encode_message(good));
  EXPECT_TRUE(d.coordinator.done());
}

TEST(Message, GreetingsThatDoNotFit) {
  const auto program = program_of(text);
  const auto greet = [&](const Message& message) {
    Coordinator coordinator(program, Dialogue::settings(), {"a", "b"});
    coordinator.absorb(0, encode_message(HelloMessage{program->hash, {{"p", 2}}}));
    return refusal([&] { coordinator.absorb(1, encode_message(message)); });
  };
  EXPECT_EQ(greet(HelloMessage{"other", {{"p", 2}}}),
            "the answer of client b cannot be used: it arrived at another plan");
  EXPECT_TRUE(contains(greet(HelloMessage{program->hash, {{"p", 5}}}), "disagree on the size p"));
  EXPECT_TRUE(contains(greet(StateMessage{program->hash, 0, 0, {}}), "a greeting was expected"));
  EXPECT_TRUE(
      contains(greet(HelloMessage{program->hash, {{"p", 2}, {"zz", 1}}}), "no size named zz"));
  EXPECT_TRUE(
      contains(greet(HelloMessage{program->hash, {{"p", 0}}}), "its size p is not positive"));
  EXPECT_TRUE(contains(greet(HelloMessage{program->hash, {}}), "nothing was refused"));
}

}  // namespace
}  // namespace starfold

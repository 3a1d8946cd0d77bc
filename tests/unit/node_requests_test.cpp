// A request has its run, its round and its time: what a node refuses of those that come twice, early, late or changed, and what a
// coordinator refuses to go on with.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "starfold/federation/coordinator.h"
#include "starfold/federation/node.h"
#include "starfold/privacy/noise/grid.h"

namespace starfold {
namespace {

const std::string own_run(32, 'a');
const std::string other_run(32, 'b');

// Two rounds before a loop of one, so that some orders are wrong and a later iteration looks like an earlier one.
const char* const text =
    "input x : [*]\n"
    "input s : [] = 1\n"
    "let m = mean[*](x)\n"
    "state v = sum[*](square(x - m)) * s\n"
    "repeat 3 { v <- v + sum[*](tanh(x - v)) / 10 }\n"
    "output v\n";

Client client(std::vector<double> x = {1, 2, 3}) {
  Client made{"a", {}};
  const auto count = static_cast<std::int64_t>(x.size());
  made.arrays["x"] = Tensor({count}, std::move(x));
  return made;
}

// A coordinator and a node, and the requests that were answered so far.
struct Dialogue {
  std::shared_ptr<const CompiledProgram> program = compile_program({"test.fold", text, {}});
  Coordinator coordinator;
  ProgramCache cache;
  Node node{client(), cache};
  std::vector<EncodeMessage> asked;

  explicit Dialogue(RunIdentity identity = {own_run, "", "", {}})
      : coordinator(program, {}, {"a"}, nullptr, std::move(identity)) {
    coordinator.absorb(0, node.handle(coordinator.request()));
  }
  EncodeMessage request() const {
    return std::get<EncodeMessage>(decode_message(coordinator.request()));
  }
  void answer() {
    asked.push_back(request());
    coordinator.absorb(0, node.handle(coordinator.request()));
  }
  std::optional<Refusal> refused(const EncodeMessage& message) {
    const Message reply = decode_message(node.handle(encode_message(message)));
    const auto* refusal = std::get_if<RefuseMessage>(&reply);
    return refusal == nullptr ? std::nullopt : std::optional(refusal->reason);
  }
};

TEST(NodeRequests, HaveTheirRunAndTheirTime) {
  Dialogue dialogue;
  while (!dialogue.coordinator.done()) {
    const EncodeMessage good = dialogue.request();
    SCOPED_TRACE(good.sequence);
    EncodeMessage bad = good;
    bad.run = other_run;
    EXPECT_EQ(dialogue.refused(bad), Refusal::another_run);
    bad = good;
    bad.sequence += 1;
    EXPECT_EQ(dialogue.refused(bad), Refusal::out_of_order);
    // A round that cannot come now, with values that would fit it.
    for (const EncodeMessage& before : dialogue.asked) {
      if (before.round == good.round) continue;
      bad = before;
      bad.sequence = good.sequence;
      EXPECT_EQ(dialogue.refused(bad), Refusal::out_of_order) << before.round;
    }
    // What was answered before cannot be asked again with values of one's choice, nor can what was answered last.
    for (EncodeMessage before : dialogue.asked) {
      if (before.values.empty()) continue;
      before.values[0].data[0] += 1;
      EXPECT_EQ(dialogue.refused(before), Refusal::out_of_order) << before.sequence;
    }
    if (dialogue.asked.size() > 1) {
      EXPECT_EQ(dialogue.refused(dialogue.asked.front()), Refusal::out_of_order);
    }
    dialogue.answer();
  }
  EXPECT_EQ(dialogue.asked.size(), 5);
  // The last one, as it was, is answered as it was.
  EXPECT_EQ(dialogue.refused(dialogue.asked.back()), std::nullopt);
}

std::string trouble(const std::function<void()>& action) {
  try {
    action();
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

TEST(NodeRequests, AnswersHaveTheirRun) {
  Dialogue dialogue;
  Message reply = decode_message(dialogue.node.handle(dialogue.coordinator.request()));
  auto& state = std::get<StateMessage>(reply);
  state.run = other_run;
  EXPECT_NE(
      trouble([&] { dialogue.coordinator.absorb(0, encode_message(reply)); }).find("another run"),
      std::string::npos);
  state.run = own_run;
  dialogue.coordinator.absorb(0, encode_message(reply));
}

// Clients with a policy let no nan out: one that comes is a fault.
TEST(NodeRequests, GuardedRunsTakeNoNan) {
  for (const bool guarded : {false, true}) {
    RunIdentity identity{own_run, "", "", {}};
    identity.guarded = guarded;
    Dialogue dialogue(identity);
    Message reply = decode_message(dialogue.node.handle(dialogue.coordinator.request()));
    const std::vector<Merge>& merges = rounds_of(*dialogue.program->plan).front()->merges;
    for (std::size_t i = 0; i < merges.size(); ++i) {
      if (merges[i].monoid != &monoids::sum) continue;
      std::get<StateMessage>(reply).states[i][0].data[0] = std::nan("");
    }
    EXPECT_EQ(trouble([&] { dialogue.coordinator.absorb(0, encode_message(reply)); }).empty(),
              !guarded);
  }
}

TEST(NodeRequests, ACheckpointGoesOnAsItWas) {
  Dialogue dialogue;
  dialogue.answer();
  const Bytes saved = dialogue.coordinator.save();
  const auto resumed = [&](const Settings& settings, const std::vector<std::string>& clients,
                           const std::string& bindings = "") {
    return trouble([&] {
      Coordinator::resume(dialogue.program, settings, clients, saved, nullptr,
                          {"", "", bindings, {}});
    });
  };
  EXPECT_EQ(resumed({}, {"a"}), "");
  EXPECT_NE(resumed({}, {"b"}).find("other clients"), std::string::npos);
  EXPECT_NE(resumed({}, {"a", "b"}).find("other clients"), std::string::npos);
  Settings other;
  other.shared["s"] = Tensor::scalar(2);
  EXPECT_NE(resumed(other, {"a"}).find("other values"), std::string::npos);
  EXPECT_NE(resumed({}, {"a"}, "{}").find("other bindings"), std::string::npos);
}

// Sums on grids have room for so many records of all clients together: who has more than its part takes no part.
TEST(NodeRequests, MoreRecordsThanPrivateSumsHaveRoomFor) {
  ProgramOptions options;
  options.planning.additive = true;
  const auto program = compile_program(
      {"test.fold", "input x : [*]\noutput s = sum[*](clip(x, 0, 10))\n", {}}, options);
  for (const std::int64_t parts : {1, 3, 4, 1000}) {
    RunIdentity identity{own_run, "", "", {}};
    identity.terms.emplace();
    identity.terms->clients = static_cast<std::int64_t>(privacy::most_records_in_all) / 12 * parts;
    Coordinator coordinator(program, {}, {"a"}, nullptr, identity);
    ProgramCache cache;
    Node node(client({1, 2, 3, 4}), cache);
    coordinator.absorb(0, node.handle(coordinator.request()));
    const Message reply = decode_message(node.handle(coordinator.request()));
    EXPECT_EQ(std::holds_alternative<RefuseMessage>(reply), parts > 3) << parts;
  }
}

// What both sides agree on: nothing of it can be swapped without another hash.
TEST(NodeRequests, AgreementsDiffer) {
  const std::string plan(64, 'c');
  secure::Group group;
  group.members = {{"a", {}}, {"b", {}}, {"c", {}}};
  secure::Group patient = group;
  patient.minimum_clients += 1;
  secure::Group stricter = group;
  stricter.threshold += 1;
  secure::Group others = group;
  others.members[1].key.fill(7);
  const std::set<std::string> all = {agreement(plan, "", std::nullopt, ""),
                                     agreement(plan, "{}", std::nullopt, ""),
                                     agreement(plan, "{\"x\":1}", std::nullopt, ""),
                                     agreement(plan, "{}", group, ""),
                                     agreement(plan, "{}", patient, ""),
                                     agreement(plan, "{}", stricter, ""),
                                     agreement(plan, "{}", others, ""),
                                     agreement(plan, "{}", std::nullopt, "terms"),
                                     agreement(plan, "{}", std::nullopt, "other"),
                                     agreement(std::string(64, 'd'), "{}", std::nullopt, "")};
  EXPECT_EQ(all.size(), 10);
}

}  // namespace
}  // namespace starfold

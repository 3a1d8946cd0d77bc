// A run over a network that loses, doubles, delays and changes messages, whose nodes and coordinator forget: the
// results have the bits of a run in one process, whatever the program and the federation.
#include <gtest/gtest.h>

#include <deque>

#include "starfold/base/error.h"
#include "starfold/federation/remote.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

const std::string run_id(32, 'a');

std::vector<std::string> names_of(const Case& c) {
  std::vector<std::string> names;
  for (const Client& client : c.federation.clients) names.push_back(client.name);
  return names;
}

RunIdentity identity_of(const Case& c) {
  RunIdentity identity;
  identity.run = run_id;
  identity.bindings = "bindings";
  identity.sources.assign(c.federation.clients.size(), "source");
  return identity;
}

// Nodes behind a network in which everything goes wrong now and then.
class FaultyCarrier : public Carrier {
 public:
  FaultyCarrier(const Case& c, ProgramCache& cache)
      : case_(c), cache_(cache), random_(c.choices()) {
    for (const Client& client : c.federation.clients) {
      nodes_.push_back(std::make_unique<Node>(client, cache));
      next_.push_back({0, std::nullopt});
      kept_.emplace_back();
      old_.emplace_back();
    }
  }

  void send(std::size_t client, const Bytes& request) override {
    if (chance(8)) {
      arriving_.push_back({client, std::nullopt});
      return;
    }
    if (chance(8)) forget(client);
    Bytes answer = nodes_[client]->handle(request);
    note(client, request, answer);
    if (chance(8)) answer[answer.size() / 2] ^= 1;  // changed on its way
    if (chance(8)) answer.resize(answer.size() / 2);
    if (!old_[client].empty() && chance(6)) arriving_.push_back({client, old_[client]});
    old_[client] = answer;
    const bool twice = chance(6);
    if (twice) arriving_.push_back({client, answer});
    if (chance(3)) {
      arriving_.push_front({client, std::move(answer)});
    } else {
      arriving_.push_back({client, std::move(answer)});
    }
  }

  std::optional<Delivery> receive(double /*seconds*/) override {
    if (arriving_.empty()) return std::nullopt;
    Delivery delivery = std::move(arriving_.front());
    arriving_.pop_front();
    return delivery;
  }

 private:
  bool chance(int one_in) { return random_.below(one_in) == 0; }

  // A node that is started anew has its records, what its ledger says, and its last reply.
  void forget(std::size_t client) {
    nodes_[client] = std::make_unique<Node>(case_.federation.clients[client], cache_);
  }
  void note(std::size_t client, const Bytes& request, Bytes& answer) {
    if (request == kept_[client].first) answer = kept_[client].second;
    const Message message = decode_message(request);
    if (std::holds_alternative<StartMessage>(message) && next_[client].first > 0)
      nodes_[client]->go_on(next_[client].first, next_[client].second);
    if (const auto* encode = std::get_if<EncodeMessage>(&message);
        encode != nullptr && !nodes_[client]->trouble()) {
      next_[client] = {encode->sequence + 1, encode->round};
      kept_[client] = {request, answer};
    }
  }

  const Case& case_;
  ProgramCache& cache_;
  Random random_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::pair<std::uint64_t, std::optional<std::uint32_t>>> next_;
  std::vector<std::pair<Bytes, Bytes>> kept_;  // the last request that was answered, and the answer
  std::deque<Delivery> arriving_;
  std::vector<Bytes> old_;  // by client
};

Verdict faults_change_nothing(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.program || c.federation.clients.empty()) return Verdict::nothing();
  const Outcome expected = run_engine(c, *program.program);
  if (!expected.report) return Verdict::nothing();
  ProgramCache cache(*c.options.signature);
  FaultyCarrier carrier(c, cache);
  const std::vector<std::string> names = names_of(c);
  Coordinator coordinator(program.program, c.federation.settings, names, nullptr, identity_of(c));
  const RunReport report = run_remote(std::move(coordinator), *program.program, names, carrier, {});
  if (report.rounds != expected.report->rounds) return "another number of rounds";
  return same_bits(report.results, expected.report->results);
}

TEST(RemoteLaw, FaultsChangeNothing) {
  check_law("RemoteLaw.FaultsChangeNothing", {}, 60, faults_change_nothing);
}

// Every request is asked of a coordinator that was just read from its checkpoint.
Verdict checkpoints_go_on(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.program || c.federation.clients.empty()) return Verdict::nothing();
  const Outcome expected = run_engine(c, *program.program);
  if (!expected.report) return Verdict::nothing();
  ProgramCache cache(*c.options.signature);
  std::vector<Node> nodes;
  for (const Client& client : c.federation.clients) nodes.emplace_back(client, cache);
  const std::vector<std::string> names = names_of(c);
  std::optional<Coordinator> coordinator(std::in_place, program.program, c.federation.settings,
                                         names, nullptr, identity_of(c));
  while (!coordinator->done()) {
    const Bytes saved = coordinator->save();
    const Bytes request = coordinator->request();
    coordinator = Coordinator::resume(program.program, c.federation.settings, names, saved, nullptr,
                                      identity_of(c));
    if (coordinator->request() != request) return "the request is another one";
    if (coordinator->save() != saved) return "what is saved is something else";
    for (std::size_t i = 0; i < nodes.size(); ++i)
      coordinator->absorb(i, nodes[i].handle(coordinator->request(i)));
  }
  return same_bits(coordinator->results(), expected.report->results);
}

TEST(RemoteLaw, CheckpointsGoOnToTheSameBits) {
  check_law("RemoteLaw.CheckpointsGoOnToTheSameBits", {}, 100, checkpoints_go_on);
}

// A checkpoint that was cut is refused.
Verdict damaged_checkpoints(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.program || c.federation.clients.empty()) return Verdict::nothing();
  const std::vector<std::string> names = names_of(c);
  ProgramCache cache(*c.options.signature);
  std::vector<Node> nodes;
  for (const Client& client : c.federation.clients) nodes.emplace_back(client, cache);
  try {
    Coordinator coordinator(program.program, c.federation.settings, names, nullptr, identity_of(c));
    for (std::size_t i = 0; i < nodes.size(); ++i)
      coordinator.absorb(i, nodes[i].handle(coordinator.request(i)));
    if (coordinator.done()) return std::nullopt;
    const Bytes saved = coordinator.save();
    Random random = c.choices();
    for (int trial = 0; trial < 20; ++trial) {
      Bytes damaged =
          saved.substr(0, static_cast<std::size_t>(random.below(static_cast<int>(saved.size()))));
      try {
        Coordinator::resume(program.program, c.federation.settings, names, damaged, nullptr,
                            identity_of(c));
        return "a checkpoint that was cut is accepted";
      } catch (const RunError&) {
      }
    }
  } catch (const RunError&) {  // data or numerics: another law's business
  }
  return std::nullopt;
}

TEST(RemoteLaw, CheckpointsAreWholeOrRefused) {
  check_law("RemoteLaw.CheckpointsAreWholeOrRefused", {}, 40, damaged_checkpoints);
}

}  // namespace
}  // namespace starfold::laws

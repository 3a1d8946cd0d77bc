// Members and a server of secure aggregation in one process, step by step, for the tests of its protocol.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <random>
#include <set>

#include "starfold/secure/client.h"
#include "starfold/secure/server.h"

namespace starfold::secure {

inline const std::string run(32, 'a');
inline const std::string agreed = "the agreement";
inline const Layout layout = {{"sums", 1, 5}, {"wide", 34, 2}};

// So many members with inputs of their own, and a server.
struct Federation {
  Group group;
  std::vector<Identity> identities;
  std::vector<Client> clients;
  std::vector<Words> inputs;
  std::optional<Server> server;

  explicit Federation(std::size_t members, std::uint32_t threshold = 0,
                      std::uint32_t minimum = least_members) {
    group.threshold = threshold;
    group.minimum_clients = minimum;
    std::mt19937_64 random(members);
    for (std::size_t i = 0; i < members; ++i) {
      identities.push_back(std::make_shared<const Secret>(Secret::random()));
      group.members.push_back({"n" + std::to_string(i), signing_key(*identities.back())});
      Words input = zeros(layout);
      for (std::vector<std::uint64_t>& piece : input) {
        for (std::uint64_t& word : piece) word = random();
      }
      inputs.push_back(std::move(input));
    }
    for (const Identity& identity : identities) clients.emplace_back(group, identity, run, agreed);
  }

  void begin(std::uint32_t epoch = 1, std::uint64_t first = 0, std::uint32_t rounds = 2) {
    server.emplace(group, run, agreed, epoch, first, rounds,
                   std::vector<bool>(group.members.size(), true));
  }
  void round(std::uint64_t sequence, double value = 1) {
    ASSERT_TRUE(server->begin(sequence, 0, {Tensor::scalar(value)}, layout));
  }

  Reply answer(std::uint32_t member, const Request& request) {
    Client& client = clients[member];
    if (const auto* asked = std::get_if<KeysRequest>(&request)) return client.keys(*asked);
    if (const auto* asked = std::get_if<ShareRequest>(&request)) return client.share(*asked);
    if (const auto* asked = std::get_if<MaskRequest>(&request))
      return client.mask(*asked, layout, inputs[member]);
    if (const auto* asked = std::get_if<SignRequest>(&request)) return client.sign(*asked);
    return client.unmask(std::get<UnmaskRequest>(request));
  }

  // All who are awaited answer; those for whom `gone` says so do not.
  void step(const std::function<bool(std::uint32_t)>& gone = [](std::uint32_t) { return false; }) {
    std::vector<std::pair<std::uint32_t, Request>> questions;
    for (std::uint32_t i = 0; i < clients.size(); ++i) {
      if (server->awaits(i)) questions.emplace_back(i, server->request(i));
    }
    for (const auto& [member, question] : questions) {
      if (gone(member)) {
        server->drop(member);
      } else {
        server->absorb(member, answer(member, question));
      }
    }
  }
  void step_without(std::set<std::uint32_t> gone) {
    step([&](std::uint32_t member) { return gone.count(member) != 0; });
  }

  Words sum_of(const std::vector<std::uint32_t>& members) const {
    Words sum = zeros(layout);
    for (const std::uint32_t member : members) combine(sum, inputs[member], layout, Direction::add);
    return sum;
  }
  // Until the round is done.
  void finish() {
    while (server->stage() != Server::Stage::done) step();
  }
  void keys_and_shares() {
    begin();
    step();
    step();
  }
  template <typename Question>
  Question question(std::uint32_t member) const {
    return std::get<Question>(server->request(member));
  }
};

}  // namespace starfold::secure

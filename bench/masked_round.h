// One round of secure aggregation among all its members and the server, in one process on some threads: what members and server
// compute, without the way between them.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "starfold/base/parallel.h"
#include "starfold/secure/client.h"
#include "starfold/secure/server.h"

namespace starfold::bench {

class MaskedRound {
 public:
  // Every member's numbers are 0, 1, 2, ...
  MaskedRound(std::size_t members, std::uint64_t numbers, std::uint32_t width, std::size_t threads)
      : threads_(threads), layout_({{"numbers", width, numbers}}), input_(secure::zeros(layout_)) {
    std::vector<secure::Identity> identities;
    for (std::size_t i = 0; i < members; ++i) {
      identities.push_back(std::make_shared<const secure::Secret>(secure::Secret::random()));
      group_.members.push_back({std::to_string(i), secure::signing_key(*identities.back())});
    }
    for (const secure::Identity& identity : identities)
      clients_.emplace_back(group_, identity, run_, "agreed");
    for (std::size_t i = 0; i < input_[0].size(); ++i) input_[0][i] = i;
  }

  const secure::Words& input() const { return input_; }

  // The sum of a round with keys of its own; the first `gone` members give nothing from the mask on.
  secure::Words sum(std::size_t gone = 0) {
    secure::Server server(group_, run_, "agreed", ++epoch_, sequence_, 1,
                          std::vector<bool>(clients_.size(), true));
    step(server, 0);
    step(server, 0);
    if (!server.begin(sequence_++, 0, {}, layout_)) throw std::runtime_error("no keys");
    while (server.stage() != secure::Server::Stage::done) step(server, gone);
    return server.sum();
  }

 private:
  secure::Reply answer(std::size_t member, const secure::Request& request) {
    secure::Client& client = clients_[member];
    if (const auto* asked = std::get_if<secure::KeysRequest>(&request)) return client.keys(*asked);
    if (const auto* asked = std::get_if<secure::ShareRequest>(&request))
      return client.share(*asked);
    if (const auto* asked = std::get_if<secure::MaskRequest>(&request))
      return client.mask(*asked, layout_, input_);
    if (const auto* asked = std::get_if<secure::SignRequest>(&request)) return client.sign(*asked);
    return client.unmask(std::get<secure::UnmaskRequest>(request));
  }

  void step(secure::Server& server, std::size_t gone) {
    std::vector<std::optional<secure::Reply>> replies(clients_.size());
    in_parallel(clients_.size(), threads_, [&](std::size_t i) {
      const auto member = static_cast<std::uint32_t>(i);
      if (server.awaits(member) && i >= gone) replies[i] = answer(i, server.request(member));
    });
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      const auto member = static_cast<std::uint32_t>(i);
      if (replies[i])
        server.absorb(member, *std::move(replies[i]));
      else
        server.drop(member);
    }
  }

  const std::string run_ = std::string(32, 'a');
  std::size_t threads_;
  secure::Layout layout_;
  secure::Words input_;
  secure::Group group_;
  std::vector<secure::Client> clients_;
  std::uint32_t epoch_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace starfold::bench

// One round of secure aggregation among all its members and the server, in one process on two threads: what members and server compute,
// without the way between them. The sum is compared with that of the integers.
#include <benchmark/benchmark.h>

#include <stdexcept>

#include "starfold/base/parallel.h"
#include "starfold/privacy/secure_client.h"
#include "starfold/privacy/secure_server.h"

namespace starfold::secure {
namespace {

const std::string run(32, 'a');

struct Federation {
  Group group;
  Layout layout;
  std::vector<Client> clients;
  Words input;

  Federation(std::size_t members, std::uint64_t numbers, std::uint32_t width)
      : layout({{"numbers", width, numbers}}), input(zeros(layout)) {
    std::vector<Identity> identities;
    for (std::size_t i = 0; i < members; ++i) {
      identities.push_back(std::make_shared<const Secret>(Secret::random()));
      group.members.push_back({std::to_string(i), signing_key(*identities.back())});
    }
    for (const Identity& identity : identities)
      clients.emplace_back(group, identity, run, "agreed");
    for (std::size_t i = 0; i < input[0].size(); ++i) input[0][i] = i;
  }

  Reply answer(std::size_t member, const Request& request) {
    Client& client = clients[member];
    if (const auto* asked = std::get_if<KeysRequest>(&request)) return client.keys(*asked);
    if (const auto* asked = std::get_if<ShareRequest>(&request)) return client.share(*asked);
    if (const auto* asked = std::get_if<MaskRequest>(&request))
      return client.mask(*asked, layout, input);
    if (const auto* asked = std::get_if<SignRequest>(&request)) return client.sign(*asked);
    return client.unmask(std::get<UnmaskRequest>(request));
  }

  // The first `gone` members give nothing from the mask on.
  void step(Server& server, std::size_t gone = 0) {
    std::vector<std::optional<Reply>> replies(clients.size());
    in_parallel(clients.size(), 2, [&](std::size_t i) {
      const auto member = static_cast<std::uint32_t>(i);
      if (server.awaits(member) && i >= gone) replies[i] = answer(i, server.request(member));
    });
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const auto member = static_cast<std::uint32_t>(i);
      if (replies[i])
        server.absorb(member, *std::move(replies[i]));
      else
        server.drop(member);
    }
  }
};

// Arguments: members, numbers, words of each, members that drop out after they have shared.
void BM_SecureRound(benchmark::State& state) {
  Federation f(static_cast<std::size_t>(state.range(0)), static_cast<std::uint64_t>(state.range(1)),
               static_cast<std::uint32_t>(state.range(2)));
  const auto gone = static_cast<std::size_t>(state.range(3));
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;
  for (auto _ : state) {
    Server server(f.group, run, "agreed", ++epoch, sequence, 1,
                  std::vector<bool>(f.clients.size(), true));
    f.step(server);
    f.step(server);
    if (!server.begin(sequence, 0, {}, f.layout)) throw std::runtime_error("no keys");
    f.step(server, gone);
    while (server.stage() != Server::Stage::done) f.step(server);
    ++sequence;
    const std::uint64_t present = f.clients.size() - gone;
    if (server.sum()[0][1] != present * f.input[0][1]) throw std::runtime_error("a wrong sum");
  }
}
BENCHMARK(BM_SecureRound)
    ->Args({20, 100'000, 1, 0})
    ->Args({20, 100'000, 1, 3})
    ->Args({20, 10'000, 34, 0})
    ->Args({200, 1'000, 1, 0})
    ->Args({3, 10, 34, 0})
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace starfold::secure

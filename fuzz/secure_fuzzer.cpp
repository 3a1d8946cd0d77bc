// Secure aggregation among hostile carriers and liars: whatever is dropped, doubled, delayed or changed, either the sum of those who
// are in it comes out or none, and nobody gives away both secrets of a member in one round.
//
// Every two bytes are a step: what happens, and to whom or where.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "fuzz/require.h"
#include "starfold/base/error.h"
#include "starfold/secure/client.h"
#include "starfold/secure/server.h"

using namespace starfold;
using namespace starfold::secure;

namespace {

constexpr std::uint32_t members = 4;
const std::string run(32, 'a');
const Layout layout = {{"sums", 1, 2}, {"wide", 3, 1}};

Secret fixed(unsigned char byte) {
  Secret secret;
  std::fill_n(secret.data(), Secret::size, byte);
  return secret;
}

struct Federation {
  Group group;
  std::vector<Identity> identities;
  std::vector<Client> clients;
  std::optional<Server> server;
  std::vector<std::pair<std::uint32_t, Bytes>> questions;
  std::vector<std::pair<std::uint32_t, Bytes>> answers;
  // By who gave shares and for which epoch and round: who was said to be there.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::vector<std::uint32_t>>
      given;
  std::uint32_t epoch = 0;
  std::uint64_t sequence = 0;

  Federation() {
    for (std::uint32_t i = 0; i < members; ++i) {
      identities.push_back(
          std::make_shared<const Secret>(fixed(static_cast<unsigned char>(i + 1))));
      group.members.push_back(
          {std::string(1, static_cast<char>('a' + i)), signing_key(*identities[i])});
    }
    for (const Identity& identity : identities)
      clients.emplace_back(group, identity, run, "agreed");
    renew();
  }

  void renew() {
    server.emplace(group, run, "agreed", ++epoch, sequence, 2, std::vector<bool>(members, true));
  }
  static Words input(std::uint32_t member) {
    Words words = zeros(layout);
    for (auto& piece : words) {
      for (std::uint64_t& word : piece) word = ~std::uint64_t{0} / (member + 2);
    }
    return words;
  }

  Reply answer(std::uint32_t member, const Request& request) {
    Client& client = clients[member];
    if (const auto* asked = std::get_if<KeysRequest>(&request)) return client.keys(*asked);
    if (const auto* asked = std::get_if<ShareRequest>(&request)) return client.share(*asked);
    if (const auto* asked = std::get_if<MaskRequest>(&request))
      return client.mask(*asked, layout, input(member));
    if (const auto* asked = std::get_if<SignRequest>(&request)) return client.sign(*asked);
    const auto& asked = std::get<UnmaskRequest>(request);
    UnmaskReply reply = client.unmask(asked);
    // Both secrets of a member would be given away with another set.
    const auto [known, fresh] =
        given.emplace(std::tuple(member, asked.epoch, asked.sequence), asked.present);
    require(fresh || known->second == asked.present);
    return reply;
  }

  void ask(std::uint32_t member, const Bytes& question) {
    try {
      ByteReader in(question);
      const Request request = read_request(in);
      in.end();
      ByteWriter again;
      write(again, request);
      require(again.take() == question);
      ByteWriter out;
      write(out, answer(member, request));
      answers.emplace_back(member, out.take());
    } catch (const RunError& error) {
      require(*error.what() != '\0');
    }
  }
  void take(std::uint32_t member, const Bytes& answer) {
    try {
      ByteReader in(answer);
      Reply reply = read_reply(in);
      in.end();
      server->absorb(member, std::move(reply));
    } catch (const UnusableReply& error) {
      require(*error.what() != '\0');
    } catch (const RunError&) {  // too few, or shares that do not fit: the round is lost
      renew();
    }
    look();
  }
  void look() {
    if (server->stage() == Server::Stage::ready && !server->begin(sequence, 0, {}, layout)) renew();
    if (server->stage() != Server::Stage::done) return;
    Words sum = zeros(layout);
    for (const std::uint32_t member : server->present())
      combine(sum, input(member), layout, Direction::add);
    require(server->sum() == sum);
    require(server->present().size() >= group.inputs());
    ++sequence;
    if (!server->begin(sequence, 0, {}, layout)) renew();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Federation f;
  if (size > 400) size = 400;
  for (std::size_t i = 0; i + 1 < size; i += 2) {
    const std::uint8_t what = data[i] % 12;
    const std::uint8_t where = data[i + 1];
    const std::uint32_t member = where % members;
    if (what <= 4) {  // all goes well for one member
      if (!f.server->awaits(member)) continue;
      ByteWriter out;
      write(out, f.server->request(member));
      f.questions.emplace_back(member, out.take());
      f.ask(member, f.questions.back().second);
      if (!f.answers.empty()) f.take(f.answers.back().first, f.answers.back().second);
    } else if (what == 5 && !f.questions.empty()) {  // an old question, perhaps to somebody else
      f.ask(member, f.questions[where % f.questions.size()].second);
    } else if (what == 6 && !f.answers.empty()) {  // an old answer, perhaps as somebody else's
      f.take(member, f.answers[where % f.answers.size()].second);
    } else if (what == 7 && !f.questions.empty()) {  // a changed question
      auto [to, question] = f.questions.back();
      question[(where * question.size()) / 256] ^= static_cast<char>(1 + where % 7);
      f.ask(to, question);
    } else if (what == 8 && !f.answers.empty()) {  // a changed answer
      auto [from, changed] = f.answers.back();
      changed[(where * changed.size()) / 256] ^= static_cast<char>(1 + where % 7);
      f.take(from, changed);
    } else if (what == 9) {
      try {
        f.server->drop(member);
      } catch (const RunError&) {
        f.renew();
      }
      f.look();
    } else if (what == 10) {  // started anew, with what its ledger says
      f.clients[member] =
          Client(f.group, f.identities[member], run, "agreed", f.clients[member].next());
    } else if (what == 11) {
      f.renew();
    }
  }
  return 0;
}

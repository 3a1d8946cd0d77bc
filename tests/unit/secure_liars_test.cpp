// Secure aggregation among liars: every way in which a server may lie to members, and members to the server.
#include <algorithm>

#include "tests/unit/secure_federation.h"

namespace starfold::secure {
namespace {

// --- a server that lies -------------------------------------------------------------------------------

TEST(LyingServer, NeedsTheSignaturesOfPinnedKeys) {
  Federation f(3);
  f.begin();
  f.step();
  const auto honest = f.question<ShareRequest>(0);
  auto asked = honest;
  asked.keys[1].signature[5] ^= 1;
  EXPECT_THROW(f.clients[0].share(asked), ProtocolError);
  // Keys of its own, signed with a key of its own: the server in the place of another.
  asked = honest;
  const Secret forged = Secret::random();
  asked.keys[1].sealing = agreement_key(Secret::random());
  asked.keys[1].signature = sign(forged, signed_keys(session_of(run, agreed), asked.keys[1]));
  EXPECT_THROW(f.clients[0].share(asked), ProtocolError);
  // Keys of another session.
  asked = honest;
  Client elsewhere(f.group, f.identities[1], std::string(32, 'b'), agreed);
  asked.keys[1] = elsewhere.keys({1, 0, 2});
  EXPECT_THROW(f.clients[0].share(asked), ProtocolError);
  // Of another epoch, or another member's in its place.
  asked = honest;
  asked.keys[1] = Client(f.group, f.identities[1], run, agreed).keys({2, 0, 2});
  EXPECT_THROW(f.clients[0].share(asked), ProtocolError);
  asked = honest;
  asked.keys[2] = asked.keys[1];
  EXPECT_THROW(f.clients[0].share(asked), ProtocolError);
  asked = honest;
  asked.keys[1].member = 7;
  EXPECT_THROW(f.clients[0].share(asked), ProtocolError);
  EXPECT_NO_THROW(f.clients[0].share(honest));
}

TEST(LyingServer, CannotGiveOneKeyTwice) {
  Federation f(3);
  f.begin();
  f.step();
  auto asked = f.question<ShareRequest>(0);
  // A member that colludes and signs another's key as its own.
  asked.keys[2].masking[0] = asked.keys[1].masking[0];
  asked.keys[2].signature =
      sign(*f.identities[2], signed_keys(session_of(run, agreed), asked.keys[2]));
  EXPECT_THROW(f.clients[0].share(asked), ProtocolError);
}

// A member that is left out, or is shown keys that it signed before it was started anew: nobody has their secrets any more.
TEST(LyingServer, CannotTakeAMembersOwnKeysAway) {
  Federation f(4);
  f.begin();
  f.step();
  const auto honest = f.question<ShareRequest>(0);
  auto asked = honest;
  asked.keys.erase(asked.keys.begin());
  EXPECT_THROW(f.clients[0].share(asked), ProtocolError);
  asked = honest;
  asked.keys[0] = Client(f.group, f.identities[0], run, agreed).keys({1, 0, 2});
  EXPECT_THROW(f.clients[0].share(asked), ProtocolError);
  EXPECT_NO_THROW(f.clients[0].share(honest));
}

TEST(LyingServer, CannotChangeWhoGaveKeysAfterwards) {
  Federation f(4);
  f.begin();
  f.step();
  auto asked = f.question<ShareRequest>(0);
  f.clients[0].share(asked);
  asked.keys.pop_back();
  EXPECT_THROW(f.clients[0].share(asked), ProtocolError);
}

TEST(LyingServer, CannotMakeTheGroupSmall) {
  Federation f(5);
  f.begin();
  f.step();
  auto asked = f.question<ShareRequest>(0);
  asked.keys.resize(2);
  EXPECT_THROW(f.clients[0].share(asked), ProtocolError);
  f.step();
  f.round(0);
  auto mask = f.question<MaskRequest>(0);
  mask.shares.resize(1);
  EXPECT_THROW(f.answer(0, mask), ProtocolError);
  f.step();
  EXPECT_THROW(f.clients[0].sign({1, 0, {0, 1}}), ProtocolError);
  EXPECT_THROW(f.clients[0].unmask({1, 0, {0, 1}, {}}), ProtocolError);
}

TEST(LyingServer, CannotChangeOrSwapShares) {
  Federation f(3);
  f.keys_and_shares();
  f.round(0);
  const auto honest = f.question<MaskRequest>(0);
  auto asked = honest;
  asked.shares[0].text[3] = static_cast<char>(asked.shares[0].text[3] ^ 1);
  EXPECT_THROW(f.answer(0, asked), ProtocolError);
  asked = honest;
  std::swap(asked.shares[0].text, asked.shares[1].text);  // sender and receiver are inside
  EXPECT_THROW(f.answer(0, asked), ProtocolError);
  asked = honest;
  asked.shares[0] = f.question<MaskRequest>(1).shares[0];
  EXPECT_THROW(f.answer(0, asked), ProtocolError);
  asked = honest;
  asked.shares.push_back(asked.shares[0]);
  EXPECT_THROW(f.answer(0, asked), ProtocolError);
  asked = honest;
  asked.shares.push_back({0, "to itself"});
  EXPECT_THROW(f.answer(0, asked), ProtocolError);
  EXPECT_NO_THROW(f.answer(0, honest));
}

TEST(LyingServer, NeverGetsBothSharesOfOnePeer) {
  Federation f(7);
  f.keys_and_shares();
  f.round(0);
  f.step();  // all are there
  const auto everyone = f.question<UnmaskRequest>(0);
  const std::vector<std::uint32_t> fewer = {0, 1, 2, 3, 4, 5};
  // Member 0 gives the share of everyone's own mask; no signature for another set after that.
  f.clients[0].unmask(everyone);
  EXPECT_THROW(f.clients[0].sign({1, 0, fewer}), ProtocolError);
  UnmaskRequest other{1, 0, fewer, {}};
  for (std::uint32_t i = 1; i < 6; ++i) {
    const SignReply reply = f.clients[i].sign({1, 0, fewer});
    other.signatures.push_back({i, reply.signature});
  }
  EXPECT_THROW(f.clients[0].unmask(other), ProtocolError);
  // Member 1 signed the smaller set and unmasks it, but then no more everyone.
  EXPECT_NO_THROW(f.clients[1].unmask(other));
  EXPECT_THROW(f.clients[1].unmask(everyone), ProtocolError);
  // Nor does it sign a third set.
  EXPECT_THROW(f.clients[2].sign({1, 0, {0, 1, 2, 3, 4}}), ProtocolError);
}

TEST(LyingServer, CannotShowDifferentMembersToDifferentClients) {
  Federation f(7);
  f.keys_and_shares();
  f.round(0);
  f.step();
  const std::vector<std::uint32_t> one = {0, 1, 2, 3, 4, 5};
  const std::vector<std::uint32_t> two = {0, 1, 2, 3, 4, 6};
  UnmaskRequest asked{1, 0, one, {}};
  for (const std::uint32_t i : {0, 1, 2})
    asked.signatures.push_back({i, f.clients[i].sign({1, 0, one}).signature});
  for (const std::uint32_t i : {3, 4})
    asked.signatures.push_back({i, f.clients[i].sign({1, 0, two}).signature});
  EXPECT_THROW(f.clients[0].unmask(asked), ProtocolError);  // signatures of another set
  asked.signatures.resize(3);
  EXPECT_THROW(f.clients[0].unmask(asked), ProtocolError);  // too few
  asked.signatures.push_back(asked.signatures[0]);
  EXPECT_THROW(f.clients[0].unmask(asked), ProtocolError);  // one twice
}

// The hash of the shared values is in what is signed, and in every key of a mask.
TEST(LyingServer, CannotSendDifferentSharedStates) {
  Federation f(3);
  f.keys_and_shares();
  f.round(0);
  auto to_last = f.question<MaskRequest>(2);
  to_last.values = {Tensor::scalar(1e9)};
  UnmaskRequest asked{1, 0, {0, 1, 2}, {}};
  Words sum = zeros(layout);
  for (const std::uint32_t i : {0, 1, 2}) {
    const auto reply =
        std::get<MaskedReply>(f.answer(i, i == 2 ? Request(to_last) : f.server->request(i)));
    asked.signatures.push_back({i, reply.everyone});
    combine(sum, reply.masked, layout, Direction::add);
  }
  for (const std::uint32_t i : {0, 1, 2}) EXPECT_THROW(f.clients[i].unmask(asked), ProtocolError);
  // The server itself would not take it either.
  EXPECT_THROW(f.server->absorb(2, f.answer(2, to_last)), UnusableReply);
}

TEST(LyingServer, CannotUnmaskWithoutTheConsistencyRound) {
  Federation f(5);
  f.keys_and_shares();
  f.round(0);
  f.step_without({4});
  ASSERT_EQ(f.server->stage(), Server::Stage::sign);
  EXPECT_THROW(f.clients[0].unmask({1, 0, {0, 1, 2, 3}, {}}), ProtocolError);
  UnmaskRequest asked{1, 0, {0, 1, 2, 3}, {}};
  for (const std::uint32_t i : {1, 2, 3})
    asked.signatures.push_back({i, f.clients[i].sign({1, 0, asked.present}).signature});
  EXPECT_THROW(f.clients[0].unmask(asked), ProtocolError);  // it has not signed itself
  f.clients[0].sign({1, 0, asked.present});
  EXPECT_NO_THROW(f.clients[0].unmask(asked));
}

TEST(LyingServer, CannotAskForWhatWasNotMasked) {
  Federation f(3);
  f.keys_and_shares();
  EXPECT_THROW(f.clients[0].unmask({1, 0, {0, 1, 2}, {}}), KeysLost);
  EXPECT_THROW(f.clients[0].sign({1, 0, {0, 1, 2}}), KeysLost);
  f.round(0);
  f.step();
  EXPECT_THROW(f.clients[0].unmask({1, 1, {0, 1, 2}, {}}), KeysLost);
  EXPECT_THROW(f.clients[0].sign({1, 0, {1, 2}}), ProtocolError);        // itself missing
  EXPECT_THROW(f.clients[0].sign({1, 0, {0, 1, 2, 3}}), ProtocolError);  // somebody unknown
  EXPECT_THROW(f.clients[0].sign({1, 0, {0, 2, 1}}), ProtocolError);
}

// --- members that lie ---------------------------------------------------------------------------------

TEST(LyingMember, ForgedMessagesAreNotTaken) {
  Federation f(3);
  f.begin();
  KeysReply keys = f.clients[0].keys(f.question<KeysRequest>(0));
  keys.signature[0] ^= 1;
  EXPECT_THROW(f.server->absorb(0, keys), UnusableReply);
  EXPECT_THROW(f.server->absorb(1, f.clients[0].keys(f.question<KeysRequest>(0))), UnusableReply);
  f.step();
  ShareReply shares = f.clients[0].share(f.question<ShareRequest>(0));
  shares.shares.pop_back();
  EXPECT_THROW(f.server->absorb(0, shares), UnusableReply);
  f.step();
  f.round(0);
  auto masked = std::get<MaskedReply>(f.answer(0, f.server->request(0)));
  masked.masked[0][0] ^= 1;
  EXPECT_THROW(f.server->absorb(0, masked), UnusableReply);
  masked.masked.pop_back();
  EXPECT_THROW(f.server->absorb(0, masked), UnusableReply);
  f.step();
  UnmaskReply shown = f.clients[0].unmask(f.question<UnmaskRequest>(0));
  shown.shares[0][0] = field::prime;
  EXPECT_THROW(f.server->absorb(0, shown), UnusableReply);
  // Shares that are wrong but look right: the sum is not made from them.
  shown.shares[0][0] = 1;
  f.server->absorb(0, shown);
  EXPECT_THROW(f.step(), RunError);
}

TEST(LyingMember, AnswersToQuestionsThatAreOverAreLate) {
  Federation f(3);
  f.begin();
  const Reply keys = f.answer(0, f.server->request(0));
  f.server->absorb(0, keys);
  EXPECT_THROW(f.server->absorb(0, keys), LateReply);  // twice
  f.step();
  EXPECT_THROW(f.server->absorb(0, keys), LateReply);  // of another step
  f.begin(2);
  EXPECT_THROW(f.server->absorb(0, keys), LateReply);  // of another epoch
}

}  // namespace
}  // namespace starfold::secure

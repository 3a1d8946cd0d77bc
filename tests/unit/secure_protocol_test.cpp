// The protocol of secure aggregation: sums that are right whoever drops out, whoever is started anew, whatever carriers do.
#include <algorithm>
#include <random>
#include <set>

#include "tests/unit/secure_federation.h"

namespace starfold::secure {
namespace {

TEST(SecureAggregation, TheSumIsThatOfTheIntegers) {
  for (const std::size_t members : {3, 4, 7, 20}) {
    Federation f(members);
    f.keys_and_shares();
    for (const std::uint64_t sequence : {0, 1}) {
      f.round(sequence);
      f.step();
      EXPECT_EQ(f.server->stage(), Server::Stage::unmask);  // nobody is missing: two steps
      f.step();
      ASSERT_EQ(f.server->stage(), Server::Stage::done);
      EXPECT_EQ(f.server->present().size(), members);
      EXPECT_EQ(f.server->sum(), f.sum_of(f.server->present()));
    }
    EXPECT_FALSE(f.server->begin(2, 0, {}, layout));  // keys were for two rounds
  }
}

// Drop-outs at every stage, up to what the threshold allows and beyond.
TEST(SecureAggregation, WhoeverDropsOutAtWhateverStage) {
  for (const std::size_t members : {5, 8}) {
    const auto count = static_cast<std::uint32_t>(members);
    const std::uint32_t needed = Federation(members).group.inputs();
    for (int stage = 0; stage < 5; ++stage) {
      for (std::uint32_t gone = 1; gone <= count - needed + 1; ++gone) {
        SCOPED_TRACE(testing::Message() << members << " members, stage " << stage << ", " << gone);
        Federation f(members);
        std::set<std::uint32_t> lost;
        for (std::uint32_t i = 0; i < gone; ++i) lost.insert((2 * i + 1) % count);
        const auto drops = [&](int now) { return now == stage ? lost : std::set<std::uint32_t>(); };
        const bool too_many = gone > count - needed;
        const auto all = [&] {
          f.begin();
          f.step_without(drops(0));
          f.step_without(drops(1));
          f.round(0);
          // To have a set to be signed, somebody must be missing before it is.
          f.step_without(stage == 3 ? std::set<std::uint32_t>{count - 1} : drops(2));
          if (f.server->stage() == Server::Stage::sign) f.step_without(drops(3));
          f.step_without(drops(4));
        };
        if (stage == 3) lost.erase(count - 1);
        if (too_many && stage < 3) {
          EXPECT_THROW(all(), TooFew);
          continue;
        }
        if (stage >= 3 && count - lost.size() - (stage == 3 ? 1 : 0) < f.group.answers()) {
          EXPECT_THROW(all(), TooFew);
          continue;
        }
        all();
        ASSERT_EQ(f.server->stage(), Server::Stage::done);
        EXPECT_EQ(f.server->sum(), f.sum_of(f.server->present()));
        // Who drops out after its input came is in the sum all the same.
        EXPECT_EQ(f.server->present().size(), stage < 3    ? count - gone
                                              : stage == 3 ? count - 1
                                                           : count);
      }
    }
  }
}

// A member that never gave keys does not end the run, and later rounds of the epoch go on without it.
TEST(SecureAggregation, ADropOutBeforeSharesDoesNotEndTheRun) {
  Federation f(5);
  f.begin();
  f.step_without({4});
  f.step_without({0});
  for (const std::uint64_t sequence : {0, 1}) {
    f.round(sequence);
    f.finish();
    EXPECT_EQ(f.server->present(), (std::vector<std::uint32_t>{1, 2, 3}));
    EXPECT_EQ(f.server->sum(), f.sum_of({1, 2, 3}));
  }
}

TEST(SecureAggregation, DifferentOnesDropOutInDifferentRounds) {
  Federation f(7);
  f.keys_and_shares();
  f.round(0);
  f.step_without({1, 6});
  f.finish();
  EXPECT_EQ(f.server->sum(), f.sum_of({0, 2, 3, 4, 5}));
  f.round(1);
  f.step_without({0});
  f.finish();
  EXPECT_EQ(f.server->sum(), f.sum_of({1, 2, 3, 4, 5, 6}));
}

// Of what members hand out, the seed of one who is there as well as the key of one who is not, fewer shares than must answer
// give nothing back.
TEST(SecureAggregation, FewerSharesThanMustAnswerGiveNothing) {
  constexpr std::uint32_t away = 6;
  Federation f(7);
  const std::size_t enough = f.group.answers();
  ASSERT_EQ(enough, 4U);
  f.keys_and_shares();
  f.round(0);
  f.step_without({away});
  f.step();
  ASSERT_EQ(f.server->stage(), Server::Stage::unmask);
  std::vector<UnmaskReply> replies;
  for (std::uint32_t member = 0; member < away; ++member)
    replies.push_back(std::get<UnmaskReply>(f.answer(member, f.server->request(member))));
  const auto joined = [&](std::uint32_t of, std::uint32_t first, std::size_t count) {
    std::vector<std::uint32_t> members;
    std::vector<Share> shares;
    for (std::uint32_t member = first; members.size() < count; ++member) {
      if (member == of) continue;  // who asks itself needs no share
      members.push_back(member);
      shares.push_back(replies[member].shares[of]);
    }
    const std::optional<Secret> secret = Joiner(members).join(shares);
    return secret ? std::vector<unsigned char>(secret->data(), secret->data() + Secret::size)
                  : std::vector<unsigned char>();
  };
  for (const std::uint32_t of : {5U, away}) {
    SCOPED_TRACE(of);
    EXPECT_FALSE(joined(of, 0, enough).empty());
    EXPECT_EQ(joined(of, 0, enough), joined(of, 1, enough));
    EXPECT_NE(joined(of, 0, enough - 1), joined(of, 0, enough));
  }
}

TEST(SecureAggregation, AThresholdOfTheStudyCanOnlyAskForMore) {
  EXPECT_EQ(Federation(3).group.answers(), 2U);
  EXPECT_EQ(Federation(3, 1).group.answers(), 2U);  // of a server's choice, fewer would do
  EXPECT_EQ(Federation(3, 3).group.answers(), 3U);
  EXPECT_EQ(Federation(10).group.answers(), 6U);
  EXPECT_EQ(Federation(10, 0, 8).group.inputs(), 8U);
  EXPECT_EQ(Federation(10, 0, 1).group.inputs(), 6U);
  EXPECT_EQ(Federation(3, 0, 1).group.inputs(), 3U);
  // Two sets of so many always share a member, who gives only one kind of share.
  for (std::size_t n = 3; n < 50; ++n) EXPECT_GT(2 * Federation(n).group.answers(), n);
}

TEST(SecureAggregation, GroupsThatAreNone) {
  EXPECT_EQ(wrong_with(Federation(3).group), "");
  EXPECT_THROW(Federation(2), ProtocolError);
  EXPECT_THROW(Federation(4, 0, 5), ProtocolError);
  EXPECT_THROW(Federation(4, 5), ProtocolError);
  Federation f(3);
  f.group.members[2].key = f.group.members[0].key;
  EXPECT_NE(wrong_with(f.group), "");
  const auto stranger = std::make_shared<const Secret>(Secret::random());
  EXPECT_THROW(Client(Federation(3).group, stranger, run, agreed), ProtocolError);
}

// --- what a server sees -------------------------------------------------------------------------------

TEST(SecureAggregation, MaskedInputsLookLikeNothing) {
  Federation f(3);
  for (Words& input : f.inputs) input = zeros(layout);
  f.keys_and_shares();
  f.round(0);
  std::set<std::uint64_t> seen;
  std::size_t words = 0;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Words masked = std::get<MaskedReply>(f.answer(i, f.server->request(i))).masked;
    for (const auto& piece : masked) {
      words += piece.size();
      seen.insert(piece.begin(), piece.end());
    }
  }
  EXPECT_EQ(seen.size(), words);  // every word is another
}

TEST(SecureAggregation, TheSameInputIsMaskedAnewInEveryRoundAndEpoch) {
  Federation f(3);
  f.keys_and_shares();
  f.round(0);
  const auto first = std::get<MaskedReply>(f.answer(0, f.server->request(0))).masked;
  f.finish();
  f.round(1);
  const auto second = std::get<MaskedReply>(f.answer(0, f.server->request(0))).masked;
  EXPECT_NE(first, second);
  f.begin(2, 1);
  f.step();
  f.step();
  f.round(1);
  EXPECT_NE(std::get<MaskedReply>(f.answer(0, f.server->request(0))).masked, second);
}

// --- the same question again --------------------------------------------------------------------------

TEST(SecureAggregation, TheSameQuestionGetsTheSameBytes) {
  Federation f(4);
  f.begin();
  const auto bytes = [](const Reply& reply) {
    ByteWriter out;
    write(out, reply);
    return out.take();
  };
  const auto twice = [&] {
    for (std::uint32_t i = 0; i < 4; ++i) {
      if (!f.server->awaits(i)) continue;
      EXPECT_EQ(bytes(f.answer(i, f.server->request(i))), bytes(f.answer(i, f.server->request(i))));
    }
  };
  twice();
  f.step();
  twice();
  f.step();
  f.round(0);
  twice();
  f.step_without({3});
  twice();
  f.step();
  twice();
  f.step();
  EXPECT_EQ(f.server->sum(), f.sum_of({0, 1, 2}));
}

TEST(SecureAggregation, AMaskIsForOneInputOnly) {
  Federation f(3);
  f.keys_and_shares();
  f.round(0);
  const auto asked = f.question<MaskRequest>(0);
  f.answer(0, asked);
  f.inputs[0][0][0] += 1;
  EXPECT_THROW(f.answer(0, asked), ProtocolError);
}

TEST(SecureAggregation, ARoundIsMaskedForOneSharedStateOnly) {
  Federation f(3);
  f.keys_and_shares();
  f.round(0);
  auto asked = f.question<MaskRequest>(0);
  f.answer(0, asked);
  asked.values = {Tensor::scalar(2)};
  EXPECT_THROW(f.answer(0, asked), ProtocolError);
}

// Once its shares are given away, nothing is masked for a round again, with whatever keys: two sums over different members would
// show who is in only one of them.
TEST(SecureAggregation, ARoundThatWasUnmaskedIsOver) {
  Federation f(4);
  f.keys_and_shares();
  f.round(0);
  const auto asked = f.question<MaskRequest>(1);
  f.finish();
  EXPECT_THROW(f.answer(1, asked), ProtocolError);
  EXPECT_THROW(f.clients[1].keys({2, 0, 1}), ProtocolError);
  EXPECT_NO_THROW(f.clients[1].keys({2, 1, 1}));
  // Also when the member is started anew, as long as its owner has written it down.
  Client again(f.group, f.identities[1], run, agreed, 1);
  EXPECT_THROW(again.keys({9, 0, 1}), ProtocolError);
}

TEST(SecureAggregation, WhoIsStartedAnewHasNoKeys) {
  Federation f(4);
  f.keys_and_shares();
  f.round(0);
  f.clients[2] = Client(f.group, f.identities[2], run, agreed);
  EXPECT_THROW(f.answer(2, f.server->request(2)), KeysLost);
  // New keys for all, and the round is masked again.
  f.begin(2, 0);
  f.step();
  f.step();
  f.round(0);
  f.finish();
  EXPECT_EQ(f.server->sum(), f.sum_of({0, 1, 2, 3}));
}

TEST(SecureAggregation, EpochsOnlyGoForward) {
  Federation f(3);
  f.begin(5);
  f.step();
  EXPECT_THROW(f.clients[0].keys({5, 1, 2}), ProtocolError);  // other rounds, same number
  EXPECT_THROW(f.clients[0].keys({4, 0, 2}), ProtocolError);
  EXPECT_THROW(f.clients[0].keys({6, 0, 0}), ProtocolError);
  EXPECT_THROW(f.clients[0].keys({6, 0, most_rounds_of_epoch + 1}), ProtocolError);
  EXPECT_NO_THROW(f.clients[0].keys({6, 0, 2}));
  EXPECT_THROW(f.clients[0].share({5, {}}), KeysLost);
}

// --- a server that is started anew --------------------------------------------------------------------

TEST(SecureAggregation, AServerStartedAnewAsksTheSameAgain) {
  Federation f(5);
  f.keys_and_shares();
  f.round(0);
  f.step_without({2});
  f.step();
  ASSERT_TRUE(f.server->can_save());
  const auto asked = f.question<UnmaskRequest>(1);
  f.clients[1].unmask(asked);  // answered, but the answer was lost
  ByteWriter out;
  f.server->save(out);
  const Bytes saved = out.take();
  ByteReader in(saved);
  f.server = Server::restore(f.group, run, agreed, in);
  in.end();
  f.finish();
  EXPECT_EQ(f.server->sum(), f.sum_of({0, 1, 3, 4}));
  // Who was missing has no shares of the others, and they are not there any more: new keys are needed.
  EXPECT_FALSE(f.server->begin(1, 0, {}, layout));
  for (std::size_t cut = 0; cut < saved.size(); cut += 97) {
    ByteReader torn(std::string_view(saved).substr(0, cut));
    EXPECT_THROW(Server::restore(f.group, run, agreed, torn), RunError);
  }
}

// --- anything in any order ----------------------------------------------------------------------------

Bytes bytes_of(const Request& request) {
  ByteWriter out;
  write(out, request);
  return out.take();
}
Bytes bytes_of(const Reply& reply) {
  ByteWriter out;
  write(out, reply);
  return out.take();
}

// Messages dropped, doubled, delayed, reordered, changed: either the sum of those who are in it comes out, or none at all; and
// nobody ever gives away both secrets of anyone.
TEST(SecureAggregation, HostileCarriersNeverChangeASum) {
  std::mt19937_64 random(4);
  int finished = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const std::size_t members = 3 + random() % 5;
    Federation f(members);
    f.begin();
    std::vector<std::pair<std::uint32_t, Bytes>> seen;
    bool begun = false;
    try {
      for (int step = 0; step < 200 && f.server->stage() != Server::Stage::done; ++step) {
        if (f.server->stage() == Server::Stage::ready && !begun) {
          ASSERT_TRUE(f.server->begin(0, 0, {Tensor::scalar(1)}, layout));
          begun = true;
        }
        const auto member = static_cast<std::uint32_t>(random() % members);
        if (!f.server->awaits(member)) continue;
        if (random() % 40 == 0) {
          f.server->drop(member);
          continue;
        }
        Bytes question = bytes_of(f.server->request(member));
        if (random() % 20 == 0) question[random() % question.size()] ^= 1;
        seen.emplace_back(member, question);
        if (random() % 5 == 0) std::tie(std::ignore, question) = seen[random() % seen.size()];
        Bytes answer;
        try {
          ByteReader in(question);
          answer = bytes_of(f.answer(member, read_request(in)));
        } catch (const RunError&) {
          continue;
        }
        if (random() % 10 == 0) continue;  // lost
        if (random() % 20 == 0) answer[random() % answer.size()] ^= 4;
        for (int copies = random() % 8 == 0 ? 2 : 1; copies > 0; --copies) {
          try {
            ByteReader in(answer);
            f.server->absorb(member, read_reply(in));
          } catch (const UnusableReply&) {
          }
        }
      }
    } catch (const RunError&) {
      continue;  // no sum
    }
    if (f.server->stage() != Server::Stage::done) continue;
    ++finished;
    EXPECT_EQ(f.server->sum(), f.sum_of(f.server->present()));
    EXPECT_GE(f.server->present().size(), f.group.inputs());
  }
  EXPECT_GT(finished, 20);
}

TEST(SecureAggregation, MessagesComeBackFromTheirBytes) {
  Federation f(3);
  f.begin();
  const auto exchange = [&] {
    for (std::uint32_t i = 0; i < 3; ++i) {
      const Bytes question = bytes_of(f.server->request(i));
      ByteReader in(question);
      const Request request = read_request(in);
      in.end();
      EXPECT_EQ(bytes_of(request), question);
      const Bytes answer = bytes_of(f.answer(i, request));
      ByteReader back(answer);
      EXPECT_EQ(bytes_of(read_reply(back)), answer);
      back.end();
    }
    f.step();
  };
  exchange();
  exchange();
  f.round(0);
  exchange();
  exchange();
  for (const char step : {'\5', '\xff'}) {
    const std::string text(40, step);
    ByteReader request(text);
    EXPECT_THROW(read_request(request), RunError);
    ByteReader reply(text);
    EXPECT_THROW(read_reply(reply), RunError);
  }
}

// The size of what is sent tells nothing but the layout.
TEST(SecureAggregation, MessagesHaveConstantSize) {
  Federation f(4);
  f.inputs[0] = zeros(layout);
  f.keys_and_shares();
  f.round(0);
  std::set<std::size_t> sizes;
  for (std::uint32_t i = 0; i < 4; ++i)
    sizes.insert(bytes_of(f.answer(i, f.server->request(i))).size());
  EXPECT_EQ(sizes.size(), 1U);
}

}  // namespace
}  // namespace starfold::secure

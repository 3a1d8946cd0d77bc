// What is signed, sealed and derived in secure aggregation is bound to all that it is about: a text for one run, round, value, key or
// set of members is of no use for another.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "starfold/secure/protocol.h"

namespace starfold::secure {
namespace {

Key key_of(unsigned char byte) {
  Key key{};
  key.fill(byte);
  return key;
}

TEST(SecureBindings, SessionsAreOfOneRunAndOneAgreement) {
  const std::set<Key> all = {session_of("run", "agreement"), session_of("other", "agreement"),
                             session_of("run", "other"), session_of("ru", "nagreement")};
  EXPECT_EQ(all.size(), 4);
}

TEST(SecureBindings, MomentsAreOfOneRoundWithItsValuesAndKeys) {
  const Moment plain{key_of(1), 2, 3, 4, key_of(5), key_of(6)};
  std::vector<Moment> moments(7, plain);
  moments[1].session = key_of(9);
  moments[2].epoch = 9;
  moments[3].sequence = 9;
  moments[4].round = 9;
  moments[5].values = key_of(9);
  moments[6].keys = key_of(9);
  const std::vector<std::uint32_t> sharers = {0, 1, 2, 3};
  const std::vector<std::function<std::string(const Moment&)>> texts = {
      [](const Moment& m) { return m.text(); },
      [&](const Moment& m) { return signed_present(m, sharers, sharers); },
      [](const Moment& m) {
        return signed_masked(m, 1, {{1, 2}});
      },
      [](const Moment& m) { return own_mask(m, 1); },
      [](const Moment& m) { return shared_mask(m, 1, 2); }};
  std::set<std::string> all;
  for (const auto& text : texts) {
    for (const Moment& moment : moments) all.insert(text(moment));
  }
  EXPECT_EQ(all.size(), texts.size() * moments.size());
}

TEST(SecureBindings, WhoAndWhatIsSigned) {
  const Moment moment{key_of(1), 2, 3, 4, key_of(5), key_of(6)};
  const std::set<std::string> all = {signed_present(moment, {0, 1, 2}, {0, 1, 2}),
                                     signed_present(moment, {0, 1, 2, 3}, {0, 1, 2}),
                                     signed_present(moment, {0, 1, 2, 3}, {0, 1, 3}),
                                     signed_masked(moment, 1, {{1, 2}}),
                                     signed_masked(moment, 2, {{1, 2}}),
                                     signed_masked(moment, 1, {{1, 3}}),
                                     signed_masked(moment, 1, {{1}, {2}}),
                                     own_mask(moment, 1),
                                     own_mask(moment, 2),
                                     shared_mask(moment, 1, 2),
                                     shared_mask(moment, 1, 3)};
  EXPECT_EQ(all.size(), 11);
  EXPECT_EQ(shared_mask(moment, 1, 2), shared_mask(moment, 2, 1));
}

TEST(SecureBindings, SharesAreForOneReceiver) {
  const std::set<std::string> all = {sealing_purpose(key_of(1), key_of(2), 3, 4, 5),
                                     sealing_purpose(key_of(9), key_of(2), 3, 4, 5),
                                     sealing_purpose(key_of(1), key_of(9), 3, 4, 5),
                                     sealing_purpose(key_of(1), key_of(2), 9, 4, 5),
                                     sealing_purpose(key_of(1), key_of(2), 3, 9, 5),
                                     sealing_purpose(key_of(1), key_of(2), 3, 4, 9),
                                     sealing_purpose(key_of(1), key_of(2), 3, 5, 4)};
  EXPECT_EQ(all.size(), 7);
}

TEST(SecureBindings, GroupsNeedAMajorityAndTheirMinimum) {
  Group group;
  for (unsigned char i = 1; i <= 6; ++i) group.members.push_back({std::string(i, 'a'), key_of(i)});
  group.threshold = 0;
  group.minimum_clients = 0;
  EXPECT_EQ(group.answers(), 4U);
  EXPECT_EQ(group.inputs(), 4U);
  group.minimum_clients = 5;
  EXPECT_EQ(group.answers(), 4U);
  EXPECT_EQ(group.inputs(), 5U);
  group.threshold = 6;
  EXPECT_EQ(group.answers(), 6U);
  EXPECT_EQ(group.inputs(), 6U);
  EXPECT_EQ(wrong_with(group), "");
  group.threshold = 7;
  EXPECT_NE(wrong_with(group), "");
  group.threshold = 0;
  group.members[3].key = group.members[1].key;
  EXPECT_NE(wrong_with(group), "");
}

}  // namespace
}  // namespace starfold::secure

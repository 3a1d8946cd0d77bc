// The pieces of secure aggregation: keys, shares, words, and doubles as integers.
#include <gtest/gtest.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "starfold/base/error.h"
#include "starfold/merge/exact.h"
#include "starfold/secure/crypto.h"
#include "starfold/secure/shamir.h"
#include "starfold/secure/words.h"

namespace starfold::secure {
namespace {

Secret secret_of(unsigned char byte) {
  Secret secret;
  std::fill_n(secret.data(), Secret::size, byte);
  return secret;
}

Key bytes_of(const Secret& secret) {
  Key key{};
  std::copy_n(secret.data(), Secret::size, key.begin());
  return key;
}

Secret from_text(const std::string& text) {
  const Key key = parse_key(text).value();
  Secret secret;
  std::copy(key.begin(), key.end(), secret.data());
  return secret;
}

// --- against the vectors of the standards -----------------------------------------------------------

TEST(Crypto, X25519IsThatOfRfc7748) {
  const Secret bob = from_text("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
  EXPECT_EQ(key_text(agreement_key(bob)),
            "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
  const Key alice =
      parse_key("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a").value();
  EXPECT_EQ(key_text(bytes_of(agree(bob, alice))),
            "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
}

TEST(Crypto, Ed25519IsThatOfRfc8032) {
  const Secret own = from_text("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
  EXPECT_EQ(key_text(signing_key(own)),
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  const Signature signature = sign(own, "");
  EXPECT_EQ(signature[0], 0xe5);
  EXPECT_EQ(signature[63], 0x0b);
  EXPECT_TRUE(verify(signing_key(own), "", signature));
  EXPECT_FALSE(verify(signing_key(own), "x", signature));
  EXPECT_FALSE(verify(signing_key(secret_of(1)), "", signature));
}

// RFC 5869 in its own words: extract with the salt, expand with the purpose.
Key hkdf(const Secret& from, const std::string& salt, std::string info) {
  const auto hmac = [](const void* key, std::size_t size, const void* text, std::size_t length) {
    Key out{};
    HMAC(EVP_sha256(), key, static_cast<int>(size), static_cast<const unsigned char*>(text), length,
         out.data(), nullptr);
    return out;
  };
  const Key extracted = hmac(salt.data(), salt.size(), from.data(), Secret::size);
  info += '\1';
  return hmac(extracted.data(), extracted.size(), info.data(), info.size());
}

TEST(Crypto, DerivationIsThatOfRfc5869WithSaltAndInfo) {
  const Secret from = secret_of(0x0b);
  const Key key = bytes_of(derive(from, "salt", "info"));
  EXPECT_EQ(key, hkdf(from, "salt", "info"));
  EXPECT_NE(key, bytes_of(derive(from, "salt", "other")));
  EXPECT_NE(key, bytes_of(derive(from, "other", "info")));
  EXPECT_NE(key, bytes_of(derive(secret_of(0x0c), "salt", "info")));
}

TEST(Crypto, KeysOfLowOrderAreRefused) {
  EXPECT_THROW(agree(secret_of(3), Key{}), RunError);
  Key one{};
  one[0] = 1;
  EXPECT_THROW(agree(secret_of(3), one), RunError);
}

TEST(Crypto, SealedTextsAreForOneKeyAndOnePurpose) {
  const Bytes sealed = seal(secret_of(1), "purpose", "text");
  EXPECT_EQ(open(secret_of(1), "purpose", sealed).value(), "text");
  EXPECT_FALSE(open(secret_of(2), "purpose", sealed));
  EXPECT_FALSE(open(secret_of(1), "other", sealed));
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    Bytes changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(open(secret_of(1), "purpose", changed));
  }
  EXPECT_FALSE(open(secret_of(1), "purpose", "short"));
  EXPECT_EQ(open(secret_of(1), "", seal(secret_of(1), "", "")).value(), "");
}

TEST(Crypto, TextsOfKeys) {
  const Key key = signing_key(secret_of(7));
  EXPECT_EQ(parse_key(key_text(key)).value(), key);
  EXPECT_FALSE(parse_key(""));
  EXPECT_FALSE(parse_key(key_text(key) + "0"));
  EXPECT_FALSE(parse_key(std::string(64, 'g')));
}

// AES-256-CTR, not a generator that is seeded with few bits: every word can have every value, and streams of keys that differ in
// one bit have nothing in common.
TEST(Crypto, StreamsAreOfTheCipher) {
  std::vector<std::uint64_t> words(1 << 16);
  KeyStream(secret_of(0)).next(words);
  std::vector<std::uint64_t> pieces(words.size());
  KeyStream again(secret_of(0));
  for (std::size_t i = 0; i < pieces.size(); i += 1024)
    again.next(std::span(pieces).subspan(i, 1024));
  EXPECT_EQ(pieces, words);
  Secret near = secret_of(0);
  near.data()[31] = 1;
  std::vector<std::uint64_t> other(words.size());
  KeyStream(near).next(other);
  std::uint64_t all = 0;
  std::uint64_t none = ~std::uint64_t{0};
  std::size_t same = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    all |= words[i];
    none &= words[i];
    same += words[i] == other[i] ? 1 : 0;
  }
  EXPECT_EQ(all, ~std::uint64_t{0});
  EXPECT_EQ(none, 0U);
  EXPECT_EQ(same, 0U);
  EXPECT_EQ(std::set<std::uint64_t>(words.begin(), words.end()).size(), words.size());
  // The top value is as likely as any: of bytes all 256 occur, the last one among them.
  std::set<std::uint64_t> bytes;
  for (const std::uint64_t word : words) bytes.insert(word >> 56);
  EXPECT_EQ(bytes.size(), 256U);
}

// The zero block under the zero key, as FIPS 197 has it.
TEST(Crypto, TheFirstBlockIsThatOfAes) {
  std::vector<std::uint64_t> words(2);
  KeyStream(secret_of(0)).next(words);
  const unsigned char expected[16] = {0xdc, 0x95, 0xc0, 0x78, 0xa2, 0x40, 0x89, 0x89,
                                      0xad, 0x48, 0xa2, 0x14, 0x92, 0x84, 0x20, 0x87};
  EXPECT_EQ(std::memcmp(words.data(), expected, sizeof expected), 0);
}

// --- Shamir -------------------------------------------------------------------------------------------

__extension__ using Double = unsigned __int128;

TEST(Shamir, TheFieldIsAField) {
  std::mt19937_64 random(1);
  const auto some = [&] { return random() % field::prime; };
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t a = i == 0 ? 0 : i == 1 ? field::prime - 1 : some();
    const std::uint64_t b = i == 2 ? field::prime - 1 : some();
    const std::uint64_t c = some();
    EXPECT_EQ(field::multiply(a, b),
              static_cast<std::uint64_t>(static_cast<Double>(a) * b % field::prime));
    EXPECT_EQ(field::add(a, b), (a + b) % field::prime);
    EXPECT_EQ(field::add(field::subtract(a, b), b), a);
    EXPECT_EQ(field::multiply(a, field::add(b, c)),
              field::add(field::multiply(a, b), field::multiply(a, c)));
    if (a != 0) {
      EXPECT_EQ(field::multiply(a, field::inverse(a)), 1U);
    }
  }
}

TEST(Shamir, RandomElementsReachTheTopAndAreNeverThePrime) {
  EXPECT_EQ(field::element(field::prime - 1), field::prime - 1);
  EXPECT_EQ(field::element(~std::uint64_t{0}), std::nullopt);  // all of its 61 bits are ones
  EXPECT_EQ(field::element(std::uint64_t{1} << 61), 0U);
}

TEST(Shamir, AnyThresholdOfSharesGivesTheSecretBack) {
  for (const int byte : {0x00, 0x5a, 0xff}) {
    const Secret secret = secret_of(static_cast<unsigned char>(byte));
    const std::vector<Share> shares = split(secret, 3, 5);
    for (std::uint32_t a = 0; a < 5; ++a) {
      for (std::uint32_t b = a + 1; b < 5; ++b) {
        for (std::uint32_t c = b + 1; c < 5; ++c) {
          const std::uint32_t members[] = {c, a, b};
          const Share given[] = {shares[c], shares[a], shares[b]};
          EXPECT_EQ(bytes_of(Joiner(members).join(given).value()), bytes_of(secret));
        }
      }
    }
  }
}

TEST(Shamir, FewerSharesSayNothing) {
  // Two of three needed shares fit every secret: the third can be chosen to give any.
  const std::vector<Share> shares = split(secret_of(1), 3, 3);
  const std::vector<Share> others = split(secret_of(2), 3, 3);
  const std::uint32_t members[] = {0, 1};
  const Share given[] = {shares[0], shares[1]};
  const std::optional<Secret> wrong = Joiner(members).join(given);
  EXPECT_TRUE(!wrong || bytes_of(*wrong) != bytes_of(secret_of(1)));
  EXPECT_NE(shares[0], others[0]);
  EXPECT_NE(split(secret_of(1), 3, 3)[0], shares[0]);  // fresh every time
}

TEST(Shamir, ForeignSharesAreNoSecret) {
  const std::uint32_t members[] = {0, 1};
  Share beyond{};
  beyond.fill(field::prime);
  const Share given[] = {beyond, beyond};
  EXPECT_FALSE(Joiner(members).join(given));
}

TEST(Shamir, ThresholdOne) {
  const std::vector<Share> shares = split(secret_of(9), 1, 4);
  const std::uint32_t member[] = {2};
  EXPECT_EQ(bytes_of(Joiner(member).join(std::span(&shares[2], 1)).value()),
            bytes_of(secret_of(9)));
}

// --- words --------------------------------------------------------------------------------------------

TEST(Words, CarriesGoThroughANumberAndNotBeyond) {
  const std::uint64_t ones = ~std::uint64_t{0};
  std::vector<std::uint64_t> into = {ones, ones, 5, 7};
  const std::vector<std::uint64_t> from = {1, 0, ones, 1};
  combine(into, from, 2, Direction::add);
  EXPECT_EQ(into, (std::vector<std::uint64_t>{0, 0, 4, 9}));
  combine(into, from, 2, Direction::subtract);
  EXPECT_EQ(into, (std::vector<std::uint64_t>{ones, ones, 5, 7}));
  combine(into, from, 1, Direction::add);
  EXPECT_EQ(into, (std::vector<std::uint64_t>{0, ones, 4, 8}));
}

TEST(Words, MasksVanishWhenTheyAreTakenAway) {
  const Layout layout = {{"a", 1, 3000}, {"b", 34, 100}, {"c", 3, 0}, {"d", 2000, 2}};
  Words words = zeros(layout);
  EXPECT_TRUE(fits(layout, words));
  EXPECT_EQ(word_count(layout), 3000U + 3400U + 4000U);
  const Words before = words;
  combine_mask(words, layout, secret_of(1), "run", "moment", Direction::add);
  EXPECT_NE(words[0], before[0]);
  EXPECT_NE(words[3], before[3]);
  combine_mask(words, layout, secret_of(1), "run", "moment", Direction::subtract);
  EXPECT_EQ(words, before);
}

// Session, round, name, width and length are all in the key: a mask for one is of no use for another.
TEST(Words, MasksAreBoundToWhatTheyAreFor) {
  const auto mask = [](const std::string& salt, const std::string& info, const Piece& piece) {
    const Layout layout = {piece};
    Words words = zeros(layout);
    combine_mask(words, layout, secret_of(1), salt, info, Direction::add);
    return words[0][0];
  };
  std::set<std::uint64_t> seen;
  seen.insert(mask("run", "moment", {"a", 1, 4}));
  seen.insert(mask("run2", "moment", {"a", 1, 4}));
  seen.insert(mask("run", "moment2", {"a", 1, 4}));
  seen.insert(mask("run", "moment", {"b", 1, 4}));
  seen.insert(mask("run", "moment", {"a", 2, 4}));
  seen.insert(mask("run", "moment", {"a", 1, 5}));
  EXPECT_EQ(seen.size(), 6U);
}

// --- doubles as integers ------------------------------------------------------------------------------

double through(const std::vector<double>& values) {
  constexpr std::size_t width = exact::sums.words();
  std::vector<std::uint64_t> sum(width);
  for (const double value : values) {
    std::vector<std::uint64_t> words(width);
    exact::add(words, exact::sums, value);
    combine(sum, words, width, Direction::add);
  }
  return exact::rounded(sum, exact::sums);
}

TEST(MaskedDoubles, EveryDoubleComesBack) {
  std::mt19937_64 random(2);
  std::vector<double> values = {0,
                                1,
                                -1,
                                0.1,
                                1e300,
                                std::numeric_limits<double>::max(),
                                std::numeric_limits<double>::lowest(),
                                std::numeric_limits<double>::min(),
                                std::numeric_limits<double>::denorm_min(),
                                -std::numeric_limits<double>::denorm_min()};
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isfinite(value)) values.push_back(value);
  }
  for (const double value : values) {
    EXPECT_EQ(through({value}), value);
    EXPECT_EQ(through({value, -value}), 0);
  }
}

TEST(MaskedDoubles, SumsAreRoundedOnceInAnyOrder) {
  EXPECT_EQ(through({1e16, 1, -1e16}), 1);
  EXPECT_EQ(through({1, 1e-300, -1}), 1e-300);
  EXPECT_EQ(through({9007199254740992.0, 1}), 9007199254740992.0);          // a tie, to the even
  EXPECT_EQ(through({9007199254740992.0, 1, 1e-300}), 9007199254740994.0);  // a little more
  EXPECT_EQ(through({9007199254740994.0, 1}), 9007199254740996.0);
  EXPECT_EQ(through({-9007199254740992.0, -1, -1e-300}), -9007199254740994.0);
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(through({most, most, -most}), most);
  EXPECT_EQ(through({most, most}), std::numeric_limits<double>::infinity());
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> values;
    long double exact = 0;  // 64 bits are enough for these
    for (int i = 0; i < 40; ++i) {
      values.push_back(std::ldexp(std::round(uniform(random) * 4194304), -20));
      exact += values.back();
    }
    const double sum = through(values);
    std::shuffle(values.begin(), values.end(), random);
    EXPECT_EQ(through(values), sum);
    EXPECT_EQ(sum, static_cast<double>(exact));
  }
}

TEST(MaskedDoubles, WhatIsNotFiniteIsAsInAnySum) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(through({inf, 1, inf}), inf);
  EXPECT_EQ(through({-inf, 1}), -inf);
  EXPECT_TRUE(std::isnan(through({inf, -inf})));
  EXPECT_TRUE(std::isnan(through({nan, 1})));
}

}  // namespace
}  // namespace starfold::secure

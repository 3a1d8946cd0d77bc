// Bounds: what they print as, what they come to, and which of two is the smaller.
#include "starfold/types/bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace starfold {
namespace {

const Bound p = Bound::of(Size::variable("p"));
const Bound q = Bound::of(Size::variable("q"));

TEST(Bound, PrintsAsPeopleWrite) {
  EXPECT_EQ(Bound(10).to_string(), "10");
  EXPECT_EQ(Bound(0).to_string(), "0");
  EXPECT_EQ(Bound().to_string(), "inf");
  EXPECT_EQ(Bound(0.1).to_string(), "0.1");
  EXPECT_EQ(Bound(std::sqrt(2.0)).to_string(), "1.41421356238");  // never too small
  EXPECT_EQ(Bound(10.000000000000002).to_string(), "10");
  EXPECT_EQ(sqrt(p).to_string(), "sqrt(p)");
  EXPECT_EQ((Bound(2) * sqrt(p)).to_string(), "2*sqrt(p)");
  EXPECT_EQ((p * q).to_string(), "p*q");
  EXPECT_EQ(sqrt(p * q).to_string(), "sqrt(p*q)");
  EXPECT_EQ((p * p).to_string(), "p^2");
  EXPECT_EQ((p * sqrt(p)).to_string(), "p*sqrt(p)");
  EXPECT_EQ((Bound(1) + p).to_string(), "p + 1");
  EXPECT_EQ(sqrt(Bound(1) + p).to_string(), "sqrt(p + 1)");
  EXPECT_EQ((sqrt(Bound(1) + p) * q).to_string(), "q*sqrt(p + 1)");
  EXPECT_EQ(max(Bound(3), p).to_string(), "max(3, p)");
  EXPECT_EQ((Bound(2) * max(Bound(3), p)).to_string(), "2*max(3, p)");
  EXPECT_EQ(Bound::of(*add(Size::variable("p"), 1)).to_string(), "p + 1");
  EXPECT_EQ((q * Bound::of(*add(Size::variable("p"), 1))).to_string(), "p*q + q");
  const Bound product = Bound::of(*add(*multiply(Size::variable("p"), Size::variable("q")), 1));
  EXPECT_EQ((Bound(2) * product).to_string(), "2*(p*q + 1)");
}

TEST(Bound, IsSimplified) {
  EXPECT_EQ((sqrt(p) * sqrt(p)).to_string(), "p");
  EXPECT_EQ((sqrt(Bound(1) + p) * sqrt(Bound(1) + p)).to_string(), "p + 1");
  EXPECT_EQ((p + p).to_string(), "2*p");
  EXPECT_EQ((Bound(3) + Bound(4)).number(), 7);
  EXPECT_EQ(sqrt(Bound(9) + Bound(16)).number(), 5);
  EXPECT_EQ(max(Bound(3), Bound(4)).number(), 4);
  EXPECT_EQ(max(p, sqrt(p)).to_string(), "p");
  EXPECT_EQ(max(Bound(1), p).to_string(), "p");
}

TEST(Bound, KnowsWhatIsSmaller) {
  EXPECT_EQ(tighter(p, Bound(1)).to_string(), "1");
  EXPECT_EQ(tighter(p, sqrt(p)).to_string(), "sqrt(p)");
  EXPECT_EQ(tighter(Bound(), p).to_string(), "p");
  EXPECT_EQ(tighter(p, Bound(5)).to_string(), "5");  // nobody knows: the number
  EXPECT_TRUE(at_most(p, p + Bound(1)));
  EXPECT_FALSE(at_most(p + Bound(1), p));
  EXPECT_FALSE(at_most(p, q));
}

TEST(Bound, NothingKnownStaysSo) {
  EXPECT_FALSE(Bound().finite());
  EXPECT_FALSE((Bound() + p).finite());
  EXPECT_FALSE((Bound() * p).finite());
  EXPECT_FALSE(sqrt(Bound()).finite());
  EXPECT_FALSE(max(Bound(), p).finite());
  EXPECT_TRUE((Bound() * Bound(0)).is_zero());
  EXPECT_FALSE(Bound(std::nan("")).finite());
}

TEST(Bound, Evaluates) {
  const Bound bound = Bound(2) * sqrt(p + Bound(1)) + q;
  EXPECT_FALSE(bound.value({{"p", 3}}));
  EXPECT_DOUBLE_EQ(*bound.value({{"p", 3}, {"q", 5}}), 9);
  EXPECT_GT(*bound.evaluate({{"p", 3}, {"q", 5}}), 9);
  EXPECT_LT(*bound.evaluate({{"p", 3}, {"q", 5}}), 9.00001);
}

// A random bound beside the number it stands for: never smaller, and hardly larger while it is simple.
TEST(Bound, IsNeverTooSmall) {
  std::mt19937_64 random(3);
  const SizeValues sizes = {{"p", 3}, {"q", 7}};
  for (int round = 0; round < 300; ++round) {
    std::vector<std::pair<Bound, double>> known = {
        {p, 3}, {q, 7}, {Bound(0.5), 0.5}, {Bound(2), 2}};
    for (int step = 0; step < 30; ++step) {
      const auto [a, x] = known[random() % known.size()];
      const auto [b, y] = known[random() % known.size()];
      switch (random() % 5) {
        case 0:
          known.emplace_back(a + b, x + y);
          break;
        case 1:
          known.emplace_back(a * b, x * y);
          break;
        case 2:
          known.emplace_back(sqrt(a), std::sqrt(x));
          break;
        case 3:
          known.emplace_back(max(a, b), std::max(x, y));
          break;
        default:
          known.emplace_back(tighter(a, b), std::min(x, y));
      }
      const double value = known.back().second;
      if (value > 1e100) break;
      ASSERT_GE(*known.back().first.evaluate(sizes), value) << known.back().first.to_string();
      ASSERT_LT(known.back().first.to_string().size(), 2000U);
    }
  }
}

}  // namespace
}  // namespace starfold

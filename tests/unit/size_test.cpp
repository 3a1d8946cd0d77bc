#include "starfold/types/size.h"

#include <gtest/gtest.h>

#include <limits>

namespace starfold {
namespace {

const Size p = Size::variable("p");
const Size q = Size::variable("q");

TEST(Size, NormalForm) {
  EXPECT_EQ(*add(p, q), *add(q, p));
  EXPECT_EQ(*multiply(*add(p, 1), *add(p, 1)), *add(*multiply(p, p), *add(*multiply(2, p), 1)));
  EXPECT_EQ(*subtract(p, p), Size(0));
  EXPECT_TRUE(subtract(*add(p, 3), p)->is_constant());
  EXPECT_EQ(add(p, q)->hash(), add(q, p)->hash());
  EXPECT_FALSE(p == q);
  EXPECT_FALSE(p == Size(1));
}

TEST(Size, IsWrittenAsPeopleWriteIt) {
  EXPECT_EQ(add(p, 1)->to_string(), "p + 1");
  EXPECT_EQ(subtract(p, Size::variable("k"))->to_string(), "p - k");
  EXPECT_EQ(multiply(*multiply(2, p), q)->to_string(), "2*p*q");
  EXPECT_EQ(multiply(p, -1)->to_string(), "-p");
  EXPECT_EQ(Size(0).to_string(), "0");
  EXPECT_EQ(Size(std::numeric_limits<std::int64_t>::min()).to_string(), "-9223372036854775808");
}

TEST(Size, Overflow) {
  const Size largest = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(add(largest, 1));
  EXPECT_FALSE(multiply(largest, 2));
  EXPECT_FALSE(multiply(*multiply(largest, p), 2));
  EXPECT_FALSE(divide(Size(std::numeric_limits<std::int64_t>::min()), -1));
  std::optional<Size> power = p;
  for (int i = 0; i < 20 && power; ++i) power = multiply(*power, p);
  EXPECT_FALSE(power);
}

TEST(Size, Division) {
  EXPECT_EQ(*divide(*multiply(6, *multiply(p, q)), *multiply(2, q)), *multiply(3, p));
  EXPECT_EQ(*divide(*add(*multiply(2, p), 4), 2), *add(p, 2));
  EXPECT_FALSE(divide(*add(*multiply(2, p), 3), 2));
  EXPECT_FALSE(divide(p, q));
  EXPECT_FALSE(divide(p, *add(p, 1)));
  EXPECT_FALSE(divide(p, 0));
}

TEST(Size, LinearFactor) {
  const Size size = *add(*multiply(*multiply(2, p), q), *add(q, 5));
  EXPECT_EQ(*size.linear_factor("p"), *multiply(2, q));
  EXPECT_EQ(*size.linear_factor("q"), *add(*multiply(2, p), 1));
  EXPECT_FALSE(size.linear_factor("r"));
  EXPECT_FALSE(multiply(p, p)->linear_factor("p"));
}

TEST(Size, ValuesAndSolutions) {
  const Size size = *add(*multiply(p, q), 1);
  EXPECT_EQ(size.evaluate({{"p", 3}, {"q", 4}}), 13);
  EXPECT_FALSE(size.evaluate({{"p", 3}}));
  EXPECT_EQ(size.solve_for("q", {{"p", 3}}, 13), 4);
  EXPECT_FALSE(size.solve_for("q", {{"p", 3}}, 14));
  EXPECT_EQ(subtract(5, p)->solve_for("p", {}, 2), 3);
  EXPECT_EQ(size.substitute({{"p", 2}})->to_string(), "2*q + 1");
}

}  // namespace
}  // namespace starfold

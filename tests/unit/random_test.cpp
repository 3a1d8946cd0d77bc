// Random tensors: known answers of the generator, and that entry i depends on the seed and i only.
#include "meaning_testing.h"
#include "starfold/ops/special.h"
#include "starfold/tensor/philox.h"

namespace starfold::testing {
namespace {

Tensor uniform(double seed, Shape sizes) {
  return apply1(meaning::uniform, {Tensor::scalar(seed)}, {.sizes = std::move(sizes)});
}
Tensor normal(double seed, Shape sizes) {
  return apply1(meaning::normal, {Tensor::scalar(seed)}, {.sizes = std::move(sizes)});
}

// The three vectors of Random123's kat_vectors for philox4x32, 10 rounds.
TEST(Random, PhiloxKnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox4x32_10({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// An independent Philox in Python (checked with the vectors above), its bits as in the source's
// comments: (bits >> 11) * 2**-53, and mpmath's inverse of erfc at ((bits >> 12) + 0.5) * 2**-52.
TEST(Random, Figures) {
  expect_tensor(uniform(42, {4}), {4},
                {0.4685865183391049, 0.32706338120338474, 0.6583155272123093, 0.6706398529302326});
  expect_tensor(uniform(-1, {4}), {4},
                {0.08311886932882984, 0.2945537688447033, 0.4345325282987542, 0.6809376747247022});
  expect_tensor(uniform(0.5, {4}), {4},
                {0.04013149501283275, 0.8899316124504535, 0.8764032847210567, 0.26586456140027015});
  expect_tensor(normal(42, {4}), {4},
                {-1.144298878024954, 2.386161285797123, -1.1610394494146141, 0.4693154650693708},
                1e-15);
  expect_tensor(
      normal(-1, {4}), {4},
      {-0.01448921896559399, 0.5947339009417847, -0.13937177896630437, 1.4440503923574224}, 1e-15);
  expect_tensor(
      normal(0.5, {4}), {4},
      {-0.4577112033254064, -0.652004696398794, 0.41199870084424517, 0.0011992044908925214}, 1e-15);
}

TEST(Random, EntryDependsOnSeedAndPlaceOnly) {
  const Tensor all = normal(7, {60});
  const Tensor matrix = normal(7, {5, 12});
  EXPECT_EQ(matrix.shape, (Shape{5, 12}));
  EXPECT_EQ(matrix.data, all.data);
  const Tensor few = normal(7, {10});
  EXPECT_TRUE(std::equal(few.data.begin(), few.data.end(), all.data.begin()));
  EXPECT_EQ(normal(7, {}).item(), all.data[0]);
}

TEST(Random, SeedsAndOperationsDrawApart) {
  EXPECT_NE(uniform(1, {8}).data, uniform(2, {8}).data);
  EXPECT_EQ(uniform(0, {8}).data, uniform(-0.0, {8}).data);
  // A fractional seed is not confused with the whole number that has its bits.
  const double half = 0.5;
  EXPECT_NE(uniform(half, {8}).data, uniform(0x3fe0000000000000, {8}).data);
  EXPECT_NE(uniform(1e300, {8}).data, uniform(-1e300, {8}).data);
  // normal is not the image of the same seed's uniform.
  const Tensor u = uniform(1, {8});
  const Tensor z = normal(1, {8});
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_GT(std::fabs(special::normal_cdf(z.data[i]) - u.data[i]), 1e-9);
  }
}

TEST(Random, SeedMustBeFinite) {
  for (const double seed : {kNan, kInf, -kInf}) {
    EXPECT_EQ(run_error_of([&] { normal(seed, {2}); }), "normal: the seed must be a finite number");
  }
}

TEST(Random, MomentsAndRange) {
  const std::size_t n = 200000;
  const Tensor u = uniform(3, {static_cast<std::int64_t>(n)});
  const Tensor z = normal(3, {static_cast<std::int64_t>(n)});
  for (const double x : u.data) ASSERT_TRUE(x >= 0 && x < 1);
  const double root = std::sqrt(static_cast<double>(n));
  // Within five standard errors; the draws are fixed, so this cannot fail by chance.
  EXPECT_NEAR(meaning::fold_mean(u.data), 0.5, 5 * std::sqrt(1.0 / 12) / root);
  EXPECT_NEAR(meaning::fold_var(u.data), 1.0 / 12, 5 * 0.075 / root);
  EXPECT_NEAR(meaning::fold_mean(z.data), 0, 5 / root);
  EXPECT_NEAR(meaning::fold_var(z.data), 1, 5 * std::sqrt(2.0) / root);
  double lagged = 0;
  for (std::size_t i = 1; i < n; ++i) lagged += z.data[i] * z.data[i - 1];
  EXPECT_NEAR(lagged / static_cast<double>(n), 0, 5 / root);
}

}  // namespace
}  // namespace starfold::testing

#include "starfold/base/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace starfold {
namespace {

TEST(Suggest, FindsTheNearest) {
  const std::vector<std::string> names = {"covariates", "response", "sum", "softmax", "x"};
  EXPECT_EQ(nearest("covariate", names), "covariates");
  EXPECT_EQ(nearest("respnose", names), "response");
  EXPECT_EQ(nearest("Sum", names), "sum");
  EXPECT_EQ(nearest("sotfmax", names), "softmax");
}

TEST(Suggest, SaysNothingWhenNothingIsNear) {
  const std::vector<std::string> names = {"covariates", "x", ""};
  EXPECT_EQ(nearest("y", names), "");
  EXPECT_EQ(nearest("zebra", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest(std::string(1000, 'a'), names), "");
}

}  // namespace
}  // namespace starfold

#include "starfold/base/suggest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

#include "starfold/base/analyses.h"
#include "starfold/study/program.h"

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

// --- what other software calls an analysis

TEST(Analyses, NameProgramsThatExist) {
  const std::vector<std::string> programs = library_program_names();
  for (const Analysis& row : analyses()) {
    EXPECT_FALSE(row.programs.empty() && row.inside.empty()) << row.name;
    std::istringstream words{std::string(row.programs)};
    for (std::string program; words >> program;)
      EXPECT_NE(std::find(programs.begin(), programs.end(), program), programs.end())
          << row.name << " names " << program;
    EXPECT_EQ(find_analysis(row.name), &row) << row.name << " stands twice";
  }
}

TEST(Analyses, AreFoundHoweverTheyAreWritten) {
  for (const char* name : {"t.test", "t_test", "TTest", "stats::t.test"}) {
    const Analysis* found = find_analysis(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->name, "t.test");
  }
  for (const char* name : {"LogisticRegression", "sklearn.linear_model.LogisticRegression"})
    EXPECT_EQ(near_programs(name), "did you mean logistic?");
  EXPECT_EQ(near_programs("survival::coxph"), "did you mean cox or cox_strata?");
  EXPECT_EQ(near_programs("t.test"), "did you mean t_test or t_one_sample or t_paired?");
  EXPECT_EQ(near_programs("KMeans"), "did you mean kmeans?");
  EXPECT_EQ(near_programs("logistics"), "did you mean logistic?");
  EXPECT_EQ(find_analysis("nothing"), nullptr);
  EXPECT_EQ(find_analysis(std::string(1000, 'l')), nullptr);
  EXPECT_EQ(near_programs("zebra"), "`starfold lib` lists what there is");
}

}  // namespace
}  // namespace starfold

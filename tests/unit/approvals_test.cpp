// What waits for the owner, and what the owner said: only files that are what they say they are count.
#include "starfold/node/approvals.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace starfold {
namespace {

class ApprovalsTest : public testing::Test {
 protected:
  ApprovalsTest() {
    std::string pattern = testing::TempDir() + "approvals-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    std::filesystem::create_directory(folder_ + "/pending");
    std::filesystem::create_directory(folder_ + "/approvals");
  }
  ~ApprovalsTest() override { std::filesystem::remove_all(folder_); }

  void write_decision(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/approvals/" + name) << text;
  }
  static std::string hash(char digit) { return std::string(64, digit); }

  std::string folder_;
};

TEST_F(ApprovalsTest, OnlyTheTwoWordsDecide) {
  const Approvals approvals(folder_);
  write_decision(hash('a') + ".json", R"({"decision": "approve", "time": "1"})");
  write_decision(hash('b') + ".json", R"({"decision": "deny", "time": "2"})");
  for (const char* word : {"", "yes", "Approve", "approved", "approve "}) {
    write_decision(hash('c') + ".json",
                   std::string(R"({"time": "3", "decision": ")") + word + "\"}");
    ASSERT_EQ(approvals.decisions().size(), 2U) << word;
  }
  for (const char* text :
       {"{}", "[]", "approve", R"({"decision": true})", R"({"decision": ["approve"]})"}) {
    write_decision(hash('c') + ".json", text);
    ASSERT_EQ(approvals.decisions().size(), 2U) << text;
  }
  EXPECT_TRUE(approvals.decisions()[0].approved);
  EXPECT_FALSE(approvals.decisions()[1].approved);
}

TEST_F(ApprovalsTest, OnlyWholeHashesNameStudies) {
  const Approvals approvals(folder_);
  const std::string text = R"({"decision": "approve", "time": "1"})";
  for (const std::string& name :
       {hash('a').substr(1), hash('a') + "a", hash('A'), hash('g'), std::string()})
    write_decision(name + ".json", text);
  write_decision(hash('a'), text);
  write_decision(hash('a') + ".json.partial", text);
  EXPECT_TRUE(approvals.decisions().empty());
}

// Whoever asks cannot fill the owner's disk: beyond a number of studies the next must come again.
TEST_F(ApprovalsTest, NotEverythingCanWait) {
  const Approvals approvals(folder_);
  for (int i = 0; i < 999; ++i) std::ofstream(folder_ + "/pending/" + std::to_string(i)) << "x";
  const auto study = [](char digit) { return PendingStudy{hash(digit), "s", "", "", "1", "", ""}; };
  EXPECT_TRUE(approvals.ask(study('a')));
  EXPECT_FALSE(approvals.ask(study('b')));
  EXPECT_TRUE(approvals.ask(study('a')));  // who waits already still does
  ASSERT_EQ(approvals.pending().size(), 1U);
  approvals.taken_up({hash('a'), true, "2"});
  EXPECT_TRUE(approvals.ask(study('b')));
}

}  // namespace
}  // namespace starfold

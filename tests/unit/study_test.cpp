// A run as a program has it: values in, values out, nothing printed.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "starfold/base/error.h"
#include "starfold/data/arrays/npy.h"
#include "starfold/study/options.h"
#include "starfold/study/output/folder.h"
#include "starfold/study/output/trouble.h"
#include "starfold/study/program.h"
#include "starfold/study/run.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

class StudyTest : public testing::Test {
 protected:
  StudyTest() {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("starfold-") + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write("sum.fold", "input x : [*]\ninput w : [] = 1\noutput s = w * sum[*](x)\n");
    const double nan = std::nan("");
    write("a.npy", format_npy(Tensor({3}, {1, 2, nan})));
    write("b.npy", format_npy(Tensor({2}, {10, 20})));
  }
  ~StudyTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }
  StudyOptions options() const {
    StudyOptions options;
    options.file = path("sum.fold");
    options.clients = {"a=" + path("a.npy"), "b=" + path("b.npy")};
    options.missing = "drop";
    return options;
  }
  static StudyRun run(const StudyOptions& options) {
    Study study = make_study(options);
    auto program = open_program(study.program);
    return run_study(std::move(study), std::move(program));
  }
  // What goes wrong with these options.
  static Trouble trouble(const StudyOptions& options) {
    try {
      run(options);
    } catch (...) {
      return current_trouble();
    }
    return {Trouble::Kind::bug, "nothing went wrong", {}};
  }

  fs::path folder_;
};

TEST_F(StudyTest, OneValueOwnsWhatARunKnows) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  StudyOptions asked = options();
  asked.settings = {"w=2"};
  const StudyRun done = run(asked);
  EXPECT_EQ(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(done.report.results.outputs.at("s").item(), 66);
  ASSERT_EQ(done.report.clients.size(), 2U);
  EXPECT_EQ(done.report.clients[0].name, "a");
  EXPECT_EQ(done.report.clients[0].records, 2);
  EXPECT_EQ(done.report.clients[0].dropped, 1);
  EXPECT_EQ(done.report.clients[1].dropped, 0);
  EXPECT_EQ(done.versions.count("starfold"), 1U);
  EXPECT_GT(done.report.times.load, 0);
  EXPECT_EQ(done.program->text.name, path("sum.fold"));
}

TEST_F(StudyTest, ThePooledRecordsGiveTheSame) {
  Study study = make_study(options());
  RunControl control;
  control.reference = true;
  const StudyRun done = run_study(study, open_program(study.program), control);
  EXPECT_EQ(done.report.results.outputs.at("s").item(), 33);
  EXPECT_EQ(done.report.rounds, 0);
}

TEST_F(StudyTest, TroubleIsAValue) {
  StudyOptions wrong = options();
  wrong.settings = {"w"};
  EXPECT_EQ(trouble(wrong).kind, Trouble::Kind::usage);
  wrong = options();
  wrong.clients.clear();
  EXPECT_EQ(trouble(wrong).kind, Trouble::Kind::usage);
  wrong = options();
  wrong.file = path("none.fold");
  EXPECT_EQ(trouble(wrong).kind, Trouble::Kind::usage);
  wrong = options();
  wrong.clients[1] = "b=" + path("none.npy");
  EXPECT_EQ(trouble(wrong).kind, Trouble::Kind::failed);
  EXPECT_NE(trouble(wrong).message.find("client b"), std::string::npos);
}

template <typename Error>
Trouble told(const Error& error) {
  try {
    throw error;
  } catch (...) {
    return current_trouble();
  }
}

TEST(Trouble, HasAKindForEveryException) {
  EXPECT_EQ(told(RunError("no", Span{0, 1, 2})).where, (Span{0, 1, 2}));
  EXPECT_EQ(told(std::bad_alloc()).message, "out of memory");
  const auto no_thread = std::make_error_code(std::errc::resource_unavailable_try_again);
  EXPECT_NE(told(std::system_error(no_thread)).message.find("threads"), std::string::npos);
  EXPECT_EQ(told(std::system_error(no_thread)).kind, Trouble::Kind::failed);
  EXPECT_EQ(told(Bug("oh")).kind, Trouble::Kind::bug);
  EXPECT_EQ(told(42).kind, Trouble::Kind::bug);
}

TEST_F(StudyTest, AFolderIsWrittenAndReplaced) {
  StudyOptions asked = options();
  asked.out = path("out");
  const StudyRun done = run(asked);
  check_results_folder(done.study, *done.program);
  write_results(done);
  write_results(done);
  EXPECT_TRUE(fs::exists(path("out/s.npy")));
  write("out/mine", "mine");
  EXPECT_THROW(write_results(done), RunError);
  EXPECT_THROW(check_results_folder(done.study, *done.program), RunError);
  EXPECT_TRUE(fs::exists(path("out/mine")));
}

}  // namespace
}  // namespace starfold

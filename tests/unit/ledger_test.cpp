// The ledger: what it holds, what happens to it when the machine, the disk or a person interferes, what verifying finds.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "starfold/base/error.h"
#include "starfold/base/hash.h"
#include "starfold/node/approvals.h"
#include "starfold/node/ledger/files.h"
#include "starfold/node/ledger/ledger.h"
#include "starfold/node/replies.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    // In memory where that can be: thousands of ledgers are synced here.
    const fs::path memory = "/dev/shm";
    folder_ = (access(memory.c_str(), W_OK) == 0 ? memory : fs::path(testing::TempDir())) /
              (std::string("starfold-ledger-") + test->name() + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    place_ = {(folder_ / "n.ledger").string(), (folder_ / "ledger.head").string(), "north"};
  }
  ~LedgerTest() override { fs::remove_all(folder_); }

  Ledger open() {
    return Ledger::open(place_, [this] { return now_; });
  }
  Verdict verify() const { return verify_ledger(place_.path, place_.head); }
  std::string text() const { return read(place_.path); }
  static std::string read(const std::string& path) {
    std::ostringstream all;
    all << std::ifstream(path, std::ios::binary).rdbuf();
    return all.str();
  }
  static void write(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  // A ledger of `count` lines after the first.
  void fill(int count) {
    Ledger ledger = open();
    for (int i = 0; i < count; ++i) {
      now_ += 1000;
      ledger.append(sent(i));
    }
  }
  static LedgerEntry sent(int i) {
    LedgerEntry entry;
    entry.kind = i == 0 ? "start" : "encode";
    entry.study = "sums";
    entry.agreement = sha256_hex("study");
    entry.run = std::string(32, 'a');
    entry.sequence = i;
    entry.request = sha256_hex("request" + std::to_string(i));
    entry.sent = sha256_hex("reply" + std::to_string(i));
    entry.decision = "sent";
    if (i > 0) {
      entry.round = i - 1;
      entry.numbers = 3;
      entry.bytes = 24;
      entry.shapes = "[3]";
    }
    return entry;
  }
  // What RunError says, or nothing when there is none.
  static std::string trouble(const std::function<void()>& action) {
    try {
      action();
    } catch (const RunError& error) {
      return error.what();
    }
    return "";
  }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  static std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }

  fs::path folder_;
  LedgerPlace place_;
  std::int64_t now_ = 1'800'000'000'000;
};

TEST_F(LedgerTest, LinesAreChainedAndCounted) {
  fill(3);
  const std::vector<std::string> lines = lines_of(text());
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_TRUE(lines[0].starts_with(
      R"({"seq":0,"time":"2027-01-15T08:00:00.000Z","kind":"ledger","node":"north","format":1,"prev":"0000)"));
  EXPECT_NE(lines[3].find("\"prev\":\"" + sha256_hex(lines[2]) + "\""), std::string::npos);
  struct stat info {};
  ASSERT_EQ(stat(place_.path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);

  const Ledger again = open();
  const Account& account = again.study(sha256_hex("study"));
  EXPECT_EQ(account.numbers, 6);
  EXPECT_EQ(account.rounds, 2);
  EXPECT_EQ(account.bytes, 48);
  EXPECT_EQ(again.total().numbers, 6);
  EXPECT_EQ(again.study("other").numbers, 0);
  const std::optional<LastReply> last = again.run(std::string(32, 'a'));
  ASSERT_TRUE(last);
  EXPECT_EQ(last->sequence, 2);
  EXPECT_EQ(last->round, 1);
  EXPECT_EQ(last->request, sha256_hex("request2"));
  EXPECT_EQ(last->sent, sha256_hex("reply2"));
  EXPECT_FALSE(again.run(std::string(32, 'b')));
  EXPECT_EQ(again.lines(), 4);
}

TEST_F(LedgerTest, EveryMemberIsReadAsItWasWritten) {
  LedgerLine line;
  line.seq = 7;
  line.time = format_time(now_);
  line.clock_back = true;
  line.node = "n";
  line.format = 1;
  line.prev = std::string(64, '1');
  line.entry = {"k",       "a \"quoted\" \\ study",
                "ag",      "peer ü",
                "run",     4,
                -1,        "pl",
                "po",      "da",
                "re",      "rq",
                "refused", "ru",
                true,      "de",
                12,        13,
                "[2]",     "3 clients",
                "se",      0.1,
                1e-7,      5,
                6,         1.5,
                0.25};
  const std::optional<LedgerLine> again = parse_line(format_line(line));
  ASSERT_TRUE(again);
  EXPECT_EQ(format_line(*again), format_line(line));
  EXPECT_EQ(again->entry.study, line.entry.study);
  EXPECT_EQ(again->entry.delta, 1e-7);
  EXPECT_EQ(again->entry.round, -1);
  EXPECT_FALSE(parse_line(format_line(line) + " "));
  EXPECT_FALSE(parse_line("{}"));
  EXPECT_FALSE(parse_line(""));
}

TEST_F(LedgerTest, TextsOfStrangersAreBounded) {
  Ledger ledger = open();
  LedgerEntry entry = sent(0);
  entry.study = std::string(100'000, '"');
  entry.peer = std::string("a\nb\0c\x1b[2J\xff", 11);
  entry.detail = std::string(100'000, '\\');
  entry.rule = "\xe2\x80\xae";
  ledger.append(entry);
  const std::vector<std::string> lines = lines_of(text());
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_LT(lines[1].size(), 4000U);
  for (const char c : lines[1]) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  EXPECT_TRUE(verify().ok);
}

TEST_F(LedgerTest, ApprovalsAndRefusals) {
  const std::string study = sha256_hex("study");
  Ledger ledger = open();
  LedgerEntry refusal = sent(1);
  refusal.decision = "refused";
  refusal.counted = true;
  ledger.append(refusal);
  ledger.append(refusal);
  refusal.counted = false;  // told before any record was read
  ledger.append(refusal);
  EXPECT_EQ(ledger.study(study).refusals, 2);
  EXPECT_EQ(ledger.study(study).numbers, 0);
  EXPECT_EQ(ledger.study(study).standing, Account::Standing::none);
  LedgerEntry owner;
  owner.agreement = study;
  owner.kind = "pending";
  ledger.append(owner);
  EXPECT_EQ(ledger.study(study).standing, Account::Standing::pending);
  owner.kind = "approve";
  ledger.append(owner);
  EXPECT_EQ(ledger.study(study).standing, Account::Standing::approved);
  EXPECT_EQ(ledger.study(study).refusals, 0);
  owner.kind = "deny";
  ledger.append(owner);
  EXPECT_EQ(ledger.study(study).standing, Account::Standing::denied);
}

TEST_F(LedgerTest, ACrashAtAnyByteOfTheLastLine) {
  fill(3);
  const std::string head_before = read(place_.head);
  {
    Ledger ledger = open();
    ledger.append(sent(3));
  }
  const std::string whole = text();
  const std::string head_after = read(place_.head);
  const std::size_t begin = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t length = begin; length <= whole.size(); ++length) {
    write(place_.path, whole.substr(0, length));
    write(place_.head, head_before);
    const bool torn = length != begin && length != whole.size();
    const Verdict crashed = verify();
    EXPECT_TRUE(crashed.ok) << length;
    EXPECT_EQ(crashed.notes.size(), length == begin ? 0U : 1U) << length;
    {
      const Ledger ledger = open();
      EXPECT_EQ(ledger.study(sha256_hex("study")).rounds, length == whole.size() ? 3 : 2);
      EXPECT_EQ(ledger.lines(), torn || length == whole.size() ? 5 : 4) << length;
    }
    EXPECT_TRUE(text().starts_with(whole.substr(0, begin))) << length;
    EXPECT_EQ(text().find("torn last line of") != std::string::npos, torn) << length;
    const Verdict repaired = verify();
    EXPECT_TRUE(repaired.ok) << length;
    EXPECT_EQ(repaired.notes.size(), torn ? 1U : 0U) << length;

    // With the head written after it, the line was whole: then it is no crash.
    if (length == whole.size()) continue;
    write(place_.path, whole.substr(0, length));
    write(place_.head, head_after);
    EXPECT_FALSE(verify().ok) << length;
    EXPECT_NE(trouble([&] { open(); }).find("rolled back"), std::string::npos) << length;
    EXPECT_EQ(text(), whole.substr(0, length));
  }
}

TEST_F(LedgerTest, ACrashAtAnyByteOfTheFirstLine) {
  open();
  const std::string whole = text();
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    write(place_.path, whole.substr(0, length));
    fs::remove(place_.head);
    EXPECT_TRUE(verify().ok) << length;
    EXPECT_EQ(open().lines(), length == 0 || length == whole.size() ? 1 : 2) << length;
    EXPECT_TRUE(verify().ok) << length;
  }
}

TEST_F(LedgerTest, ZerosInThePlaceOfTheLastLine) {
  fill(2);
  const std::string whole = text();
  write(place_.path, whole + std::string(100, '\0') + "\n");
  EXPECT_EQ(open().lines(), 4);
  EXPECT_TRUE(text().starts_with(whole));
  // Not where the head has been.
  const std::string more = text();
  const std::size_t begin = more.rfind('\n', more.size() - 2) + 1;
  write(place_.path, more.substr(0, begin) + std::string(100, '\0') + "\n");
  EXPECT_NE(trouble([&] { open(); }).find("broken"), std::string::npos);
}

TEST_F(LedgerTest, EveryChangedByteIsFound) {
  fill(3);
  const std::string whole = text();
  std::mt19937 random(7);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ static_cast<char>(1U << (random() % 8)));
    write(place_.path, changed);
    ASSERT_FALSE(verify().ok) << i;
    ASSERT_NE(trouble([&] { open(); }), "") << i;
    ASSERT_EQ(text(), changed) << i;  // what is broken is not touched
  }
}

TEST_F(LedgerTest, DroppedDoubledAndReorderedLinesAreFound) {
  fill(5);
  const std::vector<std::string> lines = lines_of(text());
  const auto found = [&](const std::vector<std::string>& changed) {
    write(place_.path, joined(changed));
    return !verify().ok && !trouble([&] { open(); }).empty();
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::string> dropped = lines;
    dropped.erase(dropped.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_TRUE(found(dropped)) << i;
    for (std::size_t k = 0; k < lines.size(); ++k) {
      std::vector<std::string> doubled = lines;
      doubled.insert(doubled.begin() + static_cast<std::ptrdiff_t>(k), lines[i]);
      EXPECT_TRUE(found(doubled)) << i << " " << k;
      std::vector<std::string> swapped = lines;
      std::swap(swapped[i], swapped[k]);
      EXPECT_EQ(found(swapped), i != k) << i << " " << k;
      std::vector<std::string> replaced = lines;
      replaced[k] = lines[i];
      EXPECT_EQ(found(replaced), i != k) << i << " " << k;
    }
  }
  write(place_.path, joined(lines) + "\n");
  EXPECT_FALSE(verify().ok);
  write(place_.path, joined(lines));
  EXPECT_TRUE(verify().ok);
}

// Also where the hashes were made to fit again, head and all: the numbers of lines still tell.
TEST_F(LedgerTest, DroppedDoubledAndReorderedLinesWithNewHashesAreFound) {
  fill(6);
  const std::vector<std::string> lines = lines_of(text());
  const auto told = [&](std::vector<std::string> changed) {
    for (std::size_t i = 1; i < changed.size(); ++i) {
      const std::size_t at = changed[i].find("\"prev\":\"") + 8;
      changed[i].replace(at, 64, sha256_hex(changed[i - 1]));
    }
    const auto last = static_cast<std::int64_t>(changed.size()) - 1;
    write(place_.path, joined(changed));
    write(place_.head, format_head({last, sha256_hex(changed.back())}));
    const std::string words = trouble([&] { open(); });
    EXPECT_EQ(verify().ok, words.empty());
    return words;
  };
  std::vector<std::string> dropped = lines;
  dropped.erase(dropped.begin() + 3);
  EXPECT_NE(told(dropped).find("before the line with seq 4 one is missing"), std::string::npos);
  std::vector<std::string> doubled = lines;
  doubled.insert(doubled.begin() + 3, lines[2]);
  EXPECT_NE(told(doubled).find("the line with seq 2 stands where seq 3 should"), std::string::npos);
  std::vector<std::string> swapped = lines;
  std::swap(swapped[2], swapped[4]);
  EXPECT_NE(told(swapped).find("before the line with seq 4 2 are missing"), std::string::npos);
  EXPECT_EQ(told(lines), "");
}

TEST_F(LedgerTest, LinesAddedByOthersAreFoundOnlyIfTheyDoNotFollow) {
  fill(2);
  const std::string whole = text();
  for (const char* line : {"{}", "x", R"({"seq":3})", R"({"seq":99999999999999999999})"}) {
    write(place_.path, whole + line + "\n");
    EXPECT_FALSE(verify().ok) << line;
  }
  write(place_.path, whole + std::string(200'000, 'x'));
  EXPECT_FALSE(verify().ok);
  EXPECT_NE(trouble([&] { open(); }).find("no line"), std::string::npos);
  const std::string more = whole + std::string(10, '\0') + "\n";
  for (const char* after : {"x", "{}\n"}) {
    write(place_.path, more + after);
    EXPECT_NE(trouble([&] { open(); }).find("zeros"), std::string::npos);
    EXPECT_EQ(text(), more + after);
  }
}

TEST_F(LedgerTest, Rollback) {
  fill(2);
  const std::string older = text();
  const std::string older_head = read(place_.head);
  {
    Ledger ledger = open();
    ledger.append(sent(2));
    ledger.append(sent(3));
  }
  const std::string newer_head = read(place_.head);
  write(place_.path, older);
  EXPECT_NE(trouble([&] { open(); }).find("rolled back"), std::string::npos);
  ASSERT_EQ(verify().problems.size(), 1U);
  EXPECT_NE(verify().problems[0].find("rolled back"), std::string::npos);
  fs::remove(place_.path);
  EXPECT_NE(trouble([&] { open(); }).find("rolled back"), std::string::npos);
  EXPECT_FALSE(verify().ok);
  // Another history of the same length.
  write(place_.path, older);
  write(place_.head, older_head);
  {
    Ledger ledger = open();
    ledger.append(sent(4));
    ledger.append(sent(5));
  }
  EXPECT_TRUE(verify().ok);  // both put back: this cannot be seen
  EXPECT_NE(ledger_limits().find("both put back"), std::string::npos);
  write(place_.head, newer_head);
  EXPECT_NE(trouble([&] { open(); }).find("was changed"), std::string::npos);
  EXPECT_FALSE(verify().ok);
}

TEST_F(LedgerTest, AHeadThatIsMissingBehindOrDamaged) {
  fill(3);
  const std::string whole = text();
  fs::remove(place_.head);
  EXPECT_FALSE(verify().ok);
  open();
  EXPECT_NE(text().find("head of the ledger was missing"), std::string::npos);
  EXPECT_TRUE(verify().ok);

  const std::string head = read(place_.head);
  for (std::size_t i = 0; i < head.size(); ++i) {
    std::string damaged = head;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    write(place_.head, damaged);
    ASSERT_FALSE(verify().ok) << i;
  }
  write(place_.head, head + std::string(10'000, ' '));
  EXPECT_FALSE(verify().ok);
  open();
  EXPECT_NE(text().find("head of the ledger was damaged"), std::string::npos);
  EXPECT_TRUE(verify().ok);
  write(place_.head, head);
  {
    Ledger ledger = open();  // one behind, as a crash leaves it
    EXPECT_EQ(ledger.lines(), 6);
    ledger.append(sent(3));
    ledger.append(sent(4));
  }
  write(place_.head, head);
  EXPECT_TRUE(verify().ok);
  EXPECT_EQ(open().lines(), 9);
  EXPECT_NE(text().find("lines behind it"), std::string::npos);
}

TEST_F(LedgerTest, AFullDiskLeavesTheFileAsItWas) {
  fill(2);
  const std::string whole = text();
  // The limit acts on the process, so another one meets it.
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    int status = 1;
    try {
      Ledger ledger = open();
      const rlimit limit = {whole.size() + 100, RLIM_INFINITY};
      setrlimit(RLIMIT_FSIZE, &limit);
      const std::string said = trouble([&] { ledger.append(sent(2)); });
      const bool kept =
          text() == whole && ledger.lines() == 3 && ledger.study(sha256_hex("study")).rounds == 1;
      const rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
      setrlimit(RLIMIT_FSIZE, &none);
      ledger.append(sent(2));  // there is room again
      status =
          said.find("nothing leaves") != std::string::npos && kept && ledger.lines() == 4 ? 0 : 2;
    } catch (...) {
    }
    _exit(status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(verify().ok);
  EXPECT_EQ(verify().lines, 4);
}

TEST_F(LedgerTest, AProcessKilledAtAnyMomentLosesNothing) {
  std::int64_t before = 0;
  for (int round = 0; round < 20; ++round) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      try {
        Ledger ledger = open();
        for (int i = 0;; ++i) {
          ledger.append(sent(i));
          const std::int64_t lines = ledger.lines();
          if (::write(ready[1], &lines, sizeof lines) < 0) break;  // told: it must be there
        }
      } catch (...) {
      }
      _exit(1);
    }
    close(ready[1]);
    std::int64_t told = 0;
    for (int i = 0; i <= round; ++i) ASSERT_GT(::read(ready[0], &told, sizeof told), 0);
    const Verdict running = verify();
    EXPECT_TRUE(running.ok) << (running.ok ? "" : running.problems[0]);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    while (::read(ready[0], &told, sizeof told) > 0) continue;
    close(ready[0]);
    const Ledger ledger = open();
    EXPECT_GE(ledger.lines(), told);
    EXPECT_GT(ledger.lines(), before);
    before = ledger.lines();
  }
  EXPECT_TRUE(verify().ok);
}

TEST_F(LedgerTest, OneProcessAtATime) {
  const Ledger first = open();
  EXPECT_NE(trouble([&] { open(); }).find("in use by another process"), std::string::npos);
  EXPECT_TRUE(verify().ok);  // looking is always possible
}

TEST_F(LedgerTest, InterferenceWhileItIsInUse) {
  Ledger ledger = open();
  ledger.append(sent(0));
  const std::string whole = text();
  std::ofstream(place_.path, std::ios::app) << "x\n";
  EXPECT_NE(trouble([&] { ledger.append(sent(1)); }).find("was changed while"), std::string::npos);
  fs::resize_file(place_.path, whole.size() - 10);
  EXPECT_NE(trouble([&] { ledger.append(sent(1)); }).find("was changed while"), std::string::npos);
  write(place_.path, whole);
  ledger.append(sent(1));
  fs::copy_file(place_.path, place_.path + ".copy");
  fs::rename(place_.path + ".copy", place_.path);
  EXPECT_NE(trouble([&] { ledger.append(sent(2)); }).find("was replaced while"), std::string::npos);
  fs::remove(place_.path);
  EXPECT_NE(trouble([&] { ledger.append(sent(2)); }).find("was replaced while"), std::string::npos);
}

TEST_F(LedgerTest, AClockThatJumpsIsNotedAndNoError) {
  fill(1);
  Ledger ledger = open();
  now_ -= 3'600'000;
  ledger.append(sent(1));
  now_ += 10;
  ledger.append(sent(2));
  now_ = -5;
  ledger.append(sent(3));
  now_ = INT64_MAX;
  ledger.append(sent(4));
  const std::vector<std::string> lines = lines_of(text());
  EXPECT_NE(lines[2].find("\"clock_back\":true"), std::string::npos);
  EXPECT_EQ(lines[3].find("clock_back"), std::string::npos);
  EXPECT_NE(lines[4].find("1970-01-01T00:00:00.000Z\",\"clock_back\":true"), std::string::npos);
  EXPECT_NE(lines[5].find("9999-12-31T23:59:59.999Z"), std::string::npos);
  const Verdict verdict = verify();
  EXPECT_TRUE(verdict.ok);
  EXPECT_EQ(verdict.notes.size(), 2U);
  EXPECT_EQ(format_time(1'709'164'800'123), "2024-02-29T00:00:00.123Z");
}

TEST_F(LedgerTest, NotALedger) {
  write(place_.path, "hello\n");
  EXPECT_NE(trouble([&] { open(); }), "");
  EXPECT_EQ(text(), "hello\n");
  fs::remove(place_.path);
  fs::create_directory(place_.path);
  EXPECT_NE(trouble([&] { open(); }), "");
  fs::remove(place_.path);
  ASSERT_EQ(mkfifo(place_.path.c_str(), 0600), 0);
  EXPECT_NE(trouble([&] { open(); }).find("not a regular file"), std::string::npos);
  EXPECT_NE(trouble([&] { verify(); }).find("not a regular file"), std::string::npos);
  fs::remove(place_.path);
  fill(1);
  place_.node = "south";
  EXPECT_NE(trouble([&] { open(); }).find("is that of node north"), std::string::npos);
}

TEST_F(LedgerTest, RunsThatAreLongGoneAreForgotten) {
  // Written by hand: syncing each of so many lines would take long.
  open();
  std::string whole = text();
  std::string prev = sha256_hex(whole.substr(0, whole.size() - 1));
  LedgerLine line;
  line.time = format_time(now_);
  const auto id = [](int i) { return sha256_hex(std::to_string(i)).substr(0, 32); };
  for (int i = 0; i < 10'050; ++i) {
    line.seq = i + 1;
    line.entry = sent(1);
    line.entry.run = id(i == 10'049 ? 0 : i);  // the first run comes again at the end
    line.prev = prev;
    const std::string one = format_line(line);
    prev = sha256_hex(one);
    whole += one + "\n";
  }
  write(place_.path, whole);
  const Ledger ledger = open();
  EXPECT_FALSE(ledger.run(id(5)));
  EXPECT_TRUE(ledger.run(id(10'000)));
  EXPECT_EQ(ledger.study(sha256_hex("study")).rounds, 10'050);
}

class RepliesTest : public LedgerTest {
 protected:
  static std::string id(char c) { return std::string(32, c); }
};

TEST_F(RepliesTest, TheLastReplyIsKept) {
  const std::string folder = folder_.string();
  Replies replies(folder);
  replies.keep(id('a'), 0, "hello");
  replies.keep(id('a'), 1, std::string(1000, 'x'));
  EXPECT_EQ(replies.find(id('a'), 1, sha256_hex(std::string(1000, 'x'))), std::string(1000, 'x'));
  EXPECT_EQ(replies.find(id('a'), 0, sha256_hex("hello")), "hello");  // still whole
  replies.keep(id('a'), 2, "shorter");
  EXPECT_EQ(replies.find(id('a'), 2, sha256_hex("shorter")), "shorter");
  EXPECT_FALSE(replies.find(id('a'), 0, sha256_hex("hello")));
  EXPECT_FALSE(replies.find(id('a'), 2, sha256_hex("other")));
  EXPECT_FALSE(replies.find(id('b'), 0, sha256_hex("hello")));
  EXPECT_EQ(Replies(folder).find(id('a'), 2, sha256_hex("shorter")), "shorter");
  EXPECT_THROW(replies.keep("../../etc/passwd0000000000000000", 0, "x"), Bug);
  EXPECT_FALSE(is_run_id(std::string(31, 'a') + "/"));
  EXPECT_FALSE(is_run_id(std::string(33, 'a')));
}

TEST_F(RepliesTest, OldRunsMakeRoom) {
  const std::string folder = folder_.string();
  Replies replies(folder, {3, 1000});
  for (const char c : {'a', 'b', 'c', 'd'}) replies.keep(id(c), 0, std::string(10, c));
  EXPECT_FALSE(replies.find(id('a'), 0, sha256_hex(std::string(10, 'a'))));
  EXPECT_TRUE(replies.find(id('b'), 0, sha256_hex(std::string(10, 'b'))));
  replies.keep(id('b'), 1, "again");
  replies.keep(id('e'), 0, std::string(990, 'e'));
  EXPECT_FALSE(replies.find(id('c'), 0, sha256_hex(std::string(10, 'c'))));
  EXPECT_FALSE(replies.find(id('b'), 1, sha256_hex("again")));
  EXPECT_TRUE(replies.find(id('e'), 0, sha256_hex(std::string(990, 'e'))));
  replies.keep(id('f'), 0, std::string(5000, 'f'));  // larger than all room: it is the one in use
  EXPECT_TRUE(Replies(folder, {3, 10'000}).find(id('f'), 0, sha256_hex(std::string(5000, 'f'))));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(RepliesTest, AFullDiskKeepsTheReplyBefore) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    Replies replies(folder_.string());
    replies.keep(id('a'), 0, "hello");
    const rlimit limit = {100, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string said = trouble([&] { replies.keep(id('a'), 1, std::string(1000, 'x')); });
    _exit(said.find("nothing leaves") != std::string::npos &&
                  replies.find(id('a'), 0, sha256_hex("hello")) == "hello" &&
                  !replies.find(id('a'), 1, sha256_hex(std::string(1000, 'x')))
              ? 0
              : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(RepliesTest, AFileThatIsNoReply) {
  fs::create_symlink("/etc/hostname", folder_ / (id('a') + ".0"));
  ASSERT_EQ(mkfifo((folder_ / (id('b') + ".0")).c_str(), 0600), 0);
  Replies replies(folder_.string());
  EXPECT_NE(trouble([&] { replies.keep(id('a'), 0, "x"); }), "");
  EXPECT_FALSE(replies.find(id('b'), 0, sha256_hex("")));
}

TEST_F(LedgerTest, Approvals) {
  for (const char* name : {"pending", "approvals"}) fs::create_directory(folder_ / name);
  const Approvals approvals(folder_.string());
  const std::string study = sha256_hex("study");
  EXPECT_TRUE(approvals.ask({study, "sums", "peer", sha256_hex("plan"), "2026-01-01T00:00:00.000Z",
                             "new", "s: 3 numbers\n"}));
  EXPECT_TRUE(approvals.ask({study, "other words", "", "", "", "", ""}));  // is there already
  ASSERT_EQ(approvals.pending().size(), 1U);
  EXPECT_EQ(approvals.pending()[0].study, "sums");
  EXPECT_EQ(approvals.pending()[0].exposure, "s: 3 numbers\n");
  write((folder_ / "pending" / "junk").string(), "x");
  write((folder_ / "pending" / (sha256_hex("other") + ".json")).string(), "{");
  EXPECT_EQ(approvals.pending().size(), 1U);
  EXPECT_TRUE(approvals.decisions().empty());
  approvals.decide({study, true, "2026-01-01T00:00:01.000Z"});
  const std::vector<OwnersDecision> decided = approvals.decisions();
  ASSERT_EQ(decided.size(), 1U);
  EXPECT_TRUE(decided[0].approved);
  approvals.decide({study, false, "2026-01-01T00:00:02.000Z"});  // on second thoughts
  approvals.taken_up(decided[0]);
  ASSERT_EQ(approvals.decisions().size(), 1U);
  EXPECT_FALSE(approvals.decisions()[0].approved);
  approvals.taken_up(approvals.decisions()[0]);
  EXPECT_TRUE(approvals.decisions().empty());
  EXPECT_TRUE(approvals.pending().empty());
}

}  // namespace
}  // namespace starfold

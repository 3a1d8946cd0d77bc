// A node's file: every key, its default, and every mistake it can hold.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "starfold/base/error.h"
#include "starfold/base/hash.h"
#include "starfold/base/usage_error.h"
#include "starfold/merge/monoid.h"
#include "starfold/node/describe.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

constexpr const char* places =
    "name = \"north\"\nsocket = \"n.sock\"\nledger = \"n.ledger\"\nfolder = \"kept\"\n";
constexpr const char* visits =
    "[data.visits]\nfile = \"visits.csv\"\ncolumns = [\"age\", \"sex\"]\n";

class NodeConfigTest : public testing::Test {
 protected:
  NodeConfigTest() {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("starfold-node-") + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write("visits.csv", "age,sex,id\n30,f,1\n40,m,2\n");
    chmod(path("visits.csv").c_str(), 0600);
  }
  ~NodeConfigTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }
  NodeConfig read(const std::string& text) const {
    write("NODE.toml", text);
    chmod(path("NODE.toml").c_str(), 0600);
    return read_node_config(path("NODE.toml"));
  }
  NodeConfig with_policy(const std::string& policy) const {
    return read(std::string(places) + visits + "[policy]\n" + policy + "\n");
  }
  // What is said about a file; nothing: it is right.
  std::string trouble(const std::string& text) const {
    try {
      read(text);
    } catch (const UsageError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(path("NODE.toml"))) << error.what();
      return error.what();
    }
    return "";
  }
  void expect(const std::string& text, const std::string& line, const std::string& words) const {
    const std::string said = trouble(text);
    EXPECT_NE(said.find("NODE.toml:" + line + ": "), std::string::npos) << text << "\n" << said;
    EXPECT_NE(said.find(words), std::string::npos) << text << "\n" << said;
  }
  void expect_policy(const std::string& policy, const std::string& words) const {
    expect(std::string(places) + visits + "[policy]\n" + policy + "\n", "9", words);
  }

  fs::path folder_;
};

TEST_F(NodeConfigTest, DefaultsAreThoseOfTheContract) {
  const NodeConfig config = read(std::string(places) + visits);
  EXPECT_EQ(config.name, "north");
  EXPECT_EQ(config.socket, path("n.sock"));
  EXPECT_EQ(config.socket_group, "");
  EXPECT_EQ(config.ledger, path("n.ledger"));
  EXPECT_EQ(config.folder, path("kept"));
  EXPECT_EQ(config.ledger_head(), path("kept/ledger.head"));
  ASSERT_EQ(config.sources.size(), 1U);
  EXPECT_EQ(config.sources[0].name, "visits");
  EXPECT_EQ(config.sources[0].location.path, path("visits.csv"));
  EXPECT_EQ(config.sources[0].columns, (std::vector<std::string>{"age", "sex"}));
  EXPECT_EQ(config.find("visits"), &config.sources[0]);
  EXPECT_EQ(config.find("../visits"), nullptr);
  EXPECT_TRUE(config.warnings.empty());
  const Policy& policy = config.policy;
  EXPECT_EQ(policy.min_records, 10);
  EXPECT_EQ(policy.min_support, 5);
  EXPECT_EQ(policy.max_ratio, 1);
  EXPECT_EQ(policy.max_total_ratio, 30);
  EXPECT_EQ(policy.merges, (std::vector<std::string>{"sum", "count", "moments", "logsumexp"}));
  EXPECT_EQ(policy.max_numbers, 100'000);
  EXPECT_EQ(policy.max_rounds, 1000);
  EXPECT_EQ(policy.max_refusals, 3);
  EXPECT_EQ(policy.programs, Policy::Programs::any);
  EXPECT_FALSE(policy.local_blocks);
  EXPECT_FALSE(policy.privacy_required);
  EXPECT_FALSE(policy.budget);
  EXPECT_FALSE(policy.secure_aggregation_required);
}

TEST_F(NodeConfigTest, EveryKeyOfThePolicyIsReadAndChangesItsHash) {
  const std::string hash = sha256_hex("plan");
  const std::vector<std::pair<std::string, std::function<bool(const Policy&)>>> cases = {
      {"min_records = 11", [](const Policy& p) { return p.min_records == 11; }},
      {"min_support = 2.5", [](const Policy& p) { return p.min_support == 2.5; }},
      {"min_support = 7", [](const Policy& p) { return p.min_support == 7; }},
      {"max_ratio = 0.5", [](const Policy& p) { return p.max_ratio == 0.5; }},
      {"max_total_ratio = 2", [](const Policy& p) { return p.max_total_ratio == 2; }},
      {"merges = [\"sum\", \"max\"]", [](const Policy& p) { return p.merges.size() == 2; }},
      {"max_numbers = 1", [](const Policy& p) { return p.max_numbers == 1; }},
      {"max_rounds = 2", [](const Policy& p) { return p.max_rounds == 2; }},
      {"max_refusals = 1", [](const Policy& p) { return p.max_refusals == 1; }},
      {"programs = \"approved\"",
       [](const Policy& p) { return p.programs == Policy::Programs::approved; }},
      {"programs = [\"" + hash + "\"]",
       [&](const Policy& p) {
         return p.programs == Policy::Programs::listed && p.plans == std::vector{hash};
       }},
      {"local_blocks = true", [](const Policy& p) { return p.local_blocks; }},
      {"privacy = \"required\"", [](const Policy& p) { return p.privacy_required; }},
      {"budget = { epsilon = 2, delta = 1e-6 }",
       [](const Policy& p) {
         return p.budget && p.budget->epsilon == 2 && p.budget->delta == 1e-6;
       }},
      {"secure_aggregation = \"required\"",
       [](const Policy& p) { return p.secure_aggregation_required; }},
  };
  std::set<std::string> hashes = {policy_hash(Policy{})};
  for (const auto& [text, holds] : cases) {
    const Policy policy = with_policy(text).policy;
    EXPECT_TRUE(holds(policy)) << text;
    EXPECT_TRUE(hashes.insert(policy_hash(policy)).second) << text;
  }
  EXPECT_EQ(policy_hash(
                with_policy(
                    "merges = [\"count\", \"logsumexp\", \"sum\", \"moments\"]\nprograms = \"any\"")
                    .policy),
            policy_hash(Policy{}));
  for (const Monoid* row : all_monoids())
    EXPECT_EQ(with_policy("merges = [\"" + std::string(row->name) + "\"]").policy.merges.size(),
              1U);
}

TEST_F(NodeConfigTest, MistakesInThePolicy) {
  expect_policy("min_record = 5", "[policy] has no key min_record; did you mean min_records?");
  for (const char* key : {"min_records", "max_numbers", "max_rounds", "max_refusals"}) {
    expect_policy(std::string(key) + " = 0", "must be at least 1");
    expect_policy(std::string(key) + " = -3", "must be at least 1");
    expect_policy(std::string(key) + " = 2.5", "must be an integer");
    expect_policy(std::string(key) + " = \"5\"", "must be an integer");
  }
  for (const char* key : {"min_support", "max_ratio", "max_total_ratio"}) {
    expect_policy(std::string(key) + " = 0", "must be");
    expect_policy(std::string(key) + " = -1.5", "must be");
    expect_policy(std::string(key) + " = nan", "must be a finite number");
    expect_policy(std::string(key) + " = inf", "must be a finite number");
    expect_policy(std::string(key) + " = true", "must be a number");
  }
  expect_policy("min_support = 0.5", "must be at least 1");
  expect_policy("merges = [\"summ\"]", "there is no merge summ; did you mean sum?");
  expect_policy("merges = [\"quantile of everything\"]", "there are sum");
  expect_policy("merges = []", "must be a list of strings, not an empty one");
  expect_policy("merges = \"sum\"", "must be a list of strings");
  expect_policy("merges = [1]", "must be a string");
  expect_policy("merges = [\"sum\", \"sum\"]", "twice");
  expect_policy("programs = \"some\"", "must be \"any\" or \"approved\"");
  expect_policy("programs = 1", "a list of plan hashes");
  expect_policy("programs = [\"abc\"]", "64 digits");
  expect_policy("programs = [\"" + std::string(64, 'G') + "\"]", "64 digits");
  expect_policy("local_blocks = 1", "must be true or false");
  expect_policy("privacy = true", "must be a string");
  expect_policy("privacy = \"always\"", "must be \"optional\" or \"required\", not always");
  expect_policy("secure_aggregation = \"no\"", "must be \"optional\" or \"required\"");
  expect_policy("budget = 3", "must be a section");
  expect_policy("budget = { epsilon = 1 }", "needs epsilon and delta");
  expect_policy("budget = { epsilon = 0, delta = 0 }", "must be more than 0");
  expect_policy("budget = { epsilon = 1, delta = 1 }", "less than 1");
  expect_policy("budget = { epsilon = 1, delta = -0.1 }", "at least 0");
  expect_policy("budget = { epsilon = nan, delta = 0 }", "finite");
  expect_policy("budget = { epsilon = 1, delta = 0, gamma = 1 }", "no key gamma");
  EXPECT_EQ(with_policy("privacy = \"required\"").warnings.size(), 1U);
}

TEST_F(NodeConfigTest, MistakesInTheRest) {
  const std::string right = std::string(places) + visits;
  expect("nam = \"x\"\n" + right, "1", "a node's file has no key nam; did you mean name?");
  expect("name = \"north\"\nname = \"south\"\n", "2", "");
  expect(right + visits, "8", "");  // two sources of one name
  expect("x = [", "1", "");
  for (const char* key : {"name", "socket", "ledger", "folder"}) {
    std::string without = right;
    const std::size_t at = without.find(std::string(key) + " = ");
    without.erase(at, without.find('\n', at) + 1 - at);
    expect(without, "1", std::string("needs ") + key);
    expect(std::string(key) + " = 3\n" + without, "1", "must be a string");
    expect(std::string(key) + " = \"\"\n" + without, "1", "");
    expect(std::string(key) + " = \"a\\u0000b\"\n" + without, "1", "");
    expect(std::string(key) + " = \"a\\u001b[2J\"\n" + without, "1", "");
  }
  expect(places, "1", "needs data");
  expect(std::string(places) + "[data]\n", "5", "no source");
  expect(std::string(places) + "data = 3\n", "5", "must be a section");
  expect(std::string(places) + "[data]\nvisits = 3\n", "6", "must be a section");
  expect("policy = 3\n" + right, "1", "must be a section");
  expect("socket_group = \"no such group here\"\n" + right, "1", "there is no group");
  const std::string far(200, 's');
  expect("name = \"n\"\nsocket = \"" + far + "\"\nledger = \"l\"\nfolder = \"f\"\n" + visits, "2",
         "sockets may have at most");
  for (const char* name : {".", "..", "../x", "a/b", "-x", "a b", "", "a\\u0000", "ü"}) {
    expect("name = \"" + std::string(name) + "\"\n" + right.substr(right.find("socket")), "1",
           "must be a name");
    expect(std::string(places) + "[data.\"" + name +
               "\"]\nfile = \"visits.csv\"\ncolumns = [\"age\"]\n",
           "5", "must be a name");
  }
  expect("name = \"" + std::string(65, 'a') + "\"\n" + right.substr(right.find("socket")), "1",
         "at most 64");
}

TEST_F(NodeConfigTest, MistakesInASource) {
  const auto source = [](const std::string& body) {
    return std::string(places) + "[data.visits]\n" + body + "\n";
  };
  expect(source("file = \"visits.csv\""), "5", "needs columns");
  expect(source("columns = [\"age\"]"), "5", "needs a file or a query");
  expect(source("file = \"visits.csv\"\ncolumns = []"), "7", "must be a list of strings");
  expect(source("file = \"visits.csv\"\ncolumns = \"*\""), "7", "must be a list of strings");
  expect(source("file = \"visits.csv\"\ncolumns = [\"age\", \"age\"]"), "7", "names age twice");
  expect(source("file = \"visits.csv\"\ncolumns = [\"a\\u0000\"]"), "7", "cannot be shown");
  expect(source("file = \"visits.csv\"\ncolumns = [\"\"]"), "7", "is empty");
  expect(source("fil = \"visits.csv\"\ncolumns = [\"age\"]"), "6", "did you mean file?");
  expect(source("path = \"/etc/passwd\"\ncolumns = [\"age\"]"), "6", "no key path");
  expect(source("file = \"none.csv\"\ncolumns = [\"age\"]"), "6", "does not exist");
  expect(source("file = \"\"\ncolumns = [\"age\"]"), "6", "is empty");
  expect(source("file = \"visits.csv\\u0000.x\"\ncolumns = [\"age\"]"), "6", "cannot be shown");
  expect(source("file = \"visits.txt\"\ncolumns = [\"age\"]"), "6", "must be a table");
  expect(source("query = \"\"\ncolumns = [\"age\"]"), "6", "is empty");
  expect(source("query = \"a\\u0000b\"\ncolumns = [\"age\"]"), "6", "cannot be shown");
  fs::create_directory(path("folder.csv"));
  expect(source("file = \"folder.csv\"\ncolumns = [\"age\"]"), "6",
         "is a folder, not a regular file");
  ASSERT_EQ(mkfifo(path("pipe.csv").c_str(), 0600), 0);
  expect(source("file = \"pipe.csv\"\ncolumns = [\"age\"]"), "6", "not a regular file");
  fs::create_symlink("/dev/null", path("null.csv"));
  expect(source("file = \"null.csv\"\ncolumns = [\"age\"]"), "6", "not a regular file");
  fs::create_symlink("pipe.csv", path("link.csv"));
  expect(source("file = \"link.csv\"\ncolumns = [\"age\"]"), "6", "not a regular file");
  fs::create_symlink("gone.csv", path("dangling.csv"));
  expect(source("file = \"dangling.csv\"\ncolumns = [\"age\"]"), "6", "does not exist");
  fs::create_symlink("visits.csv", path("right.csv"));
  EXPECT_EQ(trouble(source("file = \"right.csv\"\ncolumns = [\"age\"]")), "");
  const NodeConfig query =
      read(source("query = \"select age from data\"\nfile = \"visits.csv\"\ncolumns = [\"age\"]"));
  EXPECT_EQ(query.sources[0].location.query, "select age from data");
  EXPECT_EQ(query.sources[0].location.folder, folder_.string());
}

TEST_F(NodeConfigTest, PathsThatCollide) {
  const auto text = [&](const std::string& socket, const std::string& ledger,
                        const std::string& folder) {
    return "name = \"n\"\nsocket = \"" + socket + "\"\nledger = \"" + ledger + "\"\nfolder = \"" +
           folder + "\"\n" + visits;
  };
  EXPECT_EQ(trouble(text("kept/s", "kept/l", "kept/")), "");
  expect(text("s", "visits.csv", "kept"), "3", "is the data of visits already");
  expect(text("s", "./x/../visits.csv", "kept"), "3", "is the data of visits already");
  expect(text("s", "NODE.toml", "kept"), "3", "is the node's file already");
  expect(text("s", "same", "same"), "4", "is the ledger already");
  expect(text("same", "same", "kept"), "2", "is the ledger already");
  expect(text("s", "kept/ledger.head", "kept"), "4", "keeps its ledger.head");
  expect(text("kept/replies/s", "l", "kept"), "4", "keeps its replies");
  fs::create_hard_link(path("visits.csv"), path("hard"));
  expect(text("s", "hard", "kept"), "3", "is the data of visits already");
  fs::create_symlink("visits.csv", path("soft"));
  expect(text("s", "soft", "kept"), "3", "is the data of visits already");
  expect(text("s", "none/l", "kept"), "3", "there is no folder");
  fs::create_directory(path("dir"));
  expect(text("s", "dir", "kept"), "3", "is not a regular file");
  expect(text("dir", "l", "kept"), "2", "is not a socket");
  write("plain", "x");
  expect(text("s", "l", "plain"), "4", "is not a folder");
}

TEST_F(NodeConfigTest, LoosePermissions) {
  const std::string right = std::string(places) + visits;
  const auto said = [&] {
    try {
      read_node_config(path("NODE.toml"));
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(trouble(right), "");
  write("n.ledger", "");
  fs::create_directory(path("kept"));
  for (const char* name : {"NODE.toml", "n.ledger", "kept"}) {
    for (const mode_t mode : {0720U, 0702U}) {
      chmod(path(name).c_str(), mode);
      EXPECT_NE(said().find("others than its owner may write"), std::string::npos)
          << name << " " << mode;
    }
    chmod(path(name).c_str(), 0700);
    EXPECT_EQ(said(), "");
  }
  chmod(folder_.c_str(), 0777);
  EXPECT_NE(said().find("may write into the folder of"), std::string::npos);
  chmod(folder_.c_str(), 01777);
  EXPECT_EQ(said(), "");
  chmod(folder_.c_str(), 0700);
  EXPECT_TRUE(read_node_config(path("NODE.toml")).warnings.empty());
  chmod(path("visits.csv").c_str(), 0644);
  ASSERT_EQ(read_node_config(path("NODE.toml")).warnings.size(), 1U);
  EXPECT_NE(read_node_config(path("NODE.toml")).warnings[0].find("NODE.toml:6: every user"),
            std::string::npos);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path("NODE.toml").c_str(), 65534, 65534), 0);
    EXPECT_NE(said().find("belongs to another user"), std::string::npos);
  }
}

TEST_F(NodeConfigTest, FilesThatAreNone) {
  EXPECT_THROW(read_node_config(path("none.toml")), UsageError);
  EXPECT_THROW(read_node_config(folder_.string()), UsageError);
  ASSERT_EQ(mkfifo(path("pipe.toml").c_str(), 0600), 0);
  EXPECT_THROW(read_node_config(path("pipe.toml")), UsageError);  // and does not wait
  write("large.toml", std::string(2'000'000, '#'));
  EXPECT_THROW(read_node_config(path("large.toml")), UsageError);
  std::string deep = "a";
  for (int i = 0; i < 1000; ++i) deep += ".a";
  EXPECT_NE(trouble("[" + deep + "]\n").find("parts"), std::string::npos);
}

TEST_F(NodeConfigTest, InWords) {
  std::string table = "age,id,visit,row_number,sex\n";
  for (int i = 0; i < 30; ++i)
    table += std::to_string(30 + i % 7) + "," + std::to_string(i * i) + "," +
             std::to_string(1000 + 3 * i) + "," + std::to_string(i) + ",f\n";
  write("visits.csv", table);
  const std::string text =
      std::string(places) +
      "[data.visits]\nfile = \"visits.csv\"\ncolumns = [\"age\", \"id\", \"visit\", "
      "\"row_number\", \"sex\"]\n"
      "[policy]\nmerges = [\"sum\", \"min\"]\nmin_records = 100\nmin_support = 1\n";
  const std::string words = describe_policy(read(text));
  for (const char* said :
       {"visits.csv, 30 records", "age (number), id (number)", "sex (text)",
        "at least 100 usable records", "put together by sum, min",
        "column id looks like an identifier", "column visit looks like an identifier: every number",
        "column row_number looks like row numbers",
        "min, whose messages hold a value of one record", "fewer than min_records = 100",
        "min_support below 2"})
    EXPECT_NE(words.find(said), std::string::npos) << said << "\n" << words;
  EXPECT_EQ(words.find("column age"), std::string::npos);
  EXPECT_NE(describe_policy_json(read(text)).find("\"records\":30"), std::string::npos);

  const NodeConfig wrong =
      read(std::string(places) + "[data.visits]\nfile = \"visits.csv\"\ncolumns = [\"agee\"]\n");
  try {
    describe_policy(wrong);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("NODE.toml:7: data.visits has no column agee; did you mean age?"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(NodeConfigTest, TheFolderIsForItsOwnerAlone) {
  const NodeConfig config = read(std::string(places) + visits);
  prepare_folder(config);
  prepare_folder(config);
  for (const char* name : {"kept", "kept/replies", "kept/approvals", "kept/pending"}) {
    struct stat info {};
    ASSERT_EQ(stat(path(name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 0777U, 0700U) << name;
  }
  fs::remove_all(path("kept"));
  write("kept", "x");
  EXPECT_THROW(prepare_folder(config), RunError);
}

}  // namespace
}  // namespace starfold

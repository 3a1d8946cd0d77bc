// The node's desk without sockets: what it keeps of several runs.
#include "starfold/node/desk/desk.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "starfold/data/binding/binding_text.h"

namespace starfold {
namespace {

namespace fs = std::filesystem;

class DeskTest : public testing::Test {
 protected:
  DeskTest() {  // a folder of its own: other shards run beside it
    std::string pattern = testing::TempDir() + "starfold-desk-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~DeskTest() override { fs::remove_all(folder_); }

  // A node with so many records.
  NodeConfig node(int records) const {
    std::ofstream data(folder_ / "visits.csv");
    data << "age\n";
    for (int i = 0; i < records; ++i) data << 30 + i % 50 << "\n";
    data.close();
    std::ofstream(folder_ / "NODE.toml")
        << "name = \"north\"\nsocket = \"n.sock\"\nledger = \"n.ledger\"\nfolder = \"kept\"\n"
           "[data.visits]\nfile = \"visits.csv\"\ncolumns = [\"age\"]\n";
    for (const char* name : {"NODE.toml", "visits.csv"}) chmod((folder_ / name).c_str(), 0600);
    return read_node_config((folder_ / "NODE.toml").string());
  }

  // A run of a program with two rounds, and what it asks.
  struct Run {
    std::shared_ptr<const CompiledProgram> program = compile_program(
        {"p.fold", "input x : [*]\nlet m = mean[*](x)\noutput s = sum[*](square(x - m))\n", {}});
    std::string bindings;
    std::string run;

    explicit Run(char digit) : run(32, digit) {
      Bindings bound;
      bound.columns["x"] = {{"age", nullptr}};
      bindings = binding_text(bound);
    }
    Message start() const {
      StartMessage message{program->hash, program->text, {}, program->planning};
      message.run = run;
      message.source = "visits";
      message.bindings = bindings;
      return message;
    }
    Message first_round() const {
      return EncodeMessage{agreement(program->hash, bindings, {}, {}), 0, 0, {}, run};
    }
  };
  static Message ask(Desk& desk, const Message& message) {
    return decode_message(desk.answer(encode_message(message), "a test").bytes);
  }
  static bool refused(const Message& answer, Refusal reason) {
    const auto* refusal = std::get_if<RefuseMessage>(&answer);
    return refusal != nullptr && refusal->reason == reason;
  }

  fs::path folder_;
};

TEST_F(DeskTest, RunsThatFitStaySideBySide) {
  Desk desk(node(100));
  const Run a('a');
  const Run b('b');
  for (const Run* run : {&a, &b})
    EXPECT_TRUE(std::holds_alternative<HelloMessage>(ask(desk, run->start())));
  for (const Run* run : {&a, &b})
    EXPECT_TRUE(std::holds_alternative<StateMessage>(ask(desk, run->first_round())));
}

// What all runs keep is one room: a second run over many records is not given as much as the first once more.
TEST_F(DeskTest, RunsShareTheRoomForRecords) {
  DeskOptions options;
  options.memory = 200 << 20;  // of which 8 MiB are for records
  Desk desk(node(700'000), options);
  const Run a('a');
  const Run b('b');
  EXPECT_TRUE(std::holds_alternative<HelloMessage>(ask(desk, a.start())));
  EXPECT_TRUE(std::holds_alternative<StateMessage>(ask(desk, a.first_round())));
  EXPECT_TRUE(std::holds_alternative<HelloMessage>(ask(desk, b.start())));
  EXPECT_TRUE(refused(ask(desk, a.first_round()), Refusal::not_started));  // it made room
  EXPECT_TRUE(std::holds_alternative<StateMessage>(ask(desk, b.first_round())));
  // Its server starts it again, and has the reply that it had.
  EXPECT_TRUE(std::holds_alternative<HelloMessage>(ask(desk, a.start())));
  EXPECT_TRUE(std::holds_alternative<StateMessage>(ask(desk, a.first_round())));
}

}  // namespace
}  // namespace starfold

// Many nodes, many rounds, large states: a federation in one process, driven as one over a network is.
#include "starfold/federation/remote.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <deque>
#include <fstream>

#include "starfold/data/binding/binding_text.h"
#include "starfold/node/frames.h"
#include "starfold/plan/order.h"
#include "tests/support/sanitized.h"

namespace starfold {
namespace {

// Nodes that answer at once.
class DirectCarrier : public Carrier {
 public:
  explicit DirectCarrier(const std::vector<Client>& clients) {
    for (const Client& client : clients) nodes_.emplace_back(client, cache_);
  }
  void send(std::size_t client, const Bytes& request) override {
    arriving_.push_back({client, nodes_[client].handle(request)});
  }
  std::optional<Delivery> receive(double /*seconds*/) override {
    if (arriving_.empty()) return std::nullopt;
    Delivery delivery = std::move(arriving_.front());
    arriving_.pop_front();
    return delivery;
  }

 private:
  ProgramCache cache_;
  std::vector<Node> nodes_;
  std::deque<Delivery> arriving_;
};

struct Setting {
  std::shared_ptr<const CompiledProgram> program;
  std::vector<Client> clients;
  std::vector<std::string> names;

  Setting(const std::string& text, std::size_t count, std::int64_t records, std::int64_t width)
      : program(compile_program({"test.fold", text, {}})) {
    for (std::size_t i = 0; i < count; ++i) {
      Client client{"n" + std::to_string(i), {}};
      Tensor x({records, width});
      for (std::size_t k = 0; k < x.data.size(); ++k)
        x.data[k] = static_cast<double>((k * 7919 + i * 31) % 1000) / 1000;
      client.arrays["x"] = std::move(x);
      names.push_back(client.name);
      clients.push_back(std::move(client));
    }
  }
  RunReport remote(const RemoteOptions& options = {}) const {
    DirectCarrier carrier(clients);
    RunIdentity identity;
    identity.run = std::string(32, '1');
    Coordinator coordinator(program, {}, names, nullptr, identity);
    return run_remote(std::move(coordinator), *program, names, carrier, options);
  }
};

std::string loop_of(int rounds) {
  return "input x : [*, p]\nstate m : [p] = zeros(p)\nrepeat " + std::to_string(rounds) +
         " {\n  m <- m + sum[*](x - m) / 100000\n}\noutput m\n";
}

TEST(Remote, TwoHundredNodes) {
  const Setting s(loop_of(5), 200, 20, 3);
  const RunReport report = s.remote();
  EXPECT_EQ(report.rounds, 5);
  EXPECT_EQ(report.results.outputs.at("m").data,
            run_local(s.program, s.clients, {}).results.outputs.at("m").data);
}

TEST(Remote, AThousandRounds) {
  const Setting s(loop_of(1000), 3, 20, 3);
  EXPECT_EQ(s.remote().results.outputs.at("m").data,
            run_local(s.program, s.clients, {}).results.outputs.at("m").data);
}

TEST(Remote, AStateOfTenMegabytes) {
  const Setting s("input x : [*, p]\noutput c = x' @ x\n", 2, 4, 1140);
  const RunReport report = s.remote();
  EXPECT_GE(report.clients[0].bytes_sent, 10'000'000U);
  EXPECT_EQ(report.results.outputs.at("c").data,
            run_local(s.program, s.clients, {}).results.outputs.at("c").data);
}

std::size_t resident_bytes() {
  malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

TEST(Remote, MemoryDoesNotGrowWithRounds) {
  if (testing::sanitized) GTEST_SKIP() << "a sanitizer keeps memory that was let go";
  const char* given = std::getenv("STARFOLD_LONG_ROUNDS");
  const int rounds = given != nullptr ? std::atoi(given) : 2000;
  const Setting s(loop_of(rounds), 3, 20, 50);
  std::size_t early = 0;
  std::size_t late = 0;
  RemoteOptions options;
  options.checkpoint = [&, count = 0](const Bytes& /*state*/) mutable {
    ++count;
    if (count == rounds / 5) early = resident_bytes();
    if (count == rounds) late = resident_bytes();
  };
  EXPECT_EQ(s.remote(options).rounds, rounds);
  EXPECT_LT(late, early + 2'000'000) << early;
}

TEST(Remote, GoesOnWithoutAClient) {
  const Setting s(loop_of(5), 3, 20, 3);
  // Silent from its third answer on.
  class Silent : public DirectCarrier {
   public:
    using DirectCarrier::DirectCarrier;
    void send(std::size_t client, const Bytes& request) override {
      if (client != 1 || ++asked_ <= 3) DirectCarrier::send(client, request);
    }

   private:
    int asked_ = 0;
  };
  Silent carrier(s.clients);
  RemoteOptions options;
  options.timeout = 0.2;
  options.on_dropout = RemoteOptions::Dropout::go_on;
  RunIdentity identity;
  identity.run = std::string(32, '1');
  const RunReport report = run_remote(Coordinator(s.program, {}, s.names, nullptr, identity),
                                      *s.program, s.names, carrier, options);
  ASSERT_EQ(report.departures.size(), 1U);
  EXPECT_EQ(report.departures[0].client, 1U);
  EXPECT_EQ(report.departures[0].rounds, 2);
  EXPECT_EQ(report.rounds, 5);

  Silent again(s.clients);
  options.on_dropout = RemoteOptions::Dropout::wait;
  EXPECT_THROW(run_remote(Coordinator(s.program, {}, s.names, nullptr, identity), *s.program,
                          s.names, again, options),
               ClientsAway);
}

// --- what it is made of

TEST(RoundOrder, FollowsThePlan) {
  const auto program = compile_program(
      {"test.fold",
       "input x : [*]\nlet a = mean[*](x)\nlet b = sum[*](x * a)\nstate m : [] = b\n"
       "repeat 3 {\n  let c = sum[*](x * m)\n  let d = sum[*](x * c)\n  m <- d\n}\n"
       "output e = sum[*](x * m)\n",
       {}});
  ASSERT_TRUE(program->plan);
  const RoundOrder order = round_order(*program->plan);
  ASSERT_EQ(order.after.size(), 5U);
  EXPECT_EQ(order.first, std::set<int>{0});
  EXPECT_EQ(order.after[0], std::set<int>{1});
  EXPECT_EQ(order.after[1], (std::set<int>{2, 4}));  // a loop may have no iteration
  EXPECT_EQ(order.after[2], std::set<int>{3});
  EXPECT_EQ(order.after[3], (std::set<int>{2, 4}));
  EXPECT_TRUE(order.after[4].empty());
}

TEST(Frames, ComeInPieces) {
  FrameReader reader(100);
  const std::string bytes = frame_head(3) + "abc" + frame_head(0) + frame_head(1) + "d";
  std::vector<std::string> got;
  for (const char byte : bytes) {
    reader.add({&byte, 1});
    while (const auto message = reader.next()) got.push_back(*message);
  }
  EXPECT_EQ(got, (std::vector<std::string>{"abc", "", "d"}));
  EXPECT_FALSE(reader.inside());
  reader.add(frame_head(101));
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.broken());
}

TEST(Bindings, AreReadAsTheyAreWritten) {
  Bindings bindings;
  auto sex = std::make_shared<Categorical>();
  sex->levels = {"f", "m", "\"x\""};
  sex->reference = 3;
  bindings.columns["x"] = {{"age", nullptr}, {"sex", sex}};
  bindings.columns["y"] = {{"bl\xc3\xa5", nullptr}};
  bindings.missing = Missing::drop;
  const std::string text = binding_text(bindings);
  EXPECT_EQ(binding_text(parse_bindings(text)), text);
  EXPECT_EQ(parse_bindings(text).columns.at("x")[1].categorical->levels, sex->levels);
  for (
      const std::string& bad :
      {std::string(), std::string("{}"), text + " ", text.substr(1), std::string("[]"),
       std::string(R"({"inputs":{},"missing":"wat"})") + "\n",
       std::string(R"({"extra":1,"inputs":{},"missing":"drop"})") + "\n",
       std::string(
           R"({"inputs":{"x":[{"codes":false,"column":"c","levels":["a"],"reference":9}]},"missing":"drop"})") +
           "\n"})
    EXPECT_THROW(parse_bindings(bad), RunError) << bad;
}

}  // namespace
}  // namespace starfold

// Conditions of programs: what must hold ends a run before what is written after it can fail, what should hold is noted.
#include "starfold/runtime/demand.h"

#include <gtest/gtest.h>

#include "starfold/compile/compile.h"
#include "starfold/page/pages.h"
#include "starfold/runtime/engine/engine.h"
#include "starfold/runtime/machine.h"

namespace starfold {
namespace {

// A column, another that is twice the first, and one of its own; over two clients.
std::vector<Client> clients() {
  Client one;
  one.name = "one";
  one.arrays["x"] = Tensor({2, 3}, {1, 2, 5, 3, 6, 1});
  Client two;
  two.name = "two";
  two.arrays["x"] = Tensor({1, 3}, {2, 4, 7});
  return {one, two};
}

struct Trial {
  explicit Trial(const std::string& text) : compilation(compile("test.fold", text)) {
    EXPECT_TRUE(compilation.ok());
    plan = std::make_shared<const Plan>(make_plan(compilation.program));
    for (const Client& client : data) sizes = bind_client(plan->program, client, sizes);
  }

  // Before every round the machine is saved and another goes on in its place.
  Results federated() {
    auto encoders = std::make_shared<const Encoders>(plan, sizes);
    std::vector<Engine> engines;
    for (const Client& client : data) engines.emplace_back(encoders, client, EngineOptions{});
    auto machine = std::make_unique<Machine>(plan, sizes, Settings{});
    while (machine->round() != nullptr) {
      ByteWriter out;
      machine->save(out);
      const Bytes bytes = out.take();
      ByteReader in(bytes);
      machine = std::make_unique<Machine>(plan, sizes, Settings{}, in);
      const Round& round = *machine->round();
      std::vector<MergeState> merged;
      for (const Merge& m : round.merges) merged.push_back(zero(*m.monoid, machine->fold_shape(m)));
      for (Engine& engine : engines) {
        const std::vector<MergeState> states = engine.encode(round, machine->to_send());
        for (std::size_t i = 0; i < states.size(); ++i)
          round.merges[i].monoid->merge(merged[i], states[i]);
      }
      machine->absorb(merged);
    }
    return machine->results();
  }
  Results reference() { return evaluate_reference(compilation.program, data, Settings{}); }

  std::vector<Client> data = clients();
  Compilation compilation;
  std::shared_ptr<const Plan> plan;
  SizeValues sizes;
};

const std::map<std::string, std::vector<std::string>> columns = {{"x", {"wt", "twice", "hp"}}};

TEST(Demand, EndsTheRunBeforeWhatIsWrittenAfterIt) {
  Trial run(
      "input x : [*, p]\n"
      "let gram = x' @ x\n"
      "require not dependent(gram), \"columns that are combinations of others\"\n"
      "output inverse = inv(gram)\n");
  for (const bool federated : {true, false}) {
    try {
      federated ? run.federated() : run.reference();
      ADD_FAILURE() << "the condition was not asked";
    } catch (const Unmet& unmet) {
      EXPECT_EQ(unmet.entries(), (std::vector<std::size_t>{1}));
      EXPECT_STREQ(unmet.what(), "columns that are combinations of others: 2");
      EXPECT_EQ(unmet_text(run.compilation.program, unmet.place(), unmet.entries(), columns),
                "columns that are combinations of others: twice");
    }
  }
}

// A fold that no loop waits for comes last otherwise.
TEST(Demand, IsAskedBeforeALoopThatIsWrittenAfterIt) {
  Trial run(
      "input x : [*, p]\n"
      "require sum[*](x[:, 1] < 0) > 0, \"none is negative\"\n"
      "state s = zeros(p, p)\n"
      "repeat 3 {\n"
      "  s <- inv(s + 0 * (x' @ (x + s[1])))\n"
      "}\n"
      "output s\n");
  EXPECT_THROW(run.federated(), Unmet);
}

TEST(Demand, NotesWhatShouldHold) {
  Trial run(
      "input x : [*, p]\n"
      "state s = zeros(p)\n"
      "repeat 3 {\n"
      "  s <- s + mean[*](x + s)\n"
      "  expect s < 4, \"columns that are large\"\n"
      "}\n"
      "expect records(x) > 5, \"there are few records\"\n"
      "expect 1, \"it is well\"\n"
      "output s\n");
  const Results results = run.federated();
  EXPECT_EQ(results.unmet, run.reference().unmet);
  RunReport report;
  report.results = results;
  report.columns = columns;
  EXPECT_EQ(
      warnings(report, run.compilation.program),
      (std::vector<std::string>{"columns that are large: wt, twice, hp", "there are few records"}));
}

TEST(Demand, OfALoopThatDoesNotRunIsNotAsked) {
  Trial run(
      "input x : [*, p]\n"
      "state s = 0\n"
      "repeat 0 {\n"
      "  require records(x) > 5, \"there are few records\"\n"
      "  s <- s + 1\n"
      "}\n"
      "output s\n");
  EXPECT_EQ(run.federated().outputs.at("s").item(), 0);
  EXPECT_EQ(run.reference().outputs.at("s").item(), 0);
}

TEST(Demand, IsPartOfThePlan) {
  const std::string text = "input x : [*, p]\noutput n = records(x)\n";
  const auto hash = [](const std::string& program) {
    return plan_hash(make_plan(compile("test.fold", program).program));
  };
  EXPECT_NE(hash(text), hash(text + "require records(x) > 2, \"few\"\n"));
  EXPECT_NE(hash(text + "expect records(x) > 2, \"few\"\n"),
            hash(text + "require records(x) > 2, \"few\"\n"));
}

}  // namespace
}  // namespace starfold

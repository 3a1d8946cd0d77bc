// What a program is said to show: never less than it can, and in the same words everywhere.
#include "starfold/plan/disclosure.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "starfold/federation/coordinator.h"
#include "starfold/federation/node.h"
#include "starfold/page/pages.h"
#include "starfold/plan/explain.h"

namespace starfold {
namespace {

std::shared_ptr<const CompiledProgram> program_of(const std::string& text) {
  auto program = compile_program({"test.fold", text, {}});
  EXPECT_TRUE(program->plan) << text;
  return program;
}

const std::string inputs = "input x : [*, p]\ninput y : [*]\ninput b : [p]\n";

// What the values of a program with this output show, in order.
std::string shows(const std::string& output) {
  std::string words;
  for (const auto& round : disclosures(*program_of(inputs + output)->plan)) {
    for (const Disclosure& value : round)
      words += (words.empty() ? "" : " ") + std::string(to_string(value.shows));
  }
  return words;
}

TEST(Disclosure, TotalsWeighAllRecordsAlike) {
  EXPECT_EQ(shows("output t = sum[*](x)\n"), "total");
  EXPECT_EQ(shows("output t = records(x)\n"), "total");
  EXPECT_EQ(shows("output t = sum[*](2 * x - b)\n"), "total");
  EXPECT_EQ(shows("output t = sum[*](x @ b / 3)\n"), "total");
  EXPECT_EQ(shows("output t = sum[*](concat[2](ones(1), x)[:, 2])\n"), "total");
  EXPECT_EQ(shows("output t = mean[*](x)\n"), "total total");
  EXPECT_EQ(shows("output t = var[*](x)\n"), "total");
  EXPECT_EQ(shows("output t = cov[*](x)\n"), "total");
  EXPECT_EQ(shows("output t = cov[*](x - b, 2 * y[:, new])\n"), "total");
  EXPECT_EQ(shows("output t = sum[*](stop_gradient(y) * count[2](x))\n"), "total");
  EXPECT_EQ(shows("output t = x' @ ones_like(y)\n"), "total");
}

TEST(Disclosure, TermsMayVanish) {
  EXPECT_EQ(shows("output t = x' @ x\n"), "terms");
  EXPECT_EQ(shows("output t = x' @ y\n"), "terms");
  EXPECT_EQ(shows("output t = sum[*](relu(x))\n"), "terms");
  EXPECT_EQ(shows("output t = sum[*](exp(x))\n"), "terms");
  EXPECT_EQ(shows("output t = sum[*](1 / y)\n"), "terms");
  EXPECT_EQ(shows("output t = var[*](y ^ 2)\n"), "terms");
  EXPECT_EQ(shows("output t = cov[*](x ^ 2)\n"), "terms");
  EXPECT_EQ(shows("output t = prod[*](y)\n"), "terms");
  EXPECT_EQ(shows("output g = grad(sum[*](softplus(x @ b) - y * (x @ b)), b)\n"), "terms");
}

TEST(Disclosure, StepsPickRecords) {
  for (const char* term : {"y > 0", "y == 1", "where(y, x[:, 1], 0)", "not y", "isnan(y)",
                           "sign(y)", "floor(y)", "y * (x[:, 1] < 2)", "any[2](x)", "[1, 2, 3][y]",
                           "sum[2](one_hot(y, 4))", "argmax[2](x)", "y and x[:, 1]"})
    EXPECT_EQ(shows(fmt::format("output t = sum[*]({})\n", term)), "group") << term;
  EXPECT_EQ(shows("output t = one_hot(y, 7)' @ x\n"), "group");
  EXPECT_EQ(shows("output t = cov[*](one_hot(y, 7))\n"), "group");
  EXPECT_EQ(shows("output t = var[*](where(y > 0, y, 0))\n"), "group");
  // A choice by shared values is the same for all records.
  EXPECT_EQ(shows("output t = sum[*](x * (b > 0))\n"), "total");
}

TEST(Disclosure, SingleRecordsDecide) {
  for (const char* fold : {"min", "max", "any", "all"})
    EXPECT_EQ(shows(fmt::format("output t = {}[*](y)\n", fold)), "single") << fold;
}

// A fold over clients takes one value of each: what is sent is that value, whatever it was made of.
TEST(Disclosure, AClientsOwnValueIsNotATotal) {
  EXPECT_EQ(shows("input w : [*client, p]\noutput t = sum[*](w)\n"), "client");
  EXPECT_EQ(shows("let m = each client { mean[*](y) }\noutput t = sum[*](m)\n"), "client");
  EXPECT_EQ(shows("let m = each client { max[*](y) }\noutput t = sum[*](m)\n"), "single");
  EXPECT_EQ(shows("let m = each client { sum[*](y > 2) }\noutput t = mean[*](m)\n"),
            "total client");
  EXPECT_EQ(shows("let m = each client {\n  state s = 0\n  repeat batches(3, 1) {\n"
                  "    s <- s + max[*](y)\n  }\n  s\n}\noutput t = sum[*](m)\n"),
            "single");
  // How many clients there are is the same for all.
  EXPECT_EQ(shows("let m = each client { mean[*](y) }\noutput t = count[*](m)\n"), "total");
}

// What picks records does so inside a block and in a private state, too.
TEST(Disclosure, BlocksAndPrivateStatesHideNothing) {
  EXPECT_EQ(shows("let z = each client { where(y > 2, y, 0) }\noutput t = sum[*](z)\n"), "group");
  EXPECT_EQ(shows("let z = each client { y - max[*](y) }\noutput t = sum[*](z)\n"), "single");
  EXPECT_EQ(shows("let z = each client { y - mean[*](y) }\noutput t = sum[*](z)\n"), "terms");
  EXPECT_EQ(shows("private state a : [*] = 0\nstate s = 0\nrepeat 2 {\n  a <- a + (y > 2)\n"
                  "  s <- s + sum[*](a)\n}\noutput s\n"),
            "group");
}

TEST(Disclosure, TheReasonNamesWhatPicks) {
  const auto reason = [](const std::string& text) {
    return disclosures(*program_of(inputs + text)->plan).back().front().reason;
  };
  EXPECT_EQ(reason("output t = sum[*](where(y > 2, x[:, 1], 0))\n"),
            "`y > 2` picks the records that count; a group of one shows its record");
  EXPECT_EQ(reason("state m = 0\nrepeat 9 {\n  m <- m + sum[*](y > m)\n}\noutput m\n"),
            "`y > m` picks other records in every iteration; a difference can be one record");
}

TEST(Disclosure, NoPageClaimsMoreThanIsProved) {
  for (const std::string output : {"output t = max[*](y)\n", "output t = one_hot(y, 9)' @ x\n"}) {
    const auto program = program_of(inputs + output);
    const std::string page = explain_html(*program->plan, program->compilation.sources, "t");
    for (const char* claim : {"no record left", "Records stay.", "records sent",
                              "folded from all records", "stay where they are"})
      EXPECT_EQ(page.find(claim), std::string::npos) << claim;
    EXPECT_NE(page.find("1 of 1 value can show single records"), std::string::npos);
    const std::string text = exposure_text(*program->plan, program->compilation.sources);
    EXPECT_NE(text.find("What can show single records:\n"), std::string::npos) << text;
  }
  const auto program = program_of("input x : [*, p]\noutput s = sum[*](x)\n");
  EXPECT_EQ(exposure_text(*program->plan, program->compilation.sources).find("single"),
            std::string::npos);
}

TEST(Disclosure, TheReportSetsNumbersAgainstRecords) {
  const auto program = program_of("input x : [*, p]\noutput s = max[*](x)\noutput v = var[*](x)\n");
  const RunReport report = run_local(
      program,
      {{"small", {{"x", Tensor(Shape{7, 2}, 1.0)}}}, {"large", {{"x", Tensor(Shape{8, 2}, 1.0)}}}},
      {});
  EXPECT_EQ(report.clients[0].numbers_sent, 2 + 5);
  const std::string page = report_html(report, *program);
  EXPECT_NE(page.find("small (7 from 7 records)"), std::string::npos);
  EXPECT_EQ(page.find("large (7 from 8 records)"), std::string::npos);
  EXPECT_NE(page.find("1 of 2 values can show single records."), std::string::npos);
  EXPECT_EQ(page.find("no record left"), std::string::npos);
}

// The numbers announced for a round are those of its message, in the table, in JSON and as text, also
// inside two loops.
TEST(Disclosure, AnnouncedIsSent) {
  const auto program = program_of(
      "input x : [*, p]\ninput y : [*]\nstate m = zeros(p)\nstate s = 0\n"
      "repeat 2 {\n"
      "  state k = s / 100\n"
      "  repeat 2 {\n"
      "    k <- k + sum[*](tanh(y - k)) + max[*](y * k)\n"
      "  }\n"
      "  m <- m + var[*](x * m) + logsumexp[*](x - m)\n"
      "  s <- s + sum(x' @ (x * s)) + any[*](y > s)\n"
      "}\n"
      "output m\noutput s\n");
  const Plan& plan = *program->plan;
  const auto json = exposure_json(plan, program->compilation.sources);
  const std::string text = exposure_text(plan, program->compilation.sources);
  Client client{"a", {}};
  client.arrays["x"] = Tensor(Shape{4, 3}, 0.5);
  client.arrays["y"] = Tensor(Shape{4}, 0.25);
  Coordinator coordinator(program, {}, {"a"});
  ProgramCache cache;
  Node node(client, cache);
  coordinator.absorb(0, node.handle(coordinator.request()));
  std::vector<int> seen(static_cast<std::size_t>(plan.rounds));
  while (const Round* round = coordinator.round()) {
    const auto number = static_cast<std::size_t>(round->number);
    ++seen[number];
    const Bytes answer = node.handle(coordinator.request());
    const auto message = std::get<StateMessage>(decode_message(answer));
    ASSERT_EQ(message.states.size(), round->merges.size());
    std::int64_t numbers = 0;
    for (std::size_t i = 0; i < round->merges.size(); ++i) {
      const Merge& merge = round->merges[i];
      const std::int64_t of_merge = numbers_in(*merge.monoid, message.states[i]);
      EXPECT_EQ(state_size(plan, merge)->evaluate({{"p", 3}}), of_merge);
      numbers += of_merge;
      EXPECT_EQ(json[number]["merges"][i]["numbers"], state_size(plan, merge)->to_string());
      EXPECT_NE(text.find("leaves   " + describe_fold(plan, merge.fold)), std::string::npos)
          << text;
    }
    EXPECT_EQ(message_size(plan, *round)->evaluate({{"p", 3}}), numbers);
    EXPECT_EQ(json[number]["numbers"], message_numbers(plan, *round));
    EXPECT_NE(text.find(fmt::format("loop depth {}): {} numbers", round->loop_depth,
                                    message_numbers(plan, *round))),
              std::string::npos)
        << text;
    EXPECT_EQ(coordinator.absorb(0, answer), numbers);
  }
  for (const int times : seen) EXPECT_GT(times, 0);
}

}  // namespace
}  // namespace starfold

// The rules of a policy, one by one: yes to what is just within, no to what is just beyond. What a second rule would catch as well
// is told by the rule that is meant.
#include "starfold/node/rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "starfold/federation/program.h"

namespace starfold {
namespace {

using Standing = Account::Standing;
using Reason = std::optional<Refusal>;

Reason reason(const Forbidden& forbidden) {
  return forbidden ? Reason(forbidden->reason) : std::nullopt;
}

std::shared_ptr<const CompiledProgram> compiled(const std::string& text) {
  auto program = compile_program({"test.fold", text, {}});
  EXPECT_TRUE(program->plan) << text;
  return program;
}

Account with_standing(Standing standing) {
  Account account;
  account.standing = standing;
  return account;
}

NodeSource source_with(std::vector<std::string> columns) {
  return {"patients", {}, std::move(columns)};
}

secure::Group group_of(std::size_t members) {
  secure::Group group;
  group.threshold = 0;
  group.minimum_clients = 0;
  for (std::size_t i = 0; i < members; ++i) {
    secure::Member member;
    member.name = fmt::format("n{}", i);
    member.key.fill(static_cast<unsigned char>(i + 1));
    group.members.push_back(std::move(member));
  }
  return group;
}

TEST(Rules, WhichStudiesMayRun) {
  const std::string plan(64, 'a');
  const auto asked = [&](const Policy& policy, Standing standing,
                         const Protection& protection = {}) {
    return reason(forbids_study(policy, with_standing(standing), plan, protection));
  };
  Policy policy;
  EXPECT_EQ(asked(policy, Standing::none), std::nullopt);
  EXPECT_EQ(asked(policy, Standing::denied), Refusal::denied);
  policy.programs = Policy::Programs::listed;
  EXPECT_EQ(asked(policy, Standing::approved), Refusal::programs);
  policy.plans = {std::string(64, 'b'), plan};
  EXPECT_EQ(asked(policy, Standing::none), std::nullopt);
  EXPECT_EQ(asked(policy, Standing::denied), Refusal::denied);
  policy.programs = Policy::Programs::approved;
  for (const Standing standing : {Standing::none, Standing::pending})
    EXPECT_EQ(asked(policy, standing), Refusal::pending);
  EXPECT_EQ(asked(policy, Standing::approved), std::nullopt);

  Account account;
  account.refusals = Policy().max_refusals - 1;
  EXPECT_EQ(reason(forbids_study({}, account, plan, {})), std::nullopt);
  ++account.refusals;
  EXPECT_EQ(reason(forbids_study({}, account, plan, {})), Refusal::max_refusals);
}

TEST(Rules, WhatRunsMustHave) {
  const auto asked = [](const Policy& policy, const Protection& protection) {
    return reason(forbids_study(policy, {}, std::string(64, 'a'), protection));
  };
  Policy policy;
  policy.privacy_required = true;
  privacy::Terms terms;
  EXPECT_EQ(asked(policy, {true, std::nullopt}), Refusal::privacy);
  EXPECT_EQ(asked(policy, {false, terms}), std::nullopt);
  terms.predictable = true;
  EXPECT_EQ(asked(policy, {false, terms}), Refusal::privacy);
  policy.privacy_required = false;
  policy.secure_aggregation_required = true;
  EXPECT_EQ(asked(policy, {false, terms}), Refusal::secure_aggregation);
  EXPECT_EQ(asked(policy, {true, std::nullopt}), std::nullopt);
}

TEST(Rules, Budget) {
  Policy policy;
  Account total;
  total.epsilon = 0.5;
  total.delta = 5e-6;
  EXPECT_EQ(reason(forbids_spending(policy, total, 100, 0.5)), std::nullopt);
  policy.budget = Policy::Budget{1, 1e-5};
  EXPECT_EQ(reason(forbids_spending(policy, total, 0.5, 5e-6)), std::nullopt);
  EXPECT_EQ(reason(forbids_spending(policy, total, 0.51, 0)), Refusal::budget);
  EXPECT_EQ(reason(forbids_spending(policy, total, 0, 5.1e-6)), Refusal::budget);
}

TEST(Rules, Noise) {
  privacy::Terms terms;
  terms.promise.at = privacy::At::distributed;
  const secure::Group group = group_of(5);
  const std::int64_t sure = static_cast<std::int64_t>(group.inputs()) - 1;
  terms.shares = sure;
  EXPECT_EQ(reason(forbids_noise(terms, std::nullopt)), Refusal::privacy);
  EXPECT_EQ(reason(forbids_noise(terms, group)), std::nullopt);
  for (const std::int64_t shares : {std::int64_t{0}, sure + 1}) {
    terms.shares = shares;
    EXPECT_EQ(reason(forbids_noise(terms, group)), Refusal::privacy) << shares;
  }
  terms.promise.at = privacy::At::server;
  EXPECT_EQ(reason(forbids_noise(terms, std::nullopt)), std::nullopt);
}

TEST(Rules, RecordsThatCountAsKnown) {
  privacy::Promise promise;
  NodeSource source = source_with({"x"});
  EXPECT_EQ(reason(forbids_neighbours(promise, source, Missing::drop)), std::nullopt);
  promise.neighbours = privacy::Neighbours::replace;
  EXPECT_EQ(reason(forbids_neighbours(promise, source, Missing::error)), std::nullopt);
  EXPECT_EQ(reason(forbids_neighbours(promise, source, Missing::drop)), Refusal::privacy);
  source.location.query = "select x from data where x > 1";
  EXPECT_EQ(reason(forbids_neighbours(promise, source, Missing::error)), Refusal::privacy);
}

TEST(Rules, WhoIsMaskedWith) {
  secure::Group group = group_of(5);
  const secure::Key own = group.members[0].key;
  Policy policy;
  EXPECT_EQ(reason(forbids_group(policy, group, own)), std::nullopt);
  // Five take part, but a sum could be over fewer.
  policy.minimum_clients = static_cast<std::int64_t>(group.inputs()) + 1;
  ASSERT_LE(policy.minimum_clients, 5);
  EXPECT_EQ(reason(forbids_group(policy, group, own)), Refusal::secure_aggregation);
  group.minimum_clients = static_cast<std::uint32_t>(policy.minimum_clients);
  EXPECT_EQ(reason(forbids_group(policy, group, own)), std::nullopt);
  policy.minimum_clients = 6;
  EXPECT_EQ(reason(forbids_group(policy, group, own)), Refusal::secure_aggregation);

  policy.minimum_clients = 3;
  for (std::size_t i = 1; i < 5; ++i)
    policy.peers.push_back(secure::key_text(group.members[i].key));
  EXPECT_EQ(reason(forbids_group(policy, group, own)), std::nullopt);
  policy.peers.pop_back();
  EXPECT_EQ(reason(forbids_group(policy, group, own)), Refusal::secure_aggregation);
}

TEST(Rules, Columns) {
  const auto program = compiled("input x : [*]\ninput z : [*]\noutput s = sum[*](x * z)\n");
  const auto asked = [&](std::vector<std::string> columns, const Bindings& bindings) {
    return reason(forbids_program({}, source_with(std::move(columns)), *program->plan, bindings));
  };
  Bindings by_name;
  EXPECT_EQ(asked({"x", "z"}, by_name), std::nullopt);
  EXPECT_EQ(asked({"x"}, by_name), Refusal::columns);
  EXPECT_EQ(asked({"z"}, by_name), Refusal::columns);
  Bindings bound;
  bound.columns["x"] = {{"age", nullptr}};
  bound.columns["z"] = {{"bmi", nullptr}};
  EXPECT_EQ(asked({"age", "bmi"}, bound), std::nullopt);
  EXPECT_EQ(asked({"x", "z", "age"}, bound), Refusal::columns);
  Bindings formula;
  formula.formula.text = "bmi ~ log(age)";
  EXPECT_EQ(asked({"age", "bmi"}, formula), std::nullopt);
  EXPECT_EQ(asked({"bmi", "x", "z"}, formula), Refusal::columns);

  ColumnPlan plan;
  plan.columns["x"] = {{"age", nullptr}, {"bmi", nullptr}};
  EXPECT_EQ(reason(forbids_columns(source_with({"age", "bmi"}), plan)), std::nullopt);
  EXPECT_EQ(reason(forbids_columns(source_with({"age"}), plan)), Refusal::columns);
}

TEST(Rules, MergesOfEveryRound) {
  const auto program =
      compiled("input x : [*]\nlet m = mean[*](x)\noutput o = max[*](abs(x - m))\n");
  ASSERT_EQ(program->plan->rounds, 2);
  Policy policy;
  EXPECT_EQ(reason(forbids_program(policy, source_with({"x"}), *program->plan, {})),
            Refusal::merges);
  policy.merges.emplace_back("max");
  EXPECT_EQ(reason(forbids_program(policy, source_with({"x"}), *program->plan, {})), std::nullopt);
  policy.merges = {"max"};
  EXPECT_EQ(reason(forbids_program(policy, source_with({"x"}), *program->plan, {})),
            Refusal::merges);
}

TEST(Rules, WhatClientsComputeOnTheirOwn) {
  const auto program =
      compiled("input x : [*]\nlet c = each client { mean[*](x) }\noutput s = sum[*](c)\n");
  Policy policy;
  EXPECT_EQ(reason(forbids_program(policy, source_with({"x"}), *program->plan, {})),
            Refusal::local_blocks);
  policy.local_blocks = true;
  EXPECT_EQ(reason(forbids_program(policy, source_with({"x"}), *program->plan, {})), std::nullopt);
}

// What nobody can say of how many records it rests on does not leave.
TEST(Rules, FoldsWithoutSupport) {
  const auto asked = [](int conditions) {
    std::string sum = "x";
    for (int i = 0; i < conditions; ++i) sum += fmt::format(" + where(x > {}, x, 0)", i);
    const auto program = compiled("input x : [*]\noutput s = sum[*](" + sum + ")\n");
    return reason(forbids_program({}, source_with({"x"}), *program->plan, {}));
  };
  EXPECT_EQ(asked(10), std::nullopt);
  EXPECT_EQ(asked(70), Refusal::merges);
}

TEST(Rules, RoundsAndNumbers) {
  const Policy policy;
  Account account;
  account.rounds = policy.max_rounds - 1;
  account.numbers = policy.max_numbers - 10;
  EXPECT_EQ(reason(forbids_round(policy, account, 10)), std::nullopt);
  EXPECT_EQ(reason(forbids_round(policy, account, 11)), Refusal::max_numbers);
  ++account.rounds;
  EXPECT_EQ(reason(forbids_round(policy, account, 1)), Refusal::max_rounds);
}

// What depends on records has one reason for the server.
TEST(Rules, RecordsOfEverySet) {
  const auto program =
      compiled("input x : [*a]\ninput y : [*b]\noutput o = sum[*](x)\noutput q = sum[*](y)\n");
  const Policy policy;
  const auto asked = [&](std::int64_t a, std::int64_t b) {
    return reason(forbids_records(policy, *program->plan, {}, {{"a", a}, {"b", b}}));
  };
  EXPECT_EQ(asked(10, 10), std::nullopt);
  EXPECT_EQ(asked(9, 100), Refusal::policy);
  EXPECT_EQ(asked(100, 9), Refusal::policy);
}

TEST(Rules, NumbersPerRecord) {
  const auto program =
      compiled("input x : [*, p]\noutput o = sum[*](x)\noutput q = sum[*](square(x))\n");
  ASSERT_EQ(program->plan->rounds, 1);
  const Policy policy;
  const auto asked = [&](std::int64_t records) {
    return reason(forbids_records(policy, *program->plan, {{"p", 6}}, {{"", records}}));
  };
  EXPECT_EQ(asked(12), std::nullopt);
  EXPECT_EQ(asked(11), Refusal::policy);

  Account account;
  account.numbers = 290;
  EXPECT_EQ(reason(forbids_total(policy, account, 10, {{"", 10}})), std::nullopt);
  EXPECT_EQ(reason(forbids_total(policy, account, 11, {{"", 10}})), Refusal::policy);
}

TEST(Rules, Memory) {
  const auto program = compiled("input x : [*, p]\noutput o = x' @ x\n");
  EXPECT_EQ(reason(forbids_memory(*program->plan, {{"p", 10}}, 2, 100'000'000)), std::nullopt);
  EXPECT_EQ(reason(forbids_memory(*program->plan, {{"p", 100'000}}, 2, 100'000'000)),
            Refusal::no_resources);
}

}  // namespace
}  // namespace starfold

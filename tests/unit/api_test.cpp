// Preconditions of the library, one by one: what a caller gets wrong is refused with a sentence that
// names it, by every function that takes it, and nothing runs.
#include <gtest/gtest.h>

#include "starfold/starfold.h"

namespace starfold {
namespace {

const char* const kProgram =
    "size k = 2\ninput x : [*, p]\ninput y : [*]\ninput z : [p, *]\ninput w : [p]\n"
    "input c : [] = 1\nlet part = w[1:p - 1]\noutput a = x' @ y * w + sum[*](z) * c + k\n"
    "output b = sum(part)\n";

std::shared_ptr<const CompiledProgram> program_of(const std::string& text) {
  return compile_program({"test.fold", text, {}});
}

Client client_of(const std::string& name, std::int64_t records, std::int64_t p) {
  return {name,
          {{"x", Tensor(Shape{records, p}, 1.0)},
           {"y", Tensor(Shape{records}, 1.0)},
           {"z", Tensor(Shape{p, records}, 1.0)}}};
}

Settings settings_of(std::int64_t p) {
  Settings settings;
  settings.shared["w"] = Tensor(Shape{p}, 1.0);
  return settings;
}

std::string refusal(const auto& action) {
  try {
    action();
  } catch (const RunError& error) {
    return error.what();
  }
  return "nothing was refused";
}

// What the federation and the definition say; they say the same.
std::string said(const std::vector<Client>& clients, const Settings& settings,
                 const std::string& text = kProgram) {
  const auto program = program_of(text);
  if (!program->plan) return "it does not compile";
  const std::string run = refusal([&] { run_local(program, clients, settings); });
  const std::string definition =
      refusal([&] { evaluate_reference(program->compilation.program, clients, settings); });
  return run == definition ? run : run + " / " + definition;
}

bool contains(const std::string& text, const std::vector<std::string>& parts) {
  std::size_t at = 0;
  for (const std::string& part : parts) {
    at = text.find(part, at);
    if (at == std::string::npos) return false;
  }
  return true;
}

TEST(Api, WhatFitsRuns) {
  EXPECT_EQ(said({client_of("a", 3, 2), client_of("b", 0, 2)}, settings_of(2)),
            "nothing was refused");
}

TEST(Api, AFederatedInputNeedsAClient) {
  const auto program = program_of(kProgram);
  EXPECT_NE(refusal([&] { run_local(program, {}, settings_of(2)); }), "nothing was refused");
  EXPECT_NE(refusal([&] { Coordinator(program, settings_of(2), {}); }), "nothing was refused");
}

TEST(Api, SettingsThatDoNotFit) {
  const std::vector<Client> clients = {client_of("a", 3, 2)};
  const auto with = [&](const auto& change) {
    Settings settings = settings_of(2);
    change(settings);
    return said(clients, settings);
  };
  EXPECT_TRUE(contains(with([](Settings& s) { s.shared.erase("w"); }), {"w", "no value"}));
  EXPECT_TRUE(contains(with([](Settings& s) { s.shared["v"] = Tensor(); }), {"no", "named v"}));
  EXPECT_TRUE(contains(with([](Settings& s) { s.sizes["q"] = 2; }), {"no", "named q"}));
  EXPECT_TRUE(contains(with([](Settings& s) {
                         s.shared["x"] = Tensor(Shape{3, 2});
                       }),
                       {"input x", "clients"}));
  EXPECT_TRUE(contains(with([](Settings& s) {
                         s.shared["w"] = Tensor(Shape{2, 1});
                       }),
                       {"input w", "[p]", "[2, 1]"}));
  EXPECT_TRUE(contains(with([](Settings& s) { s.shared["w"] = Tensor(); }), {"input w", "[p]"}));
  EXPECT_TRUE(
      contains(with([](Settings& s) { s.shared["c"] = Tensor(Shape{1}); }), {"input c", "[1]"}));
  for (const std::int64_t size : {0, -3}) {
    EXPECT_TRUE(contains(with([&](Settings& s) { s.sizes["k"] = size; }), {"size k", "positive"}));
  }
  EXPECT_NE(with([](Settings& s) { s.sizes["p"] = 3; }), "nothing was refused");
}

TEST(Api, ClientsThatDoNotFit) {
  const auto with = [&](const auto& change) {
    std::vector<Client> clients = {client_of("a", 3, 2), client_of("b", 3, 2),
                                   client_of("c", 1, 2)};
    change(clients[1].arrays);
    return said(clients, settings_of(2));
  };
  EXPECT_TRUE(contains(with([](Arrays& a) { a.erase("z"); }), {"client b", "input z"}));
  EXPECT_TRUE(
      contains(with([](Arrays& a) { a["x"] = Tensor(Shape{3}); }), {"client b", "input x"}));
  EXPECT_TRUE(contains(with([](Arrays& a) { a["y"] = Tensor(Shape{4}); }),
                       {"client b", "x and y", "3 and 4"}));
  EXPECT_TRUE(contains(with([](Arrays& a) {
                         a["z"] = Tensor(Shape{2, 4});
                       }),
                       {"client b", "x and z", "3 and 4"}));
  EXPECT_TRUE(contains(with([](Arrays& a) {
                         a["z"] = Tensor(Shape{3, 3});
                       }),
                       {"client b", "input z"}));
  EXPECT_TRUE(contains(with([](Arrays& a) {
                         a["x"] = Tensor(Shape{3, 4});
                         a["z"] = Tensor(Shape{4, 3});
                       }),
                       {"client b", "4", "2"}));
}

// Every axis but the record axis has at least one element, whoever fixes it and whatever it is called.
TEST(Api, SizesOfZero) {
  EXPECT_NE(said({client_of("a", 3, 0)}, settings_of(0)), "nothing was refused");
  EXPECT_NE(said({client_of("a", 3, 0)}, settings_of(1)), "nothing was refused");
  // p - 1 is a size of the program too.
  EXPECT_TRUE(contains(said({client_of("a", 3, 1)}, settings_of(1)), {"p - 1", "0", "positive"}));
  const std::string alone = "input x : [*, 2*p - 2]\noutput a = sum[*](x)\n";
  EXPECT_NE(said({{"a", {{"x", Tensor(Shape{3, 0})}}}}, {}, alone), "nothing was refused");
  EXPECT_EQ(said({{"a", {{"x", Tensor(Shape{3, 2})}}}}, {}, alone), "nothing was refused");
}

TEST(Api, ASizeThatNothingDetermines) {
  const std::string text =
      "input w : [p] = ones(p)\ninput x : [*]\noutput a = sum(w) + sum[*](x)\n";
  const std::vector<Client> clients = {{"a", {{"x", Tensor(Shape{3}, 1.0)}}}};
  EXPECT_TRUE(contains(said(clients, {}, text), {"no input determines the size p"}));
  Settings settings;
  settings.sizes["p"] = 4;
  EXPECT_EQ(said(clients, settings, text), "nothing was refused");
}

TEST(Api, AProgramWithErrorsHasNoPlan) {
  for (const char* text :
       {"output y = x\n", "input x : [*]\noutput x\n", "let = 1\n", "\xff\xfe"}) {
    const auto program = program_of(text);
    EXPECT_FALSE(program->compilation.ok()) << text;
    EXPECT_EQ(program->plan, nullptr);
    EXPECT_EQ(program->hash, "");
  }
}

TEST(Api, AProgramThatFoldsNothingHasNoRounds) {
  const auto program = program_of("input x : [*]\ninput w : [2]\noutput a = sum(w)\n");
  ASSERT_TRUE(program->plan);
  EXPECT_EQ(program->plan->rounds, 0);
  EXPECT_TRUE(factor(*program->plan).empty());
}

}  // namespace
}  // namespace starfold

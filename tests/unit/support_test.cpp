// On how many records numbers rest: what policies must stop, what they must let through.
#include "starfold/support/support.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "starfold/compile/compile.h"
#include "starfold/runtime/machine.h"
#include "tests/unit/meaning_testing.h"

namespace starfold::testing {
namespace {

constexpr double least = 5;

using Fill = std::function<double(std::int64_t)>;

// One client with 40 records, and the inputs that programs of these tests have.
class Data {
 public:
  explicit Data(std::int64_t records = 40) : records_(records) {
    set("id", [](std::int64_t i) { return static_cast<double>(i + 1); });
    set("x", [](std::int64_t i) { return 1 + 0.01 * static_cast<double>(i % 7); });
    set("y", [](std::int64_t i) { return static_cast<double>(i % 2); });
    set("g", [](std::int64_t i) { return static_cast<double>(i % 4 + 1); });
    set(
        "z", [](std::int64_t i) { return std::sin(static_cast<double>(i)); }, 3);
  }
  // Entry by entry, row after row.
  Data& set(const std::string& name, const Fill& value, std::int64_t columns = 0) {
    Tensor tensor(columns == 0 ? Shape{records_} : Shape{records_, columns});
    for (std::size_t i = 0; i < tensor.data.size(); ++i)
      tensor.data[i] = value(static_cast<std::int64_t>(i));
    client_.arrays[name] = std::move(tensor);
    return *this;
  }
  const Client& client() const { return client_; }

 private:
  std::int64_t records_;
  Client client_{"north", {}};
};

const std::string inputs =
    "input id : [*]\ninput x : [*]\ninput y : [*]\ninput g : [*]\ninput z : [*, 3]\n";

struct Found {
  std::vector<ThinCell> cells;
  std::vector<std::string> words;
};

// All that is thin in a run of the one client.
Found thin_in(const std::string& text, const Data& data, Settings settings = {},
              double needed = least) {
  Compilation compilation = compile("test.fold", inputs + text);
  for (const Diagnostic& d : compilation.diagnostics.items()) ADD_FAILURE() << d.message;
  const auto plan = std::make_shared<const Plan>(make_plan(compilation.program));
  EXPECT_EQ(unsupported(*plan), "");
  const SizeValues sizes =
      bind_client(plan->program, data.client(), bind_settings(plan->program, settings));
  Engine engine(plan, sizes, data.client(), {16, 1});
  Support support(plan, sizes, engine);
  Machine machine(plan, sizes, settings);
  Found found;
  while (machine.round() != nullptr) {
    const Round& round = *machine.round();
    const auto received = machine.to_send();
    const std::vector<MergeState> states = engine.encode(round, received);
    for (const ThinCell& cell : support.thin(round, received, states, needed, 1000)) {
      found.cells.push_back(cell);
      found.words.push_back(describe(*plan, round, sizes, compilation.sources, cell, needed));
    }
    machine.absorb(states);
  }
  return found;
}

std::size_t count_thin(const std::string& text, const Data& data = Data(), Settings settings = {}) {
  return thin_in(text, data, std::move(settings)).cells.size();
}

TEST(Support, OrdinaryStatisticsPass) {
  for (const char* text :
       {"output t = sum[*](x)\n", "output t = mean[*](z)\n", "output t = var[*](z)\n",
        "output t = cov[*](z)\n", "output t = z' @ z\n", "output t = records(x)\n",
        "output t = logsumexp[*](x)\n", "output t = norm[*](z)\n",
        "output t = one_hot(g, 4)' @ z\n", "output t = sum[*](where(y > 0, x, 0))\n",
        "output t = sum[*, 2](z)\n", "output t = sum[*](one_hot(g, 4))\n",
        "output t = one_hot(g, 4)' @ one_hot(y + 1, 2)\n",
        "output t = mean[*](where(isnan(x), 0, x))\n", "output t = prod[*](1 + 0.001 * x)\n",
        "output t = cov[*](z, z)\n", "output t = sum[*](square(z))\n"})
    EXPECT_EQ(count_thin(text), 0u) << text;
}

TEST(Support, LogisticRegressionPasses) {
  const char* text =
      "state b : [3] = zeros(3)\n"
      "repeat 4 {\n"
      "  let eta = z @ b\n"
      "  let loss = sum[*](softplus(eta) - y * eta)\n"
      "  b <- b - solve(hessian(loss, b) + eye(3), grad(loss, b))\n"
      "}\n"
      "output b\n";
  EXPECT_EQ(count_thin(text), 0u);
}

// One record, or nearly so, in a number.
TEST(Support, SingleRecordsAreStopped) {
  for (const char* text : {"output t = one_hot(id, 40)' @ x\n",
                           "output t = sum[*](one_hot(id, 40))\n",
                           "output t = sum[*](where(id == 7, x, 0))\n",
                           "output t = sum[*](where(id == 7, x, 0) + 1e-9 * x)\n",
                           "output t = sum[*]((id == 7) * x)\n",
                           "output t = sum[*](exp(-1e6 * square(id - 7)) * x)\n",
                           "output t = sum[*](exp(-1e6 * square(id - 7)))\n",
                           "output t = x @ exp(-1e6 * square(id - 7))\n",
                           "output t = sum[*](x * 2 ^ id)\n",
                           "output t = sum[*](x * 10 ^ (3 * id))\n",
                           "output t = sum[*](floor(8 * x) * 8 ^ id)\n",
                           "output t = min[*](id)\n",
                           "output t = max[*](id * x)\n",
                           "output t = max[*](where(id < 20, x * id, -1 / 0))\n",
                           "output t = prod[*](where(id == 7, x, 1))\n",
                           "output t = prod[*](id - 7)\n",
                           "output t = prod[*](where(id == 7, -1, 1))\n",
                           "output t = prod[*](where(id == 7, -x, x))\n",
                           "output t = any[*](id == 7)\n",
                           "output t = all[*](id != 7)\n",
                           "output t = norm[*](where(id == 7, x, 0))\n",
                           "output t = logsumexp[*](where(id == 7, x, -1 / 0))\n",
                           "output t = logsumexp[*](1000 * id)\n",
                           "output t = var[*](where(id == 7, 1e6, x))\n",
                           "output t = cov[*]([where(id == 7, 1e6, x), x]')\n",
                           "output t = sum[*](relu(id - 39) * x)\n"})
    EXPECT_GT(count_thin(text), 0u) << text;
}

// A total without one record, beside the total.
TEST(Support, WhatIsLeftOutIsHeldToTheSame) {
  for (const char* text : {"output t = sum[*](where(id != 7, x, 0))\n",
                           "output t = sum[*](where(id == 7, 2 * x, x))\n",
                           "output t = sum[*]((id != 7) * x)\n",
                           "output t = sum[*]((1 - (id == 7)) * x)\n",
                           "output t = sum[*](not (id == 7))\n",
                           "output t = sum[*](exp(where(id == 7, x, 0)))\n",
                           "output t = sum[*](x + (id == 7) * x)\n",
                           "output t = sum[*](x * (id > 6 or id < 6) * (id != 7))\n",
                           "output t = sum[*](x * (id != 7) * x * (abs(id - 7) > 0.5))\n",
                           "output t = sum[*]((g > 1) * (id != 7) * x)\n",
                           "output t = sum[*](((g > 1) and (id != 7)) * x)\n",
                           "output t = z' @ ((id != 7) * x)\n",
                           "output t = z' @ (where(id == 7, 0, 1)[:, new] * z)\n",
                           "output t = (z * (id != 7)[:, new])' @ (z * (id != 7)[:, new])\n",
                           "output t = norm[*](where(id == 7, 0, x))\n",
                           "output t = logsumexp[*](where(id == 7, -1 / 0, x))\n",
                           "output t = var[*](where(id == 7, 0, x))\n",
                           "output t = cov[*](where((id == 7)[:, new], 0, z))\n",
                           "output t = mean[*](where(id == 7, 0, x))\n",
                           "output t = sum[*](where(id - 7, x, 0))\n",
                           "output t = sum[*](one_hot(1 + (id == 7), 2))\n",
                           "output t = one_hot(1 + (id == 7), 2)' @ z\n",
                           "output t = sum[*, 2](where((id == 7)[:, new], 0, z))\n"})
    EXPECT_GT(count_thin(text), 0u) << text;
}

// Each of these conditions takes in and leaves out many; together they leave out one record, or count it twice.
TEST(Support, WhatConditionsLeaveOutTogether) {
  for (const char* text :
       {"output t = sum[*](((id < 7) + (id > 7)) * x)\n",
        "output t = sum[*](((id <= 7) + (id >= 7)) * x)\n",
        "output t = ((id < 7) + (id > 7)) @ z\n",
        "input w : [2] = ones(2)\noutput t = sum[*]((w[1] * (id < 7) + w[2] * (id > 7)) * x)\n",
        "output t = sum[*](where(id < 7, x, where(id > 7, x, 0)))\n",
        "output t = sum[*](exp((id < 7) + (id > 7)))\n",
        "output t = sum[*]((id < 20) * x + (id > 20) * x)\n",
        "output t = sum[*](((id < 12) + (id >= 12) * (id < 20) + (id > 20)) * x)\n",
        "output t = sum[*](sum[2](concat[2]((id < 20)[:, new], (id > 20)[:, new])) * x)\n",
        "output t = var[*](((id < 20) + (id > 20)) * x)\n",
        "output t = sum[*](sign(abs(id - 7)) * x)\n", "output t = sum[*](sign(id - 39.5) * x)\n",
        "output t = sum[*](x + sign(relu(1 - abs(id - 7))) * x)\n",
        "output t = sum[*](square(sign(id - 7)) * x)\n", "output t = z' @ sign(id - 39.5)\n",
        // Across factors, beside other conditions, with constant ones among them.
        "output t = sum[*](((id < 7) + 0.5) * ((id > 7) + 0.5) * x)\n",
        "output t = sum[*](((id < 7) + 0.5) * ((id > 7) + 0.5) * (1 + y) * (1 + (g > 2)) * x)\n",
        "output t = sum[*](exp(id < 7) * exp(id > 7) * x)\n",
        "output t = ((id < 7) + 0.5) @ (((id > 7) + 0.5)[:, new] * z)\n",
        "output t = sum[*](sign(id - 7) * sign(7 - id) * x)\n",
        "output t = sum[*](sign(id - 7) * ((id < 7) - 0.5) * x)\n",
        "output t = sum[*](((id < 12) + 0.5) * exp((id >= 12) * (id < 20) + (id > 20)) * x)\n",
        "output t = sum[*](((id < 7) + (id > 7) + (x > 0) + (x > -1) + (x > -2)) * x)\n",
        // A cell of few records with a weight of its own.
        "output t = sum[*](((id < 20) + 1) * ((id < 22) + 1) * x)\n",
        "output t = sum[*]((sign(id - 7) + 2) * x)\n"})
    EXPECT_GT(count_thin(text), 0u) << text;
}

TEST(Support, SumsOfConditionsThatPass) {
  for (const char* text : {"output t = sum[*]((2 * (g == 1) + (g == 2)) * x)\n",
                           "output t = sum[*](where(g == 1, x, where(g == 2, 2 * x, 0)))\n",
                           "output t = sum[*](((id < 15) + (id > 25)) * x)\n",
                           "output t = sum[*](((g > 1) + (y > 0)) * x)\n",
                           "output t = sum[*]((g > 1) * (id > 12) * x)\n",
                           "output t = sum[*](((g > 1) + (id > 0)) * x)\n",
                           "output t = sum[*](((g > 1) + 0.5) * ((y > 0) + 0.5) * x)\n",
                           "output t = sum[*](((g > 2) + 1) * sign(id - 20.5) * x)\n",
                           "output t = z' @ sign(y - 0.5)\n", "output t = sum[*](sign(x) * x)\n",
                           "input w : [] = 20.5\noutput t = grad(sum[*](abs(id - w) * x), w)\n"})
    EXPECT_EQ(count_thin(text), 0u) << text;
}

TEST(Support, GradientsOfLookupsAreGroups) {
  const std::string text = "input w : [40]\noutput t = grad(sum[*](w[id] * x), w)\n";
  Settings settings;
  settings.shared["w"] = Tensor({40}, std::vector<double>(40, 1.0));
  EXPECT_EQ(count_thin(text, Data(), settings), 40u);
  // The same over four groups of ten.
  const std::string groups = "input w : [4]\noutput t = grad(sum[*](w[g] * x), w)\n";
  settings.shared["w"] = Tensor({4}, std::vector<double>(4, 1.0));
  EXPECT_EQ(count_thin(groups, Data(), settings), 0u);
}

// A server may choose what a program leaves open.
TEST(Support, WeightsThatIsolateARecordAreStopped) {
  const std::string text = "input w : [2]\noutput t = sum[*](sigmoid(w[1] + w[2] * id) * x)\n";
  Settings settings;
  settings.shared["w"] = Tensor({2}, {0, 0});
  EXPECT_EQ(count_thin(text, Data(), settings), 0u);
  settings.shared["w"] = Tensor({2}, {-39.5 * 100, 100});
  EXPECT_EQ(count_thin(text, Data(), settings), 1u);
  settings.shared["w"] = Tensor({2}, {std::nan(""), 0});
  EXPECT_EQ(count_thin(text, Data(), settings), 1u);
}

TEST(Support, SmallCellsOfTables) {
  // Group 4 has two records; its complement has many.
  Data data;
  data.set("g", [](std::int64_t i) { return i < 2 ? 4.0 : static_cast<double>(i % 3 + 1); });
  const Found histogram = thin_in("output t = sum[*](one_hot(g, 4))\n", data);
  ASSERT_EQ(histogram.cells.size(), 1u);
  EXPECT_EQ(histogram.cells[0].cell, 3);
  EXPECT_FALSE(histogram.cells[0].left_out);
  EXPECT_NEAR(histogram.cells[0].effective, 2, 1e-9);
  // In a cross table also where a row without a cell is small: 17 of group 3 have y = 1, none 0.
  EXPECT_GT(count_thin("output t = one_hot(g, 4)' @ one_hot(y + 1, 2)\n", data), 0u);
  // An indicator with one positive, or one negative.
  Data one;
  one.set("y", [](std::int64_t i) { return i == 3 ? 1.0 : 0.0; });
  EXPECT_EQ(count_thin("output t = sum[*](y)\n", one), 1u);
  EXPECT_EQ(count_thin("output t = sum[*](y > 0)\n", one), 1u);
  EXPECT_EQ(count_thin("output t = sum[*](y == 0)\n", one), 1u);
  EXPECT_EQ(count_thin("output t = z' @ y\n", one), 3u);
}

TEST(Support, EffectiveNumbers) {
  const auto number = [](const std::string& term) {
    const Found found = thin_in(fmt::format("output t = sum[*]({})\n", term), Data(), {}, 1000);
    return found.cells.empty() ? 0 : found.cells[0].effective;
  };
  EXPECT_NEAR(number("0 * x + 1"), 40, 1e-9);
  EXPECT_NEAR(number("2 ^ id"), 3, 1e-9);
  EXPECT_NEAR(number("1e-200 * 2 ^ id"), 3, 1e-9);
  EXPECT_NEAR(number("1e150 * 2 ^ id"), 3, 1e-9);
  EXPECT_NEAR(number("relu(id - 39) - 2 * relu(id - 39) * (id > 100)"), 1, 1e-9);
  EXPECT_EQ(number("x - x"), 0);
  EXPECT_TRUE(std::isnan(number("x / 0")));
  EXPECT_TRUE(std::isnan(number("log(x - 2)")));
}

TEST(Support, ExtremesAndTiesOfThem) {
  EXPECT_EQ(count_thin("output t = max[*](x)\n"), 0u);  // five records have the largest
  EXPECT_EQ(count_thin("output t = min[*](y)\n"), 0u);
  EXPECT_EQ(count_thin("output t = max[*, 2](z)\n"), 1u);
  EXPECT_EQ(count_thin("output t = any[*](y)\n"), 0u);
  EXPECT_EQ(count_thin("output t = any[*](0 * y)\n"), 0u);  // nobody says so
  EXPECT_EQ(count_thin("output t = max[*](log(x - 2))\n"), 1u);
}

TEST(Support, FewRecordsAreFew) {
  EXPECT_EQ(count_thin("output t = records(x)\n", Data(4)), 1u);
  EXPECT_EQ(count_thin("output t = records(x)\n", Data(5)), 0u);
  EXPECT_EQ(count_thin("output t = var[*](z)\n", Data(3)), 7u);
  EXPECT_EQ(count_thin("output t = sum[*](x)\n", Data(0)), 0u);
  EXPECT_EQ(count_thin("output a = max[*](x)\noutput b = logsumexp[*](x)\noutput c = var[*](x)\n",
                       Data(0)),
            0u);
}

// What a condition keeps away may be anything.
TEST(Support, ValuesThatConditionsKeepAway) {
  Data data;
  data.set("x", [](std::int64_t i) {
    return i % 4 == 0 ? std::nan("") : 1.0 + 0.1 * static_cast<double>(i % 3);
  });
  EXPECT_EQ(count_thin("output t = sum[*](where(isnan(x), 0, x))\n", data), 0u);
  EXPECT_EQ(count_thin("output t = sum[*](where(isnan(x), 0, log(x)))\n", data), 0u);
  EXPECT_EQ(count_thin("output t = sum[*](where(y > 0, log(y), 0))\n"), 0u);
  EXPECT_EQ(count_thin("output t = sum[*](x)\n", data), 1u);
}

// Many records are not all looked at, unless one of them may be alone.
TEST(Support, ManyRecordsAreHeldToTheSame) {
  const Data many(20000);
  for (const char* text :
       {"output t = sum[*](x)\n", "output t = z' @ z\n", "output t = one_hot(g, 4)' @ z\n",
        "output t = var[*](z)\n", "output t = sum[*](where(y > 0, x, 0))\n",
        "output t = logsumexp[*](x)\n"})
    EXPECT_EQ(count_thin(text, many), 0u) << text;
  for (const char* text :
       {"output t = sum[*](where(id == 19999, x, 0))\n", "output t = sum[*]((id != 19999) * x)\n",
        "output t = sum[*](exp(-1e6 * square(id - 19999)) * x)\n",
        "output t = sum[*](x / (id - 20000))\n", "output t = sum[*](exp(id / 20))\n",
        "output t = sum[*](sqrt(id - 2))\n", "output t = max[*](id)\n"})
    EXPECT_GT(count_thin(text, many), 0u) << text;
}

// Conditions that the first records do not meet, columns of sizes that differ, values of which only the sums are small.
TEST(Support, ManyRecordsAreLookedAtOnceMore) {
  Data many(20000);
  const std::int64_t columns = 3;
  const double scales[columns] = {1e6, 1, 1e-6};
  many.set(
      "z", [&](std::int64_t i) { return scales[i % columns] * std::sin(static_cast<double>(i)); },
      columns);
  for (const char* text : {"output t = sum[*](where(id > 19980, x, 0))\n",
                           "output t = sum[*](where(id < 19980, x, 0))\n", "output t = z' @ z\n",
                           "output t = z' @ (z * (x - 1)[:, new])\n", "output t = z' @ (y - 0.5)\n",
                           "output t = sum[*](where(id > 19980, x - 1.03, 0))\n"})
    EXPECT_EQ(count_thin(text, many), 0u) << text;
  // In the smallest column one record is alone, in the largest one is far away from all others.
  Data alone(20000);
  alone.set(
      "z",
      [&](std::int64_t i) {
        const bool last = i / columns == 19999;
        if (i % columns == 0) return last ? 1e12 : 1.0;
        return i % columns == 1 ? 1.0 : last ? 1e-6 : 0.0;
      },
      columns);
  EXPECT_EQ(count_thin("output t = sum[*](z)\n", alone), 2u);
  EXPECT_EQ(count_thin("output t = z' @ y\n", alone), 2u);
  EXPECT_EQ(count_thin("output t = sum[*](where(id > 19996, x, 0))\n", many), 1u);
  EXPECT_EQ(count_thin("output t = sum[*](where(id <= 19996, x, 0))\n", many), 1u);
  EXPECT_EQ(count_thin("output t = sum[*](where(id > 19996, x, 1e9 * x))\n", many), 1u);
}

TEST(Support, ItIsSaidInASentence) {
  const std::vector<std::string> in = thin_in("output t = one_hot(id, 40)' @ z\n", Data()).words;
  ASSERT_FALSE(in.empty());
  EXPECT_EQ(in[0],
            "test.fold:6: `one_hot(id, 40)' @ z`: its number [1, 2] rests on effectively 1 record, "
            "fewer than 5");
  const std::vector<std::string> out =
      thin_in("output t = sum[*](where(id != 7, x, 0))\n", Data()).words;
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0],
            "test.fold:6: `sum[*](where(id != 7, x, 0))`: its value: `id != 7` leaves out "
            "effectively 1 record, fewer than 5");
}

TEST(Support, ManyConditionsAreNotChecked) {
  std::string sum = "0 * x";
  for (int i = 0; i < 70; ++i) sum += fmt::format(" + (id > {})", i);
  Compilation compilation = compile("test.fold", inputs + "output t = sum[*](" + sum + ")\n");
  ASSERT_TRUE(compilation.ok());
  EXPECT_EQ(unsupported(make_plan(compilation.program)),
            "70 conditions choose what `sum` takes in, more than 64");
}

// Few conditions in many factors have many cases, and a number that chooses is a condition like others.
TEST(Support, ManyCasesAreNotChecked) {
  const auto said = [](const std::string& sum) {
    Compilation compilation = compile("test.fold", inputs + "output t = sum[*](" + sum + ")\n");
    EXPECT_TRUE(compilation.ok());
    return unsupported(make_plan(compilation.program));
  };
  std::string factors = "x";
  for (int i = 0; i < 20; ++i) {
    factors += fmt::format(" * ({}", 1000 + i);
    for (int k = 0; k < 30; ++k) factors += fmt::format(" + (id > {})", (i + k) % 50);
    factors += ")";
  }
  EXPECT_NE(said(factors).find("more than 256"), std::string::npos) << said(factors);
  std::string numbers = "0";
  for (int i = 0; i < 70; ++i) numbers += fmt::format(" + where(id - {}.5, x, {})", i, i);
  EXPECT_NE(said(numbers).find("conditions choose what `sum` takes in, more than 64"),
            std::string::npos);
  EXPECT_EQ(said("x * ((id < 7) + (id > 9)) * ((y > 0) + (g > 2))"), "");
}

}  // namespace
}  // namespace starfold::testing

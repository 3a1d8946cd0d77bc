// Programs from the parts of a factorization (thm:one-round-realization), and programs after each other
// (cor:one-round-shared-postprocessing): what is refused, and with which words.
#include <gtest/gtest.h>

#include <stdexcept>

#include "starfold/federation/local.h"
#include "starfold/theory/factorization.h"

namespace starfold::testing {
namespace {

template <typename Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

const std::string kInputs = "input x : [*, p]\ninput y : [*]\ninput b : [p]\n";

std::string refused(std::vector<ComponentText> components, const std::string& decoder,
                    const std::string& inputs = kInputs, const std::string& output = "r") {
  return refusal([&] { realize({inputs, std::move(components), output, decoder}); });
}

TEST(Realize, AcceptsTheTwoForms) {
  EXPECT_EQ(refused({{"s", "sum", "x * b", ""}}, "s @ s / p"), "accepted");
  EXPECT_EQ(refused({{"s", "", "x'", "x"}, {"m", "max", "y", ""}}, "s @ b + m"), "accepted");
  EXPECT_EQ(refused({{"n", "count", "y", ""}}, "n + k", "size k = 3\n" + kInputs), "accepted");
  EXPECT_EQ(refused({{"s", "sum", "twice(x)", ""}}, "twice(s)",
                    "fn twice(v : [*, p]) = 2 * v\n" + kInputs)
                .substr(0, 11),
            "the decoder");
}

TEST(Realize, NeedsAComponent) {
  EXPECT_EQ(refused({}, "sum(b)"), "a factorization has at least one component");
}

TEST(Realize, EncodersAreClientLocal) {
  EXPECT_EQ(refused({{"s", "sum", "x - mean[*](x)", ""}}, "s"),
            "the encoder of s folds records: it must be client-local");
  EXPECT_EQ(refused({{"s", "", "x'", "x * (y @ y)"}}, "s"),
            "the encoder of s folds records: it must be client-local");
  EXPECT_EQ(refused({{"s", "sum", "x", ""}, {"t", "sum", "x * s", ""}}, "t"),
            "the encoder of t uses the component s");
  EXPECT_EQ(refused({{"s", "sum", "x)\noutput z = sum[*](x", ""}}, "s").substr(0, 16),
            "the encoder of s");
  EXPECT_NE(refused({{"s", "sum", "b", ""}}, "s"), "accepted");
}

TEST(Realize, ComponentsAreShared) {
  EXPECT_EQ(refused({{"s", "", "x", "b"}}, "sum[*](s)"),
            "the component s is federated: its records must be folded");
  EXPECT_EQ(refused({{"s", "", "b", "b"}}, "s"),
            "the encoder of s is shared: it must be client-local");
  EXPECT_EQ(refused({{"s", "", "x[:, new, :]", "x[:, :, new]"}}, "0"),
            "the component s is federated: its records must be folded");
}

TEST(Realize, AggregationsAreNames) {
  for (const std::string aggregation : {"sum[*](x) + sum", "abs", "nothing", "softmax",
                                        "sum[2](x) * sum", "records", "grad", "@"}) {
    EXPECT_EQ(refused({{"s", aggregation, "x", ""}}, "s"),
              "the aggregation of s must be the name of one")
        << aggregation;
  }
  EXPECT_NE(refused({{"s", "median", "x", ""}}, "s").find("cannot fold the record axis"),
            std::string::npos);
}

TEST(Realize, DecodersAreSharedOnly) {
  EXPECT_EQ(refused({{"s", "sum", "x", ""}}, "s + max[*](x)"),
            "the decoder uses the federated input x: it must be shared-only");
  EXPECT_EQ(refused({{"s", "sum", "x", ""}}, "s / records(y)"),
            "the decoder uses the federated input y: it must be shared-only");
  EXPECT_EQ(refused({{"s", "sum", "x", ""}}, "sum[*](s)").substr(0, 12), "the decoder:");
  EXPECT_EQ(refused({{"s", "sum", "x", ""}}, "s\noutput z = s").substr(0, 11), "the decoder");
  EXPECT_EQ(refused({{"s", "sum", "x", ""}}, "s +").substr(0, 11), "the decoder");
}

TEST(Realize, PartsAreWhatTheyAreCalled) {
  EXPECT_EQ(refused({{"s = 1\nlet t", "sum", "x", ""}}, "t").substr(0, 9), "the name ");
  EXPECT_NE(refused({{"s", "sum", "x", ""}}, "s", kInputs, "r = s\noutput q"), "accepted");
  EXPECT_EQ(refused({{"s", "sum", "x", ""}}, "s", kInputs + "let z = max[*](x)\n"),
            "the inputs must be declarations only");
}

// --- compose

Results run(const std::string& text) {
  const auto program = compile_program({"test.fold", text, {}});
  EXPECT_TRUE(program->compilation.ok()) << text;
  EXPECT_EQ(program->plan->rounds, 1) << text;
  const auto client = [](std::vector<double> x, std::vector<double> y) {
    const auto n = static_cast<std::int64_t>(y.size());
    return Client{"c", {{"x", Tensor({n, 2}, std::move(x))}, {"y", Tensor({n}, std::move(y))}}};
  };
  std::vector<Client> clients = {client({1, 2, 3, 4}, {5, 7}), client({5, 7}, {-3})};
  clients[1].name = "d";
  return run_local(program, clients, {}).results;
}

TEST(Compose, TakesSeveralFirstPrograms) {
  const std::string text = compose(
      {"input x : [*, p]\nlet n = records(x)\nlet total = sum[*](x)\noutput centre = total / n\n",
       "input x : [*, q]\ninput y : [*]\nlet n = 2\noutput both = n * (x' @ y) + q\n",
       "input y : [*]\nfn double(v : []) = 2 * v\noutput most = double(max[*](y))\n"},
      "input centre : [p]\ninput both : [p]\ninput most : []\ninput shift : [] = 0.5\n"
      "let n = sum(centre * both)\noutput result = n + most + shift\noutput both\n");
  const Results results = run(text);
  // Sums 9 and 13 of three records; x' @ y = (11, 17).
  const double n = 3 * (2 * 11.0 + 2) + 13.0 / 3 * (2 * 17.0 + 2);
  EXPECT_DOUBLE_EQ(results.outputs.at("result").item(), n + 14 + 0.5);
  EXPECT_EQ(results.outputs.at("both").data, (std::vector<double>{24, 36}));
  EXPECT_EQ(results.outputs.size(), 2u);
}

TEST(Compose, OutputsMayHaveTheNamesOfOthers) {
  const Results results = run(compose(
      {"input y : [*]\noutput least = min[*](y)\noutput y = max[*](y)\noutput mean = mean[*](y)\n"},
      "input least : []\ninput y : []\noutput least = least + 1\noutput y = y * 2\noutput min = "
      "y\n"));
  EXPECT_EQ(results.outputs.at("least").item(), -2);
  EXPECT_EQ(results.outputs.at("min").item(), 7);
  EXPECT_EQ(results.outputs.at("y").item(), 14);
}

TEST(Compose, RefusesWhatDoesNotFit) {
  const std::string first =
      "input x : [*, p]\ninput c : [] = 1\nlet z = 2\noutput m = c * sum[*](x)\n";
  const auto said = [&](const std::vector<std::string>& programs, const std::string& post) {
    return refusal([&] { compose(programs, post); });
  };
  EXPECT_EQ(said({first}, "input m : [q]\ninput v : [*]\noutput s = sum(m)\n"),
            "input v of the post-processing program is federated");
  EXPECT_EQ(said({first}, "input v : [*]\noutput s = sum[*](v)\n"),
            "input v of the post-processing program is federated");
  EXPECT_EQ(said({}, "output s = 1\n"), "there is no program to begin with");
  EXPECT_EQ(said({first}, "input m : [q]\nlet s = sum(m)\n"),
            "the post-processing program has no output");
  EXPECT_EQ(said({first, first}, "input m : [q]\noutput s = sum(m)\n"),
            "first program 2 gives out m, as one before it does");
  EXPECT_EQ(said({first, "input z : [*]\noutput k = sum[*](z)\n"}, "input k : []\noutput s = k\n"),
            "first program 2 defines z, as one before it does");
  EXPECT_EQ(said({first, "input c : [] = 2\noutput k = c\n"}, "input k : []\noutput s = k\n"),
            "first program 2 gives c another default than one before it");
  EXPECT_NE(said({first}, "input m : [q, q]\noutput s = sum(m)\n").find("the composed program"),
            std::string::npos);
  EXPECT_NE(said({first + "output x\n"}, "output s = 1\n").find("the first program"),
            std::string::npos);
}

// Sizes of one name in two programs are two sizes, unless a common input ties them.
TEST(Compose, KeepsSizesApart) {
  const std::string text =
      compose({"input x : [*, p]\noutput a = sum[*](x)\n"},
              "input a : [q]\ninput w : [p]\ninput v : [q]\noutput s = sum(a * v) + sum(w)\n");
  EXPECT_NE(text.find("input v : [p]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("input w : [p_]\n"), std::string::npos) << text;
  EXPECT_NE(refusal([&] {
              compose({"input x : [*, p]\noutput a = sum[*](x)\n"},
                      "input a : [q]\ninput w : [q] = ones(q)\noutput s = sum(a * w)\n");
            }).find("the default of w uses the size q, which is p in the whole"),
            std::string::npos);
}

}  // namespace
}  // namespace starfold::testing

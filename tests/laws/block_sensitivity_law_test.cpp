// The law of sensitivity where clients compute on their own: for programs with blocks and private states, no neighbour, be it a record
// or a client more, less or another, changes what a client sends by more than the program proves.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "starfold/base/error.h"
#include "starfold/privacy/sensitivity.h"
#include "starfold/runtime/engine/engine.h"
#include "starfold/runtime/machine.h"
#include "starfold/starfold.h"

namespace starfold::laws {
namespace {

using privacy::Neighbours;
using privacy::Unit;

constexpr std::int64_t width = 3;

// Records as they are, far away, and tiny.
Client random_client(std::mt19937_64& random, std::int64_t records) {
  std::normal_distribution<double> normal;
  const double scale = std::pow(10.0, static_cast<double>(random() % 7) - 2);
  Client client{"one", {{"x", Tensor(Shape{records, width})}, {"y", Tensor(Shape{records})}}};
  for (auto& [name, array] : client.arrays) {
    for (double& entry : array.data) entry = scale * normal(random);
  }
  return client;
}

// The same client with its last record taken from another, or with that one more.
Client neighbour(const Client& client, const Client& other, bool one_more) {
  Client result = client;
  for (auto& [name, array] : result.arrays) {
    const std::int64_t cell = name == "x" ? width : 1;
    if (!one_more) array.data.resize(array.data.size() - static_cast<std::size_t>(cell));
    const auto& from = other.arrays.at(name).data;
    array.data.insert(array.data.end(), from.begin(), from.begin() + cell);
    array.shape[0] = static_cast<std::int64_t>(array.data.size()) / cell;
  }
  return result;
}

struct Norm {
  double l1 = 0;
  double l2 = 0;
  double linf = 0;
};

// Of the difference of two states; of the first one where there is no second. Nothing where it is no number.
std::optional<Norm> apart(const MergeState& a, const MergeState* b) {
  Norm norm;
  for (std::size_t i = 0; i < a[0].data.size(); ++i) {
    const double x = a[0].data[i] - (b != nullptr ? (*b)[0].data[i] : 0);
    if (std::isnan(x)) return std::nullopt;
    norm.l1 += std::fabs(x);
    norm.l2 = std::hypot(norm.l2, x);
    norm.linf = std::max(norm.linf, std::fabs(x));
  }
  return norm;
}

struct Law {
  int bounded = 0;
  int unbounded = 0;
  double closest = 0;  // how near a change came to its bound

  void compare(const std::string& text, const privacy::MergeSensitivity& proven,
               const MergeState& a, const MergeState* b, const SizeValues& sizes) {
    if (proven.unbounded) {
      ++unbounded;
      return;
    }
    ++bounded;
    const std::optional<Norm> found = apart(a, b);
    if (!found) return;
    // Sums of a client's own are rounded, as the bounds of the exact mathematics are not.
    const auto most = [&](const Bound& bound) {
      return bound.evaluate(sizes).value() * (1 + 1e-12) + 1e-300;
    };
    ASSERT_LE(found->l1, most(proven.change.l1)) << text;
    ASSERT_LE(found->l2, most(proven.change.l2)) << text;
    ASSERT_LE(found->linf, most(proven.change.linf)) << text;
    if (const double bound = most(proven.change.l2); bound > 1e-200)
      closest = std::max(closest, found->l2 / bound);
  }

  // All rounds of two neighbours that are sent the same.
  void check(const std::string& text, Unit unit, Neighbours neighbours, std::mt19937_64& random) {
    ProgramOptions options;
    options.planning.additive = true;
    const auto program = compile_program({"law.fold", text, {}}, options);
    ASSERT_TRUE(program->plan) << text;
    const SizeValues sizes = {{"p", width}};
    const privacy::Known known = privacy::with_defaults(program->plan->program, {sizes, {}});
    const privacy::Sensitivities proven =
        privacy::sensitivities(*program->plan, unit, neighbours, known);
    const auto encoders = std::make_shared<const Encoders>(program->plan, sizes);
    const Client one = random_client(random, 1 + static_cast<std::int64_t>(random() % 6));
    const Client other = random_client(random, 1 + static_cast<std::int64_t>(random() % 6));
    const bool absent = unit == Unit::client && neighbours == Neighbours::add_remove;
    Engine first(encoders, one);
    Engine second(encoders, unit == Unit::client
                                ? other
                                : neighbour(one, other, neighbours == Neighbours::add_remove));
    Machine machine(program->plan, sizes, {});
    for (int seen = 0; machine.round() != nullptr && seen < 6; ++seen) {
      const Round& round = *machine.round();
      const auto received = machine.to_send();
      const std::vector<MergeState> a = first.encode(round, received);
      const std::vector<MergeState> b = second.encode(round, received);
      const auto& merges = proven.rounds[static_cast<std::size_t>(round.number)].merges;
      for (std::size_t i = 0; i < merges.size(); ++i) {
        compare(text, merges[i], a[i], absent ? nullptr : &b[i], sizes);
        if (testing::Test::HasFatalFailure()) return;
      }
      machine.absorb(a);
    }
  }

  void check_all(const std::string& text, std::mt19937_64& random) {
    for (const Unit unit : {Unit::record, Unit::client}) {
      for (const Neighbours neighbours : {Neighbours::add_remove, Neighbours::replace}) {
        for (int i = 0; i < 4; ++i) {
          check(text, unit, neighbours, random);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
};

const std::string inputs = "input x : [*, p]\ninput y : [*]\n";

TEST(Laws, SensitivityOfBlocks) {
  std::mt19937_64 random(11);
  Law law;
  for (const char* const core :
       {"sum[*](x)", "mean[*](x)", "x' @ y", "sum[*](clip(x, -1, 1))", "max[*](x) - min[*](x)"}) {
    for (const char* const bounded :
         {"clip_norm({}, 2)", "clip({}, -1, 3)", "tanh({})", "sigmoid({}) - 1/2", "{}"}) {
      for (const char* const used : {"own", "0.5 * own - 1", "own * own", "clip_norm(own, 1) + own",
                                     "concat[2](own, abs(own))"}) {
        const std::string block = fmt::format(fmt::runtime(bounded), core);
        law.check_all(
            fmt::format("{}let own = each client {{ {} }}\nlet v = {}\noutput s = sum[*](v)\n"
                        "output g = v' @ v\noutput m = mean[*](v)\n",
                        inputs, block, used),
            random);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_GT(law.bounded, 2 * law.unbounded);
  EXPECT_GT(law.unbounded, 0);
  EXPECT_GT(law.closest, 0.9);
  EXPECT_LE(law.closest, 1);
}

TEST(Laws, SensitivityOfPrivateStates) {
  std::mt19937_64 random(12);
  Law law;
  const auto check = [&](const std::string& state, const std::string& update,
                         const std::string& released) {
    law.check_all(fmt::format("{}private state own : {}\nstate t : [] = 0\nrepeat 3 {{\n  own <- "
                              "{}\n  t <- t + {}\n}}\noutput t\n",
                              inputs, state, update, released),
                  random);
  };
  for (const char* const released : {"sum[*](clip(own, 0, 1))", "sum[*](tanh(own) + 2)",
                                     "sum[*](clip(own, -2, 1) * clip(own, 0, 3))"}) {
    for (const char* const update :
         {"own + y + t", "own * y - t", "clip(own + y, 0, 1)", "each client { own + sum[*](y) }",
          "each client { y - mean[*](y) }"}) {
      check("[*] = 0", update, released);
      if (HasFatalFailure()) return;
    }
    for (const char* const update : {"own + 1 + t", "each client { own + sum[*](y) }",
                                     "each client { clip(own + sum[*](y), 0, 1) }"}) {
      check("[*client] = 0", update, released);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(law.bounded, law.unbounded);
  EXPECT_GT(law.unbounded, 0);
  EXPECT_GT(law.closest, 0.9);
  EXPECT_LE(law.closest, 1);
}

}  // namespace
}  // namespace starfold::laws

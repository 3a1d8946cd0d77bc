// Laws of differentiation on random smooth programs: derivatives are what differences say, per-record
// gradients sum to the gradient (thm:gradient-expressibility), and learning updates do not depend on
// how the records are split (cor:server-side-first-order-updates, cor:curvature-block-updates).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/laws/law.h"
#include "tests/support/derivatives.h"

namespace starfold::laws {
namespace {

using testing::differences;
using testing::expect_near;
using testing::program_of;
using testing::run_everywhere;
using testing::World;

const char* const kInputs =
    "input x : [*, p]\ninput y : [*]\ninput z : [p, *]\ninput label : [*]\ninput m : [p, p]\ninput "
    "v : [p]\n";

// Expressions in v that are smooth and of moderate size, by type.
class Smooth {
 public:
  explicit Smooth(Random& random) : random_(random) {}

  std::string scalar(int depth) {
    if (depth <= 0) return pick({"v[1]", "v[p]", "0.7"});
    switch (random_.below(10)) {
      case 0:
        return fmt::format("({} @ {})", vector(depth - 1), vector(depth - 1));
      case 1:
        return fmt::format("{}({})", pick({"sum", "mean", "logsumexp", "norm"}), vector(depth - 1));
      case 2:
        return fmt::format("{}[*]({})", pick({"mean", "logsumexp", "norm", "var"}),
                           numbers(depth - 1));
      case 3:
        return fmt::format("(({} @ {}) / (1 + records(x)))", numbers(depth - 1),
                           numbers(depth - 1));
      case 4:
        return fmt::format("log(1 + square({}))", scalar(depth - 1));
      case 5:
        return fmt::format("mean[*,2]({})", rows(depth - 1));
      case 6:
        return fmt::format("logdet(5 * eye(p) + square(0.3 * {}))", matrix(depth - 1));
      case 7:
        return fmt::format("{}({})", pick({"tanh", "sin", "sigmoid"}), scalar(depth - 1));
      case 8:
        return fmt::format("trace_of({})", matrix(depth - 1));
      default:
        return fmt::format("({} {} {})", scalar(depth - 1), pick({"+", "-", "*"}),
                           scalar(depth - 1));
    }
  }

  std::string vector(int depth) {
    if (depth <= 0) return pick({"v", "v", "m[1]"});
    switch (random_.below(10)) {
      case 0:
        return fmt::format("(({}' @ {}) / (1 + records(y)))", rows(depth - 1), numbers(depth - 1));
      case 1:
        return fmt::format("mean[*]({})", rows(depth - 1));
      case 2:
        return fmt::format("{}({})", pick({"tanh", "sin", "cos", "sigmoid", "erf"}),
                           vector(depth - 1));
      case 3:
        return fmt::format("({} @ {})", matrix(depth - 1), vector(depth - 1));
      case 4:
        return fmt::format("solve(4 * eye(p) + tanh({}), {})", matrix(depth - 1),
                           vector(depth - 1));
      case 5:
        return fmt::format("{}[1]({})", pick({"softmax", "log_softmax", "cumsum"}),
                           vector(depth - 1));
      case 6:
        return fmt::format("{}[{}]({})", pick({"sum", "mean", "logsumexp"}), 1 + random_.below(2),
                           matrix(depth - 1));
      case 7:
        return fmt::format("({} * {})", scalar(depth - 1), vector(depth - 1));
      case 8:
        return fmt::format("diag({})", matrix(depth - 1));
      default:
        return fmt::format("({} {} {})", vector(depth - 1), pick({"+", "-", "*"}),
                           vector(depth - 1));
    }
  }

  std::string matrix(int depth) {
    if (depth <= 0) return pick({"m", "outer(v, v)", "diag(v)"});
    switch (random_.below(6)) {
      case 0:
        return fmt::format("outer({}, {})", vector(depth - 1), vector(depth - 1));
      case 1:
        return fmt::format("(({}' @ {}) / (1 + records(x)))", rows(depth - 1), rows(depth - 1));
      case 2:
        return fmt::format("tanh({})", matrix(depth - 1));
      case 3:
        return fmt::format("({} @ {})", matrix(depth - 1), matrix(depth - 1));
      case 4:
        return fmt::format("({} * {})'", matrix(depth - 1), vector(depth - 1));
      default:
        return fmt::format("({} {} {})", matrix(depth - 1), pick({"+", "-", "*"}),
                           matrix(depth - 1));
    }
  }

  // One number per record.
  std::string numbers(int depth) {
    if (depth <= 0) return pick({"(x @ v)", "(v @ z)", "v[label]", "y"});
    switch (random_.below(9)) {
      case 0:
        return fmt::format("({} @ {})", rows(depth - 1), vector(depth - 1));
      case 1:
        return fmt::format("{}[2]({})", pick({"sum", "mean", "logsumexp"}), rows(depth - 1));
      case 2:
        return fmt::format("{}({})", pick({"tanh", "sin", "softplus", "sigmoid"}),
                           numbers(depth - 1));
      case 3:
        return fmt::format("({} - mean[*]({}))", numbers(depth - 1), numbers(depth - 1));
      case 4:
        return fmt::format("({} * {})", scalar(depth - 1), numbers(depth - 1));
      case 5:
        return fmt::format("{}[:, {}]", rows(depth - 1), pick({"1", "p", "2"}));
      case 6:
        return fmt::format("tanh({})[label]", vector(depth - 1));
      case 7:
        return fmt::format("({} @ {})", vector(depth - 1), columns(depth - 1));
      default:
        return fmt::format("({} {} {})", numbers(depth - 1), pick({"+", "-", "*"}),
                           numbers(depth - 1));
    }
  }

  // A row per record.
  std::string rows(int depth) {
    if (depth <= 0) return pick({"x", "(x * v)", "z'", "m[label]"});
    switch (random_.below(8)) {
      case 0:
        return fmt::format("({} @ {})", rows(depth - 1), matrix(depth - 1));
      case 1:
        return fmt::format("{}({})", pick({"tanh", "sin", "sigmoid"}), rows(depth - 1));
      case 2:
        return fmt::format("({}[:, new] * {})", numbers(depth - 1), pick({"x", "v", "z'"}));
      case 3:
        return fmt::format("{}[2]({})", pick({"softmax", "log_softmax"}), rows(depth - 1));
      case 4:
        return fmt::format("({} {} {})", rows(depth - 1), pick({"+", "-", "*"}), vector(depth - 1));
      case 5:
        return fmt::format("tanh({})'", columns(depth - 1));
      case 6:
        return fmt::format("concat[2]({}[:, 2:p], {}[1:1])", rows(depth - 1), vector(depth - 1));
      default:
        return fmt::format("({} {} {})", rows(depth - 1), pick({"+", "-", "*"}), rows(depth - 1));
    }
  }

  // A column per record: the star is last.
  std::string columns(int depth) {
    if (depth <= 0) return pick({"z", "x'", "(z * v[2])"});
    switch (random_.below(4)) {
      case 0:
        return fmt::format("({} @ {})", matrix(depth - 1), columns(depth - 1));
      case 1:
        return fmt::format("sin({})", columns(depth - 1));
      case 2:
        return fmt::format("({} * {}[:, new])", columns(depth - 1), vector(depth - 1));
      default:
        return fmt::format("({} + {})", columns(depth - 1), numbers(depth - 1));
    }
  }

 private:
  std::string pick(const std::vector<std::string>& choices) { return random_.pick(choices); }
  Random& random_;
};

// Clients of 0 to 4 records; at least two records in all.
World random_world(Random& random) {
  std::mt19937_64 numbers(random.fork());
  World w;
  const int clients = random.between(1, 4);
  for (int c = 0; c < clients; ++c) {
    const std::int64_t records = c == 0 ? random.between(2, 4) : random.below(4);
    Client client;
    client.name = fmt::format("c{}", c);
    client.arrays["x"] = testing::random_tensor({records, 3}, numbers, -1, 1);
    client.arrays["y"] = testing::random_tensor({records}, numbers, -1, 1);
    client.arrays["z"] = testing::random_tensor({3, records}, numbers, -1, 1);
    Tensor label({records});
    for (double& value : label.data) value = static_cast<double>(numbers() % 3 + 1);
    client.arrays["label"] = label;
    w.clients.push_back(std::move(client));
  }
  w.settings.shared["m"] = testing::random_tensor({3, 3}, numbers, -0.7, 0.7);
  w.settings.shared["v"] = testing::random_tensor({3}, numbers, -1, 1);
  return w;
}

template <typename Check>
void for_random_programs(std::uint64_t family, int usual, const Check& check) {
  const int programs = law_programs(usual);
  for (int i = 0; i < programs && !::testing::Test::HasFailure(); ++i) {
    Random random((family << 32U) + static_cast<std::uint64_t>(i));
    SCOPED_TRACE(fmt::format("case {}", i));
    check(random);
  }
}

// Folds of too few records, logarithms of zero and the like have no derivative to compare.
bool finite(const Tensor& tensor) {
  for (const double value : tensor.data) {
    if (!std::isfinite(value) || std::fabs(value) > 1e6) return false;
  }
  return true;
}

TEST(GradientLaw, DerivativesAreWhatDifferencesSay) {
  for_random_programs(1, 150, [](Random& random) {
    const std::string e = Smooth(random).scalar(random.between(2, 4));
    const std::string text = fmt::format(
        "{}output e = 0 * v[1] + {}\nlet g = grad({}, v) + 0 * v\noutput g\n", kInputs, e, e);
    const World w = random_world(random);
    const auto outputs = run_everywhere(text, w);
    const Tensor want = differences(program_of(text), "e", "v", w);
    if (!finite(want)) return;
    expect_near(outputs.at("g"), want, 1e-7, text);
  });
}

TEST(GradientLaw, JacobiansAreWhatDifferencesSay) {
  for_random_programs(2, 100, [](Random& random) {
    Smooth smooth(random);
    const int depth = random.between(2, 3);
    const std::string e = random.chance(50) ? smooth.vector(depth) : smooth.matrix(depth);
    const std::string text =
        fmt::format("{}output e = 0 * v + {}\noutput j = jacobian(0 * v + {}, v)\n", kInputs, e, e);
    const World w = random_world(random);
    const auto outputs = run_everywhere(text, w);
    const Tensor want = differences(program_of(text), "e", "v", w);
    if (!finite(want)) return;
    expect_near(outputs.at("j"), want, 1e-7, text);
  });
}

TEST(GradientLaw, HessiansAreWhatDifferencesOfGradientsSay) {
  for_random_programs(3, 60, [](Random& random) {
    const std::string e = Smooth(random).scalar(random.between(2, 3));
    const std::string text = fmt::format(
        "{}let e = v @ v + {}\noutput g = grad(e, v)\noutput h = hessian(e, v)\n", kInputs, e);
    const World w = random_world(random);
    const auto outputs = run_everywhere(text, w);
    const Tensor want = differences(program_of(text), "g", "v", w);
    if (!finite(want)) return;
    expect_near(outputs.at("h"), want, 1e-6, text);
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        EXPECT_NEAR(outputs.at("h").data[3 * i + j], outputs.at("h").data[3 * j + i],
                    1e-8 * (1 + std::fabs(want.data[3 * i + j])))
            << text;
      }
    }
  });
}

// Each record's own derivative, also where the value uses folds of all records.
TEST(GradientLaw, PerRecordDerivativesAreWhatDifferencesSay) {
  for_random_programs(4, 100, [](Random& random) {
    const std::string e = Smooth(random).numbers(random.between(1, 3));
    const std::string text = fmt::format(
        "{}let e = v[1] * y + {}\noutput s = sum[*](y * e)\noutput g = sum[*](y[:, new] * grad(e, "
        "v))\n",
        kInputs, e);
    const World w = random_world(random);
    const auto outputs = run_everywhere(text, w);
    const Tensor want = differences(program_of(text), "s", "v", w);
    if (!finite(want)) return;
    expect_near(outputs.at("g"), want, 1e-7, text);
  });
}

TEST(GradientLaw, GradientExpressibility) {
  for_random_programs(5, 100, [](Random& random) {
    const std::string loss = Smooth(random).numbers(random.between(1, 3));
    const std::string text = fmt::format(
        "{}let l = v[1] * y + {}\noutput whole = grad(sum[*](l), v)\noutput parts = sum[*](grad(l, "
        "v))\n",
        kInputs, loss);
    const auto outputs = run_everywhere(text, random_world(random));
    if (finite(outputs.at("whole")))
      expect_near(outputs.at("parts"), outputs.at("whole"), 1e-9, text);
  });
}

// The same records with other owners.
World dealt_again(Random& random, const World& world) {
  World all = world;
  const int clients = random.between(1, 5);
  std::vector<Client> owners(static_cast<std::size_t>(clients));
  for (int c = 0; c < clients; ++c) {
    owners[static_cast<std::size_t>(c)].name = fmt::format("d{}", c);
    owners[static_cast<std::size_t>(c)].arrays = {
        {"x", Tensor({0, 3})}, {"y", Tensor({0})}, {"z", Tensor({3, 0})}, {"label", Tensor({0})}};
  }
  const auto append = [](Tensor& to, const Tensor& from, std::size_t axis, std::int64_t record) {
    const std::int64_t records = to.shape[axis];
    Tensor longer = to;
    ++longer.shape[axis];
    longer.data.clear();
    const std::int64_t lines = axis == 0 ? 1 : to.shape[0];
    const std::int64_t cell = axis == 0 && to.rank() == 2 ? to.shape[1] : 1;
    for (std::int64_t line = 0; line < lines; ++line) {
      const auto at = to.data.begin() + line * records * cell;
      longer.data.insert(longer.data.end(), at, at + records * cell);
      const auto add = from.data.begin() + (line * from.shape[axis] + record) * cell;
      longer.data.insert(longer.data.end(), add, add + cell);
    }
    to = std::move(longer);
  };
  for (const Client& client : world.clients) {
    for (std::int64_t record = 0; record < client.arrays.at("y").count(); ++record) {
      Client& owner = owners[static_cast<std::size_t>(random.below(clients))];
      for (auto& [name, array] : owner.arrays)
        append(array, client.arrays.at(name), name == "z" ? 1 : 0, record);
    }
  }
  all.clients = std::move(owners);
  return all;
}

void expect_split_does_not_matter(Random& random, const std::string& text) {
  const World w = random_world(random);
  const auto here = run_everywhere(text, w);
  const auto there = run_everywhere(text, dealt_again(random, w));
  if (finite(here.at("beta"))) expect_near(there.at("beta"), here.at("beta"), 1e-8, text);
}

TEST(GradientLaw, FirstOrderUpdatesDoNotDependOnTheSplit) {
  for_random_programs(6, 60, [](Random& random) {
    const std::string loss = Smooth(random).numbers(random.between(1, 3));
    expect_split_does_not_matter(
        random,
        fmt::format(
            "{}fn loss(x : [*, p], y : [*], z : [p, *], label : [*], m : [p, p], v : [p]) = {}\n"
            "state beta = v\nstate speed = zeros(p)\nrepeat 4 {{\n"
            "  let g = grad(mean[*](loss(x, y, z, label, m, beta) + 0.1 * (beta @ beta)), beta)\n"
            "  speed <- 0.5 * speed + g\n  beta <- beta - 0.05 * tanh(speed)\n}}\noutput beta\n",
            kInputs, loss));
  });
}

TEST(GradientLaw, CurvatureUpdatesDoNotDependOnTheSplit) {
  for_random_programs(7, 40, [](Random& random) {
    const std::string loss = Smooth(random).numbers(random.between(1, 2));
    expect_split_does_not_matter(
        random,
        fmt::format(
            "{}fn loss(x : [*, p], y : [*], z : [p, *], label : [*], m : [p, p], v : [p]) = {}\n"
            "state beta = v\nrepeat 2 {{\n"
            "  let l = mean[*](tanh(loss(x, y, z, label, m, beta)) + beta @ beta)\n"
            "  let h = hessian(l, beta)\n"
            "  beta <- beta - solve(h @ h + 4 * eye(p), grad(l, beta))\n}}\noutput beta\n",
            kInputs, loss));
  });
}

}  // namespace
}  // namespace starfold::laws

// Folds at every magnitude a double has: against sums in extended precision, whose exponents reach
// much further, and engine against definition for random programs on such data.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "starfold/base/error.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

static_assert(std::numeric_limits<long double>::max_exponent > 4 * 1024,
              "squares of doubles must neither overflow nor underflow");

// Numbers around one magnitude, or of all magnitudes.
std::vector<double> random_records(Random& random, int count) {
  const double exponent = random.uniform(-200, 200);
  const bool mixed = random.chance(30);
  const bool same = random.chance(20);
  std::vector<double> records;
  for (int i = 0; i < count; ++i) {
    const double power = mixed ? random.uniform(-200, 200) : exponent;
    double x = random.uniform(0.5, 2) * std::pow(10.0, power);
    if (random.chance(30)) x = -x;
    if (random.chance(5)) x = 0;
    records.push_back(same && !records.empty() ? records[0] : x);
  }
  return records;
}

// The records as one axis of an array with two entries beside it: the records, and half of each.
Tensor with_star_at(const std::vector<double>& records, std::size_t axis) {
  const auto n = static_cast<std::int64_t>(records.size());
  Tensor tensor(axis == 0 ? Shape{n, 2} : Shape{2, n});
  for (std::size_t i = 0; i < records.size(); ++i) {
    tensor.data[axis == 0 ? 2 * i : i] = records[i];
    tensor.data[axis == 0 ? 2 * i + 1 : records.size() + i] = records[i] / 2;
  }
  return tensor;
}

// What was folded, as the extended sums see it.
struct Extended {
  long double sum = 0;
  long double size = 0;  // of the terms: what rounding is measured by
  long double norm = 0;
  long double var = 0;
  double n = 0;

  explicit Extended(const std::vector<double>& records) : n(static_cast<double>(records.size())) {
    for (const double x : records) {
      sum += x;
      size += std::fabs(static_cast<long double>(x));
      norm += static_cast<long double>(x) * x;
    }
    norm = std::sqrt(norm);
    for (const double x : records) var += (x - sum / n) * (x - sum / n);
    var /= n - 1;
  }
};

void expect_close(double got, long double want, long double size, const std::string& what) {
  const long double slack = 1e-12L * size + std::numeric_limits<double>::denorm_min();
  EXPECT_LE(std::fabs(got - want), slack)
      << what << " is " << got << ", not " << static_cast<double>(want);
}

// One fold in the federation, and by the definition; they are held to the same numbers.
void check_folds(const std::vector<double>& records, std::size_t axis, int clients, Random& random,
                 std::int64_t block) {
  const std::string text = fmt::format(
      "input x : [{}]\noutput s = sum[*](x)\noutput m = mean[*](x)\noutput r = norm[*](x)\n"
      "output v = var[*](x)\noutput d = std[*](x)\noutput a = max[*](abs(x))\n",
      axis == 0 ? "*, 2" : "2, *");
  Case c;
  c.program.text = {"law.fold", text, {}};
  InputSpec input;
  input.name = "x";
  input.type = Type{{Dim::of(2), Dim::of(2)}};
  input.type.dims[axis] = Dim::record();
  c.program.inputs = {input};
  Federation whole;
  whole.clients.push_back({"all", {{"x", with_star_at(records, axis)}}});
  c.federation = deal_again(random, c.program, whole, clients);
  const Compiled program = compiled(c);
  ASSERT_EQ(program.error, "");
  RunOptions options;
  options.block_records = block;
  const Outcome engine = run_engine(c, *program.program, options);
  const Outcome reference = run_reference(c, *program.program);
  ASSERT_TRUE(engine.report && reference.report) << engine.error << reference.error;
  const Extended want(records);
  bool constant = true;
  for (const double x : records) constant = constant && x == records[0];
  for (const Outcome* outcome : {&reference, &engine}) {
    SCOPED_TRACE(outcome == &engine ? "the engine" : "the definition");
    const auto& outputs = outcome->report->results.outputs;
    for (std::size_t k = 0; k < 2; ++k) {
      const long double part = k == 0 ? 1 : 0.5L;
      const auto at = [&](const char* name) { return outputs.at(name).data[k]; };
      expect_close(at("s"), part * want.sum, part * want.size, "sum");
      expect_close(at("m"), part * want.sum / want.n, part * want.size / want.n, "mean");
      expect_close(at("r"), part * want.norm, part * want.norm, "norm");
      if (constant) {
        expect_close(at("v"), 0, 1e-12L * part * part * records[0] * records[0],
                     "the variance of equal numbers");
        expect_close(at("d"), 0, part * std::fabs(records[0]), "the deviation of equal numbers");
      }
      // Beyond these the variance itself has no double, or no normal one.
      const long double var = part * part * want.var;
      if (var > 1e-290L && var < 1e300L) {
        const long double top = at("a");
        expect_close(at("v"), var, var + top * top, "var");
        expect_close(at("d"), std::sqrt(var), std::sqrt(var) + top, "std");
      }
    }
  }
}

TEST(MagnitudeLaws, FoldsAtEveryMagnitude) {
  for (int number = 0; number < law_programs(400); ++number) {
    Random random(static_cast<std::uint64_t>(number) + 77);
    const std::vector<double> records = random_records(random, random.between(2, 30));
    SCOPED_TRACE(
        fmt::format("case {}: {} records, the first {}", number, records.size(), records[0]));
    check_folds(records, static_cast<std::size_t>(random.below(2)),
                random.chance(20) ? 20 : random.between(1, 4), random,
                random.pick(std::vector<std::int64_t>{1, 3, 512}));
    if (::testing::Test::HasFailure()) return;
  }
}

// The largest numbers there are: a constant has no variance, and a norm is no larger than it must be.
TEST(MagnitudeLaws, FoldsAtTheEdges) {
  for (const double x : {1e300, 1.7e308, 1e-300, 5e-324}) {
    for (const int clients : {1, 3}) {
      for (const std::int64_t block : {1, 512}) {
        Random random(1);
        SCOPED_TRACE(fmt::format("{}, {} clients, blocks of {}", x, clients, block));
        const auto folded = [&](const std::string& e, std::size_t records) {
          Case c;
          c.program.text = {"law.fold", "input x : [*]\noutput y = " + e + "\n", {}};
          InputSpec input;
          input.name = "x";
          input.type = Type{{Dim::record()}};
          c.program.inputs = {input};
          Federation whole;
          whole.clients.push_back({"all",
                                   {{"x", Tensor({static_cast<std::int64_t>(records)},
                                                 std::vector<double>(records, x))}}});
          c.federation = deal_again(random, c.program, whole, clients);
          const Compiled program = compiled(c);
          RunOptions options;
          options.block_records = block;
          const Outcome engine = run_engine(c, *program.program, options);
          const Outcome reference = run_reference(c, *program.program);
          const double y = engine.report->results.outputs.at("y").item();
          EXPECT_TRUE(close(y, reference.report->results.outputs.at("y").item(), 1e-12)) << e;
          return y;
        };
        EXPECT_TRUE(std::isfinite(folded("var[*](x)", 3)));
        EXPECT_LE(folded("std[*](x)", 7), 1e-12 * x);
        EXPECT_EQ(folded("norm[*](x)", 1), x);
        if (x < 1e308) {
          EXPECT_LE(std::fabs(folded("norm[*](x)", 4) - 2 * x), 1e-15 * x);
        }
        EXPECT_EQ(folded("mean[*](min(x, 1e300))", 2), std::min(x, 1e300));
      }
    }
  }
}

// As near as the data determine it: how far a result moves when every datum moves by 1e-12 of itself.
Verdict as_near_as_the_data(const Case& c) {
  const Compiled program = compiled(c);
  if (!program.error.empty()) return program.error;
  const Outcome engine = run_engine(c, *program.program);
  const Outcome reference = run_reference(c, *program.program);
  if (!engine.report || !reference.report) return compare(engine, reference, rounding);
  Random random = c.choices();
  std::vector<Outcome> moved;
  for (int i = 0; i < 3; ++i) {
    Case other = c;
    const auto move = [&](Tensor& tensor) {
      for (double& x : tensor.data) x *= 1 + random.uniform(-1e-12, 1e-12);
    };
    for (Client& client : other.federation.clients) {
      for (auto& [name, tensor] : client.arrays) move(tensor);
    }
    for (auto& [name, tensor] : other.federation.settings.shared) move(tensor);
    moved.push_back(run_reference(other, *program.program));
    if (!moved.back().report) return Verdict::nothing();
  }
  for (const auto& [name, want] : reference.report->results.outputs) {
    const Tensor& got = engine.report->results.outputs.at(name);
    if (got.shape != want.shape) return "another shape";
    for (std::size_t i = 0; i < want.data.size(); ++i) {
      double spread = 0;
      bool steady = true;
      for (const Outcome& other : moved) {
        const double there = other.report->results.outputs.at(name).data[i];
        steady = steady && std::isfinite(there) == std::isfinite(want.data[i]);
        if (std::isfinite(there)) spread = std::max(spread, std::fabs(there - want.data[i]));
      }
      if (!steady) continue;
      const double a = got.data[i];
      const double b = want.data[i];
      const bool same = !std::isfinite(b)
                            ? (std::isnan(b) ? std::isnan(a) : a == b)
                            : std::fabs(a - b) <= 1e-11 * std::fabs(b) + 100 * spread + 1e-300;
      if (!same) return fmt::format("output {}, entry {}: {} instead of {}", name, i, a, b);
    }
  }
  return std::nullopt;
}

// Within a few roundings of the larger of the result and 1, also where exponentials overflow or vanish.
TEST(MagnitudeLaws, LogarithmsOfSums) {
  Random random(7);
  for (int trial = 0; trial < 200; ++trial) {
    const double magnitude = std::pow(10.0, random.uniform(-200, 200));
    std::vector<double> x(static_cast<std::size_t>(random.between(1, 20)));
    for (double& value : x) value = magnitude * random.uniform(-1, 1);
    Case c;
    c.program.text = {"law.fold", "input x : [*]\noutput y = logsumexp[*](x)\n", {}};
    InputSpec input;
    input.name = "x";
    input.type = Type{{Dim::record()}};
    c.program.inputs = {input};
    Federation whole;
    whole.clients.push_back({"all", {{"x", Tensor({static_cast<std::int64_t>(x.size())}, x)}}});
    c.federation = deal_again(random, c.program, whole, random.between(1, 4));
    const Compiled program = compiled(c);
    const Outcome engine = run_engine(c, *program.program);
    const Outcome reference = run_reference(c, *program.program);
    EXPECT_TRUE(close(engine.report->results.outputs.at("y").item(),
                      reference.report->results.outputs.at("y").item(), 1e-14))
        << magnitude;
  }
}

TEST(Laws, EngineEqualsReferenceAtEveryMagnitude) {
  GeneratorOptions options;
  options.wide = true;
  options.statements = 3;
  check_law("Laws.EngineEqualsReferenceAtEveryMagnitude", options, 600, as_near_as_the_data);
}

}  // namespace
}  // namespace starfold::laws

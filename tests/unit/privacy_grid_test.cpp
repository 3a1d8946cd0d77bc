// Whole numbers: what a record adds is held to its bounds after it was rounded, whatever was computed before, and no sum can overflow.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "starfold/ops/quantize.h"
#include "starfold/privacy/noise/grid.h"
#include "starfold/privacy/private_plan.h"
#include "starfold/runtime/engine/engine.h"
#include "starfold/runtime/kernels/kernels.h"
#include "starfold/runtime/kernels/quantize.h"
#include "starfold/secure/masked_states.h"
#include "starfold/starfold.h"

namespace starfold {
namespace {

std::shared_ptr<const CompiledProgram> program_of(const std::string& text) {
  ProgramOptions options;
  options.planning.additive = true;
  return compile_program({"test.fold", text, {}}, options);
}

// Rounding can lengthen a record: it is shortened again until its whole numbers keep both norms, and no record that does is
// touched.
TEST(PrivacyGrid, NormsHoldOfWholeNumbers) {
  std::mt19937_64 random(5);
  int shortened = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> record(1 + random() % 9);
    const double largest = std::exp2(static_cast<double>(random() % 40));
    std::uniform_real_distribution<double> entry(-largest, largest);
    double sum = 0;
    double squares = 0;
    for (double& value : record) {
      value = std::round(entry(random));
      sum += std::abs(value);
      squares += value * value;
    }
    const double l1 = sum * std::uniform_real_distribution<double>(0.4, 1.6)(random);
    const double l2 = std::sqrt(squares) * std::uniform_real_distribution<double>(0.4, 1.6)(random);
    const double factor = meaning::quantize_factor(sum, squares, l1, l2);
    const bool fits = sum <= l1 && squares <= l2 * l2;
    EXPECT_EQ(factor == 1, fits || sum == 0);
    shortened += fits ? 0 : 1;
    double kept_sum = 0;
    double kept_squares = 0;
    for (const double value : record) {
      const double kept = std::trunc(value * factor);
      kept_sum += std::abs(kept);
      kept_squares += kept * kept;
    }
    EXPECT_LE(kept_sum, l1);
    EXPECT_LE(kept_squares, l2 * l2);
  }
  EXPECT_GT(shortened, 500);
}

TEST(PrivacyGrid, VectorsOfNumbersAreQuantizedAsOne) {
  const double inf = HUGE_VAL;
  const std::vector<double> values = {0,      -0.0,   0.5,          -0.5, 1.5,    2.5,
                                      1e300,  -1e300, inf,          -inf, 5e-324, 1e-30,
                                      0x1p50, -7.4,   std::nan(""), 3,    9.49999};
  for (std::size_t n = 1; n <= values.size(); ++n) {
    alignas(64) std::array<double, 24> x{};
    alignas(64) std::array<double, 24> out{};
    alignas(64) std::array<double, 24> sums{};
    alignas(64) std::array<double, 24> squares{};
    std::copy_n(values.begin(), n, x.begin());
    kernels::quantize().column(x.data(), 3, -20.5, 0x1p21, out.data(), n);
    const std::array<const double*, 3> columns = {out.data(), out.data(), out.data()};
    kernels::quantize().norms(columns.data(), columns.size(), sums.data(), squares.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(out[i], meaning::quantize_entry(values[i], 3, -20.5, 0x1p21)) << values[i];
      EXPECT_EQ(sums[i], 3 * std::abs(out[i]));
      EXPECT_EQ(squares[i], 3 * out[i] * out[i]);
    }
  }
}

// A known mistake: clipping in floating point may overshoot, and rounding to a grid adds to a norm. What a client sends for one
// record is not longer than noise was made for, in whole numbers, for records just at the bound and beyond it.
TEST(PrivacyGrid, NormsHoldAfterRounding) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (const double delta : {0.0, 1e-6}) {
    for (const double bound : {1.0, 0.1, 1e-3, 12345.678}) {
      const auto program =
          program_of("input x : [*, 7]\ninput c : []\noutput s = sum[*](clip_norm(x, c))\n");
      privacy::Terms terms;
      terms.promise.delta = delta;
      terms.clients = 1;
      terms.inputs["c"] = Tensor::scalar(bound);
      const privacy::PrivatePlan plan(program->plan, {}, terms);
      const privacy::PrivateMerge& merge = plan.rounds()[0].merges[0];
      const Round& round = *rounds_of(*plan.encoders())[0];
      for (int i = 0; i < 200; ++i) {
        Client client{"a", {{"x", Tensor(Shape{1, 7})}}};
        double squares = 0;
        for (double& x : client.arrays.at("x").data) squares += std::pow(x = normal(random), 2);
        const double to = i % 3 == 0 ? 1 : i % 3 == 1 ? std::nextafter(1.0, 2.0) : 1e12;
        for (double& x : client.arrays.at("x").data) x *= to * bound / std::sqrt(squares);
        Engine engine(plan.encoders(), {}, client, {});
        std::map<ir::NodeId, Tensor> received;
        for (const ir::NodeId id : round.receives) received.emplace(id, Tensor::scalar(bound));
        const std::vector<MergeState> states = engine.encode(round, received);
        double l1 = 0;
        double l2 = 0;
        for (const double q : states[0][0].data) {
          EXPECT_EQ(q, std::round(q));
          l1 += std::abs(q) * merge.grid;
          l2 += q * merge.grid * q * merge.grid;
        }
        EXPECT_LE(delta == 0 ? l1 : std::sqrt(l2), merge.sensitivity) << bound;
      }
    }
  }
}

// A known mistake: overflow that only warns. Here it cannot happen: bounds, records and noise together leave room, and who has more
// records than there is room for takes no part.
TEST(PrivacyGrid, NothingCanOverflow) {
  const auto program = program_of("input y : [*]\noutput s = sum[*](clip(y, 0, 10))\n");
  privacy::Terms terms;
  terms.promise.delta = 1e-6;
  for (const std::int64_t clients : {1, 7, 1000}) {
    terms.clients = clients;
    const privacy::PrivatePlan plan(program->plan, {}, terms);
    EXPECT_LE(plan.rounds()[0].merges[0].most, privacy::most_units_in_all);
    EXPECT_LE(static_cast<double>(plan.most_records() * clients), privacy::most_records_in_all);
  }
  ProgramCache cache;
  Node node(Client{"c0", {{"y", Tensor(Shape{3}, {1, 2, 3})}}}, cache);
  RunIdentity identity;
  identity.terms.emplace();
  identity.terms->promise = terms.promise;
  identity.terms->clients = std::int64_t{1} << 29U;  // room for two records each
  Coordinator coordinator(program, {}, {"c0"}, nullptr, identity);
  coordinator.absorb(0, node.handle(coordinator.request(0)));
  EXPECT_THROW(coordinator.absorb(0, node.handle(coordinator.request(0))), RunError);
  ASSERT_TRUE(node.trouble());
  EXPECT_NE(std::string(node.trouble()->what()).find("room for 2"), std::string::npos);
}

TEST(PrivacyGrid, OnlyWholeNumbersWithRoomAreMasked) {
  const auto program = program_of("input y : [*]\noutput n = count[*](y)\n");
  const Round& round = *rounds_of(*program->plan)[0];
  const auto masked = [&](double value) {
    return secure::to_words(*program->plan, round, {{Tensor::scalar(value)}},
                            secure::Numbers::whole);
  };
  EXPECT_EQ(masked(-3)[0][0], ~std::uint64_t{2});
  EXPECT_NO_THROW(masked(0x1p53));
  for (const double wrong : {0x1p54, -0x1p60, 0.5, HUGE_VAL, std::nan("")})
    EXPECT_THROW(masked(wrong), RunError) << wrong;
}

}  // namespace
}  // namespace starfold

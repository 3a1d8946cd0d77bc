// Laws of merging: (M, merge, zero) of def:shared-state-factorization is a commutative monoid, for
// every kind of fold and on every kind of number.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "starfold/compile/compile.h"
#include "starfold/merge/comoments.h"
#include "starfold/merge/exact.h"
#include "starfold/plan/plan.h"
#include "starfold/runtime/engine/engine.h"
#include "starfold/tensor/bits.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

// A fold of x whose merge is this monoid.
std::string fold_of(const Monoid& monoid) {
  if (&monoid == &exact::rows::product_sum) return "x' @ x";
  if (monoid.plain != nullptr) return fold_of(*monoid.plain);
  if (&monoid == &monoids::count) return "records(x)";
  if (&monoid == &monoids::moments) return "var[*](x)";
  if (&monoid == &monoids::comoments) return "cov[*](x)";
  if (&monoid == &monoids::cross_comoments) return "cov[*](x, x)";
  return std::string(monoid.name) + "[*](x)";
}

// States as clients make them: the encoded folds of a few random records.
class States {
 public:
  explicit States(const Monoid& monoid) : monoid_(monoid) {
    Compilation compilation =
        compile("law.fold", "input x : [*, 2]\noutput y = " + fold_of(monoid) + "\n");
    Planning planning;
    planning.exact = monoid.plain != nullptr;
    plan_ = std::make_shared<const Plan>(make_plan(compilation.program, planning));
    for (const Dim& dim :
         plan_->program.graph[rounds_of(*plan_).at(0)->merges.at(0).fold].type().dims)
      shape_.push_back(dim.size.constant());
  }
  const Shape& shape() const { return shape_; }

  MergeState random_state(Random& random, bool special) const {
    const int records = random.pick(std::vector<int>{0, 1, 1, 2, 3, 7});
    Client client{"c", {}};
    Tensor x(Shape{records, 2});
    const double inf = std::numeric_limits<double>::infinity();
    for (double& value : x.data) {
      value = random.chance(25) ? random.between(-2, 2) : random.uniform(-2, 2);
      if (plain_row(monoid_).name == "sum" && random.chance(20)) value *= 1e6;
      if (monoid_.plain != nullptr && random.chance(20))
        value *= std::ldexp(1.0, random.between(-60, 60));
      if (special && random.chance(15)) {
        value = random.pick(
            std::vector<double>{inf, -inf, std::nan(""), 0.0, -0.0, 1e300, -1e300, 1e-300});
      }
    }
    client.arrays["x"] = x;
    Engine engine(plan_, {}, client, {3, 1});
    const Round* round = rounds_of(*plan_).at(0);
    EXPECT_EQ(round->merges.at(0).monoid, &monoid_);
    return engine.encode(*round, {}).at(0);
  }

 private:
  const Monoid& monoid_;
  std::shared_ptr<const Plan> plan_;
  Shape shape_;
};

MergeState merged(const Monoid& monoid, MergeState a, const MergeState& b) {
  monoid.merge(a, b);
  return a;
}

// Equal bits, or equal to rounding at the `scale` of what was merged.
Verdict same_state(const Monoid& monoid, const MergeState& a, const MergeState& b, bool bits,
                   double scale = 0) {
  const Tensor x = monoid.finish(a);
  Tensor y = monoid.finish(b);
  for (std::size_t i = 0; !bits && i < y.data.size(); ++i) {
    if (std::abs(x.data[i] - y.data[i]) <= 1e-12 * scale) y.data[i] = x.data[i];
  }
  if (const Verdict broken = bits ? laws::same_bits(x, y) : compare(x, y, 1e-12)) return broken;
  for (std::size_t i = 0; bits && i < a.size(); ++i) {
    // The bits of integers are no numbers: any two that differ are two.
    if (monoid.parts[i].words > 0 && !starfold::same_bits(a[i], b[i])) return "other integers";
    if (const Verdict broken = laws::same_bits(a[i], b[i])) return broken;
  }
  return std::nullopt;
}

double largest(const std::vector<MergeState>& states) {
  double most = 0;
  for (const MergeState& state : states) {
    for (const Tensor& part : state) {
      for (const double value : part.data) most = std::max(most, std::abs(value));
    }
  }
  return most;
}

void check_monoid(const Monoid& monoid, bool special) {
  const States states(monoid);
  for (int number = 0; number < law_programs(2000); ++number) {
    Random random(static_cast<std::uint64_t>(number) * 2 + (special ? 1 : 0));
    const MergeState a = states.random_state(random, special);
    const MergeState b = states.random_state(random, special);
    const MergeState c = states.random_state(random, special);
    SCOPED_TRACE(fmt::format("{}, seed {}", monoid.name, number));
    const MergeState none = zero(monoid, states.shape());
    EXPECT_EQ(same_state(monoid, merged(monoid, a, none), a, true), Verdict());
    EXPECT_EQ(same_state(monoid, merged(monoid, none, a), a, true), Verdict());
    // The order of two summands does not change how their sum is rounded.
    EXPECT_EQ(same_state(monoid, merged(monoid, a, b), merged(monoid, b, a), monoid.exact),
              Verdict());
    // A product that underflows on one way and meets an infinity on the other has no one value.
    if (!special || &monoid != &monoids::prod) {
      EXPECT_EQ(same_state(monoid, merged(monoid, merged(monoid, a, b), c),
                           merged(monoid, a, merged(monoid, b, c)), monoid.exact,
                           &monoid == &monoids::sum ? largest({a, b, c}) : 0),
                Verdict());
    }
    for (const MergeState& state : {a, merged(monoid, a, b), none}) {
      EXPECT_EQ(invalid_state(monoid, state, states.shape()), "");
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// A state of numbers that the row calls valid, also such as no records give; nullopt when none was found.
std::optional<MergeState> any_valid_state(const Monoid& monoid, const Shape& shape, Random& random,
                                          bool finite) {
  std::vector<double> pool = {0, 0, 0, 1, 1, 2, 5, 0.5, -1, -2.5, 1e10};
  if (!finite) pool.insert(pool.end(), {INFINITY, -INFINITY, std::nan("")});
  for (int attempt = 0; attempt < 50; ++attempt) {
    MergeState state = zero(monoid, shape);
    for (std::size_t i = 0; i < state.size(); ++i) {
      for (double& value : state[i].data) {
        const auto valid = monoid.parts[i].valid;
        if (monoid.parts[i].words > 0) {  // any bits are an integer
          value = std::bit_cast<double>(random.chance(50) ? random.fork() : std::uint64_t{0});
          continue;
        }
        const bool scale = valid != nullptr && !valid(5) && valid(0x1p256);
        const double drawn =
            scale ? random.pick(std::vector<double>{0, 1, 0x1p256, 0x1p-256}) : random.pick(pool);
        if (valid == nullptr || valid(drawn)) value = drawn;
      }
    }
    if (invalid_state(monoid, state, shape).empty()) return state;
  }
  return std::nullopt;
}

// def:shared-state-factorization asks for a monoid on all of M, so whatever passes for a state when it
// arrives must merge like one.
// All rows, those that round and those that do not.
std::vector<const Monoid*> every_row() {
  std::vector<const Monoid*> rows(all_monoids().begin(), all_monoids().end());
  rows.insert(rows.end(), exact::all().begin(), exact::all().end());
  return rows;
}

TEST(MonoidLaws, HoldOnAllValidStates) {
  for (const Monoid* row : every_row()) {
    const Monoid& monoid = *row;
    const Shape shape = States(monoid).shape();
    const MergeState none = zero(monoid, shape);
    int found = 0;
    for (int number = 0; number < law_programs(500); ++number) {
      Random random(static_cast<std::uint64_t>(number));
      const bool finite = number % 2 == 0;
      const auto a = any_valid_state(monoid, shape, random, finite);
      const auto b = any_valid_state(monoid, shape, random, finite);
      const auto c = any_valid_state(monoid, shape, random, finite);
      if (!a || !b || !c) continue;
      ++found;
      SCOPED_TRACE(fmt::format("{}, seed {}", monoid.name, number));
      EXPECT_EQ(same_state(monoid, merged(monoid, *a, none), *a, true), Verdict());
      EXPECT_EQ(same_state(monoid, merged(monoid, none, *a), *a, true), Verdict());
      EXPECT_EQ(invalid_state(monoid, merged(monoid, *a, *b), shape), "");
      if (!finite) continue;
      const MergeState left = merged(monoid, *a, *b);
      const MergeState right = merged(monoid, *b, *c);
      EXPECT_EQ(same_state(monoid, left, merged(monoid, *b, *a), monoid.exact, largest({left})),
                Verdict());
      EXPECT_EQ(same_state(monoid, merged(monoid, left, *c), merged(monoid, *a, right),
                           monoid.exact, largest({*a, *b, *c, left, right})),
                Verdict());
    }
    EXPECT_GT(found, law_programs(500) / 4) << monoid.name;
  }
}

TEST(MonoidLaws, AssociativeCommutativeNeutral) {
  for (const Monoid* monoid : every_row()) check_monoid(*monoid, false);
}

TEST(MonoidLaws, AssociativeCommutativeNeutralOnSpecialValues) {
  for (const Monoid* monoid : every_row()) check_monoid(*monoid, true);
}

}  // namespace
}  // namespace starfold::laws

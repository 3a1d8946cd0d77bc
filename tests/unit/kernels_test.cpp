// Every kernel against the scalar map or the plain sum it stands for, on every instruction set that
// this processor has.
#include "starfold/runtime/kernels/kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cfloat>
#include <numbers>
#include <random>

#include "starfold/ops/standard.h"
#include "tests/unit/meaning_testing.h"

namespace starfold::testing {
namespace {

// Runs an action once per instruction set.
template <typename Action>
void on_every_target(const Action& action) {
  const auto supported = hwy::SupportedTargets();
  for (auto rest = supported; rest != 0; rest &= rest - 1) {
    const auto target = rest & ~(rest - 1);
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    action();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// An aligned, padded column; the padding holds what no result may depend on.
class Column {
 public:
  explicit Column(const std::vector<double>& values, double padding = kNan)
      : size_(values.size()),
        data_(hwy::AllocateAligned<double>(kernels::padded(values.size()) + kernels::kPad)) {
    std::fill_n(data_.get(), kernels::padded(size_) + kernels::kPad, padding);
    std::copy(values.begin(), values.end(), data_.get());
  }
  double* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  double operator[](std::size_t i) const { return data_[i]; }

 private:
  std::size_t size_;
  hwy::AlignedFreeUniquePtr<double[]> data_;
};

// Numbers of all sizes and both signs, and those where maps change their form.
std::vector<double> grid() {
  std::vector<double> values = {0.0, DBL_TRUE_MIN, DBL_MIN, DBL_EPSILON, DBL_MAX, kInf, kNan};
  for (int exponent = -1070; exponent < 1024; exponent += 7) {
    for (const double mantissa : {1.0, 1.3, 1.999})
      values.push_back(std::ldexp(mantissa, exponent));
  }
  for (int i = 0; i < 4000; ++i) values.push_back(i * 0.25 + 1e-3 * (i % 5));
  for (int i = 1; i < 600; ++i) values.push_back(i * std::numbers::pi / 4);
  for (const double edge : {0.5, 1.0, 1.5, 2.5, 18.7, 36.7, 699.9, 700.0, 700.1, 708.4, 709.7,
                            709.8, 745.1, 746.0, 1e3, 1e4, 1e5, 4503599627370495.5}) {
    for (const double value : {edge, std::nextafter(edge, 0), std::nextafter(edge, kInf)})
      values.push_back(value);
  }
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return values;
}

// Special values must be the same, signs of zero included; the others may differ by some ulp.
void expect_ulp(double got, double want, double ulps, double at) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << "at " << at << ": " << got;
  } else if (std::isinf(want) || want == 0) {
    EXPECT_TRUE(got == want && std::signbit(got) == std::signbit(want))
        << "at " << at << ": " << got << " for " << want;
  } else {
    const double ulp = std::fabs(want) - std::nextafter(std::fabs(want), 0);
    EXPECT_LE(std::fabs(got - want), ulps * ulp) << "at " << at << ": " << got << " for " << want;
  }
}

TEST(Kernels, UnaryMaps) {
  const Column x(grid());
  on_every_target([&] {
    for (const Op& op : unary_ops()) {
      SCOPED_TRACE(op.name);
      static const std::map<std::string, double> ulps = {
          {"exp", 1}, {"expm1", 4}, {"log", 1},     {"log1p", 3},   {"sin", 2},
          {"cos", 2}, {"tanh", 4},  {"sigmoid", 3}, {"softplus", 3}};
      const auto found = ulps.find(op.name);
      Column out(std::vector<double>(x.size()));
      kernels::unary(op.name)(op.map1, x.data(), out.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        expect_ulp(out[i], op.map1(x[i]), found == ulps.end() ? 0 : found->second, x[i]);
        if (HasFailure()) return;
      }
      Column same(grid());
      kernels::unary(op.name)(op.map1, same.data(), same.data(), same.size());
      for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_TRUE(same[i] == out[i] || (std::isnan(same[i]) && std::isnan(out[i])));
    }
  });
}

// Many numbers where a map is a polynomial chosen by a table: all sizes, evenly over its range, and
// around the edges of the tables' parts.
std::vector<double> sweep(double low, double high) {
  std::vector<double> values;
  const auto add = [&](double value) {
    if (value >= low && value <= high) values.push_back(value);
  };
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> unit(0, 1);
  constexpr int kEven = 400000;
  for (int i = 0; i < kEven; ++i) {
    add(low + (high - low) * (i + unit(random)) / kEven);
    add(-4 + 8 * (i + unit(random)) / kEven);
  }
  for (int i = 0; i < 200000; ++i) {
    const double size = std::ldexp(1 + unit(random), static_cast<int>(i % 1033) - 1022);
    add(size);
    add(-size);
    add(1 / size);
    add(1 + (unit(random) - 0.5) / 8);
  }
  // Exponentials change between multiples of ln(2)/16, logarithms between sixteenths of 2^k.
  for (int i = -16000; i <= 16000; ++i) {
    const double edge = (i + 0.5) * (std::numbers::ln2 / 16);
    for (const double value : {edge, edge / 2, i * (std::numbers::ln2 / 16)}) {
      for (const double near : {1 - 1e-15, 1 - DBL_EPSILON, 1.0, 1 + DBL_EPSILON, 1 + 1e-15})
        add(value * near);
    }
  }
  for (int exponent = -60; exponent <= 60; ++exponent) {
    for (int i = 0; i < 48; ++i) {
      const double edge = std::ldexp(1 + i / 48.0, exponent);
      for (const double value : {edge, edge - 1, 1 - edge}) {
        add(value);
        add(std::nextafter(value, -kInf));
        add(std::nextafter(value, kInf));
      }
    }
  }
  return values;
}

TEST(Kernels, UnaryMapsDensely) {
  struct Range {
    const char* op;
    double low;
    double high;
    double ulps;
  };
  const std::vector<Range> ranges = {
      {"exp", -700, 700, 1},    {"expm1", -700, 700, 4}, {"log", 0, DBL_MAX, 2},
      {"log1p", -1, 1e308, 3},  {"tanh", -25, 25, 4},    {"sigmoid", -40, 40, 3},
      {"softplus", -40, 40, 3},
  };
  for (const Range& range : ranges) {
    SCOPED_TRACE(range.op);
    const Column x(sweep(range.low, range.high));
    ASSERT_GT(x.size(), 300000);
    const std::vector<Op> ops = unary_ops();
    const auto op =
        std::find_if(ops.begin(), ops.end(), [&](const Op& each) { return each.name == range.op; });
    ASSERT_NE(op, ops.end());
    std::vector<double> want(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) want[i] = op->map1(x[i]);
    on_every_target([&] {
      Column out(std::vector<double>(x.size()));
      kernels::unary(range.op)(op->map1, x.data(), out.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        expect_ulp(out[i], want[i], range.ulps, x[i]);
        if (HasFailure()) return;
      }
    });
  }
}

TEST(Kernels, BinaryMaps) {
  const std::vector<double> values = {0.0,    -0.0,  1.0,    -1.0,    2.0,  3.0,   -3.5, 0.3,
                                      1e-310, 1e154, -1e200, DBL_MAX, kInf, -kInf, kNan, 7.25};
  const Column x(values);
  on_every_target([&] {
    for (const Op& op : binary_ops()) {
      SCOPED_TRACE(op.name);
      const kernels::Binary kernel = kernels::binary(op.name);
      const double ulps = op.name == "^" ? 1 : 0;
      for (const double number : values) {
        const Column y(std::vector<double>(x.size(), number));
        Column out(std::vector<double>(x.size()));
        kernel.columns(op.map2, x.data(), y.data(), out.data(), x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
          expect_ulp(out[i], op.map2(x[i], number), ulps, x[i]);
        kernel.number_right(op.map2, x.data(), number, out.data(), x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
          expect_ulp(out[i], op.map2(x[i], number), ulps, x[i]);
        kernel.number_left(op.map2, number, x.data(), out.data(), x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
          expect_ulp(out[i], op.map2(number, x[i]), ulps, x[i]);
      }
    }
  });
}

TEST(Kernels, TernaryMaps) {
  const std::vector<double> values = {0.0, -0.0, 1.0, -1.0, 2.5, kInf, -kInf, kNan};
  std::vector<double> a;
  std::vector<double> b;
  std::vector<double> c;
  for (const double i : values) {
    for (const double j : values) {
      for (const double k : values) {
        a.push_back(i);
        b.push_back(j);
        c.push_back(k);
      }
    }
  }
  const std::vector<Op> ops = client_local_ops();
  on_every_target([&] {
    for (const char* name : {"where", "clip"}) {
      SCOPED_TRACE(name);
      const Tensor want = apply1(row(ops, name).meaning, {vec(a), vec(b), vec(c)});
      Column out(std::vector<double>(a.size()));
      kernels::ternary(name)(Column(a).data(), Column(b).data(), Column(c).data(), out.data(),
                             a.size());
      for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_TRUE(out[i] == want.data[i] || (std::isnan(out[i]) && std::isnan(want.data[i])))
            << a[i] << " " << b[i] << " " << c[i];
      }
    }
  });
  EXPECT_EQ(kernels::ternary("outer"), nullptr);
}

std::vector<double> random_values(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0.5, 2);
  std::vector<double> values(n);
  for (double& value : values) value = normal(random);
  return values;
}

TEST(Kernels, Folds) {
  on_every_target([&] {
    const kernels::Folds& folds = kernels::folds();
    for (const std::size_t n :
         {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 511, 512}) {
      SCOPED_TRACE(n);
      const std::vector<double> values = random_values(n, n);
      const Column x(values);
      const Column y(random_values(n, n + 1));
      EXPECT_NEAR(folds.sum(x.data(), n), meaning::fold_sum(values), 1e-12);
      EXPECT_TRUE(close(folds.prod(x.data(), n), meaning::fold_prod(values), 1e-12));
      EXPECT_EQ(folds.min(x.data(), n), meaning::fold_min(values));
      EXPECT_EQ(folds.max(x.data(), n), meaning::fold_max(values));
      EXPECT_EQ(folds.any(x.data(), n), meaning::fold_any(values) != 0);
      EXPECT_EQ(folds.all(x.data(), n), meaning::fold_all(values) != 0);
      double first = 0;
      double second = 0;
      double exponentials = 0;
      double products = 0;
      for (std::size_t i = 0; i < n; ++i) {
        first += x[i] - 0.25;
        second += (x[i] - 0.25) * (x[i] - 0.25);
        exponentials += std::exp(x[i] - 9);
        products += x[i] * y[i];
      }
      double got_first = 0;
      double got_second = 0;
      folds.deviations(x.data(), 0.25, n, &got_first, &got_second);
      EXPECT_NEAR(got_first, first, 1e-11);
      EXPECT_NEAR(got_second, second, 1e-11);
      EXPECT_NEAR(folds.sum_exp(x.data(), 9, n), exponentials, 1e-14);
      EXPECT_NEAR(folds.dot(x.data(), y.data(), n), products, 1e-11);
      for (std::size_t i = 0; i < n; i += 5) {
        std::vector<double> holed = values;
        holed[i] = kNan;
        EXPECT_TRUE(std::isnan(folds.min(Column(holed).data(), n)));
        EXPECT_TRUE(std::isnan(folds.max(Column(holed).data(), n)));
        EXPECT_TRUE(std::isnan(folds.sum(Column(holed).data(), n)));
        holed.assign(n, 0.0);
        EXPECT_FALSE(folds.any(Column(holed).data(), n));
        holed[i] = 3;
        EXPECT_TRUE(folds.any(Column(holed).data(), n));
        EXPECT_EQ(folds.all(Column(holed).data(), n), n == 1);
      }
    }
    const Column far({-kInf, -2000.0, -710.0, -740.0, 0.0, -1.0});
    EXPECT_NEAR(folds.sum_exp(far.data(), 0, far.size()), 1 + std::exp(-1.0), 1e-15);
  });
}

TEST(Kernels, Extremes) {
  on_every_target([&] {
    const double table[][3] = {{1, 2, 3},         {3, 2, 1},       {2, 3, 3},
                               {kNan, 1, 2},      {1, kNan, 5},    {1, 2, kNan},
                               {-0.0, 0.0, -0.0}, {kInf, kInf, 1}, {-kInf, 0, kNan}};
    const double largest[] = {3, 1, 2, 1, 2, 3, 1, 1, 3};
    const double smallest[] = {1, 3, 1, 1, 2, 3, 1, 3, 3};
    std::vector<Column> columns;
    std::vector<const double*> pointers;
    for (std::size_t k = 0; k < 3; ++k) {
      std::vector<double> values;
      for (const auto& row : table) values.push_back(row[k]);
      columns.emplace_back(values);
      pointers.push_back(columns.back().data());
    }
    Column out(std::vector<double>(9));
    kernels::extremes().largest(pointers.data(), 3, out.data(), 9);
    for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(out[i], largest[i]) << i;
    kernels::extremes().smallest(pointers.data(), 3, out.data(), 9);
    for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(out[i], smallest[i]) << i;
  });
}

TEST(Kernels, Products) {
  on_every_target([&] {
    const kernels::Products& products = kernels::products();
    for (const std::size_t n : {1, 7, 8, 37, 512}) {
      for (const std::size_t count : {1, 2, 3, 4, 5, 8, 11, 16}) {
        SCOPED_TRACE(fmt::format("{} columns of {}", count, n));
        std::vector<Column> a;
        std::vector<Column> b;
        std::vector<const double*> pa;
        std::vector<const double*> pb;
        for (std::size_t k = 0; k < count; ++k) {
          a.emplace_back(random_values(n, k));
          b.emplace_back(random_values(n, 100 + k));
          pa.push_back(a.back().data());
          pb.push_back(b.back().data());
        }
        for (std::size_t outputs = 1; outputs <= 4; ++outputs) {
          const std::vector<double> weights = random_values(4 * count, 9);
          std::vector<const double*> w;
          std::vector<Column> out;
          std::vector<double*> po;
          for (std::size_t j = 0; j < outputs; ++j) {
            w.push_back(weights.data() + j);
            out.emplace_back(std::vector<double>(n));
            po.push_back(out.back().data());
          }
          products.combine(pa.data(), count, w.data(), 4, po.data(), outputs, n);
          for (std::size_t j = 0; j < outputs; ++j) {
            for (std::size_t i = 0; i < n; ++i) {
              double want = 0;
              for (std::size_t k = 0; k < count; ++k) want += weights[4 * k + j] * a[k][i];
              ASSERT_NEAR(out[j][i], want, 1e-12);
            }
          }
          products.distances(pa.data(), count, w.data(), 4, po.data(), outputs, n);
          for (std::size_t j = 0; j < outputs; ++j) {
            for (std::size_t i = 0; i < n; ++i) {
              double want = 0;
              for (std::size_t k = 0; k < count; ++k) {
                const double difference = a[k][i] - weights[4 * k + j];
                want += difference * difference;
              }
              ASSERT_NEAR(out[j][i], want, 1e-12);
            }
          }
        }
        Column pairs(std::vector<double>(n, 0.0));
        products.pair_sum(pa.data(), pb.data(), count, pairs.data(), n);
        for (std::size_t i = 0; i < n; ++i) {
          double want = 0;
          for (std::size_t k = 0; k < count; ++k) want += a[k][i] * b[k][i];
          ASSERT_NEAR(pairs[i], want, 1e-12);
        }
        for (const std::size_t others : {std::size_t{1}, std::size_t{3}, count}) {
          if (others > count) continue;
          for (const bool upper : {false, true}) {
            if (upper && others != count) continue;
            std::vector<double> gram(count * others, 1.0);
            products.gram(pa.data(), count, pb.data(), others, upper, gram.data(), n, {});
            for (std::size_t i = 0; i < count; ++i) {
              for (std::size_t j = upper ? i : 0; j < others; ++j) {
                double want = 1;
                for (std::size_t r = 0; r < n; ++r) want += a[i][r] * b[j][r];
                ASSERT_NEAR(gram[i * others + j], want, 1e-10);
              }
            }
          }
        }
      }
    }
  });
}

// Columns with what no result may depend on behind them.
struct ManyColumns {
  ManyColumns(std::size_t count, std::size_t n, std::size_t seed) {
    for (std::size_t k = 0; k < count; ++k) {
      columns.emplace_back(random_values(n, seed + k));
      pointers.push_back(columns.back().data());
    }
  }
  std::vector<Column> columns;
  std::vector<const double*> pointers;
};

// Sums over few records, in their order; and combinations of many columns of them.
TEST(Kernels, ProductsOfFewRecords) {
  on_every_target([&] {
    for (const std::size_t n : {1, 5, 8, 24, 31, 32, 64}) {
      for (const std::size_t rows : {1, 2, 5, 6, 7, 13}) {
        for (const std::size_t others : {1, 4, 8, 10, 17, 32, 43}) {
          SCOPED_TRACE(fmt::format("{} and {} columns of {}", rows, others, n));
          const ManyColumns a(rows, n, 1);
          const ManyColumns b(others, n, 100);
          std::vector<double> replaced(rows * others, kNan);
          std::vector<double> added(rows * others, 1.0);
          const kernels::Products& products = kernels::products();
          products.gram_few(a.pointers.data(), rows, b.pointers.data(), others, replaced.data(), n,
                            false);
          products.gram_few(a.pointers.data(), rows, b.pointers.data(), others, added.data(), n,
                            true);
          for (std::size_t c = 0; c < rows * others; ++c) {
            double want = 0;
            for (std::size_t r = 0; r < n; ++r)
              want += a.columns[c / others][r] * b.columns[c % others][r];
            ASSERT_NEAR(replaced[c], want, 1e-12);
            ASSERT_NEAR(added[c], 1 + want, 1e-12);
          }
        }
      }
    }
  });
}

// Sums that vanish are 0 whatever they vanish from: what begins with zeros never is -0.
TEST(Kernels, ProductsOfFewRecordsThatVanish) {
  on_every_target([&] {
    const Column tiny({1e-200, 1e-200});
    const Column below({-1e-200, -1e-200});
    const double* const left[] = {tiny.data()};
    const std::vector<const double*> right(9, below.data());
    std::vector<double> out(9, kNan);
    kernels::products().gram_few(left, 1, right.data(), 9, out.data(), 2, false);
    for (const double sum : out) EXPECT_TRUE(sum == 0 && !std::signbit(sum));
  });
}

// Columns that follow each other in memory, as those of a block do: passes over many of them ask for what comes next, where nothing need be. The
// same combinations and sums, bit by bit, as of columns that lie apart.
TEST(Kernels, ProductsOfColumnsInARow) {
  on_every_target([&] {
    for (const std::size_t n : {8, 257, 300, 511, 512}) {
      for (const std::size_t count : {16, 17, 50}) {
        SCOPED_TRACE(fmt::format("{} columns of {}", count, n));
        const ManyColumns apart(count, n, 1);
        const std::size_t stride = kernels::padded(n);
        const Column row(std::vector<double>(count * stride, kNan));
        std::vector<const double*> in_a_row;
        for (std::size_t k = 0; k < count; ++k) {
          in_a_row.push_back(row.data() + k * stride);
          std::copy_n(apart.columns[k].data(), n, row.data() + k * stride);
        }
        const std::vector<double> weights = random_values(4 * count, 9);
        const std::vector<const double*> w = {weights.data(), weights.data() + 1,
                                              weights.data() + 2, weights.data() + 3};
        for (const bool portable : {false, true}) {
          for (std::size_t outputs = 1; outputs <= 4; ++outputs) {
            const ManyColumns one(outputs, n, 300);
            const ManyColumns other(outputs, n, 400);
            const auto combine = [&](const std::vector<const double*>& from,
                                     const ManyColumns& to) {
              std::vector<double*> out;
              for (const Column& column : to.columns) out.push_back(column.data());
              kernels::products(portable).combine(from.data(), count, w.data(), 4, out.data(),
                                                  outputs, n);
            };
            combine(apart.pointers, one);
            combine(in_a_row, other);
            for (std::size_t j = 0; j < outputs; ++j) {
              for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(one.columns[j][i], other.columns[j][i]);
            }
          }
        }
        const Column y(random_values(n, 77));
        const double* const right[] = {y.data()};
        std::vector<double> one(count, 1.0);
        std::vector<double> other(count, 1.0);
        kernels::products().gram(apart.pointers.data(), count, right, 1, false, one.data(), n, {});
        kernels::products().gram(in_a_row.data(), count, right, 1, false, other.data(), n, {});
        EXPECT_EQ(one, other);
        for (std::size_t k = 0; k < count; ++k) {
          double want = 1;
          for (std::size_t i = 0; i < n; ++i) want += apart.columns[k][i] * y[i];
          ASSERT_NEAR(one[k], want, 1e-10);
        }
      }
    }
  });
}

// Few records go another way through many columns, to the same bits.
TEST(Kernels, CombinationsOfFewRecordsAreThoseOfMany) {
  on_every_target([&] {
    for (const bool portable : {false, true}) {
      for (const std::size_t n : {3, 8, 24, 32, 47, 64}) {
        for (const std::size_t count : {16, 29}) {
          const ManyColumns few(count, n, 1);
          ManyColumns many(count, 100, 200);
          for (std::size_t k = 0; k < count; ++k)
            std::copy_n(few.columns[k].data(), n, many.columns[k].data());
          const std::vector<double> weights = random_values(4 * count, 9);
          const std::vector<const double*> w = {weights.data(), weights.data() + 1,
                                                weights.data() + 2, weights.data() + 3};
          const ManyColumns of_few(4, n, 300);
          const ManyColumns of_many(4, 100, 400);
          const auto combine = [&](const ManyColumns& from, const ManyColumns& to, std::size_t m) {
            std::vector<double*> out;
            for (const Column& column : to.columns) out.push_back(column.data());
            kernels::products(portable).combine(from.pointers.data(), count, w.data(), 4,
                                                out.data(), 4, m);
          };
          combine(few, of_few, n);
          combine(many, of_many, 100);
          for (std::size_t j = 0; j < 4; ++j) {
            for (std::size_t i = 0; i < n; ++i)
              ASSERT_EQ(of_few.columns[j][i], of_many.columns[j][i]);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace starfold::testing

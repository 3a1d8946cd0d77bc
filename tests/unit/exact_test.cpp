// Exact sums: the wide integers, the slices that fill them, and mathematics that is the same everywhere.
#include "starfold/merge/exact.h"

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cmath>
#include <random>

#include "starfold/merge/exact_prod.h"
#include "starfold/ops/portable_linear_algebra.h"
#include "starfold/runtime/accumulate/exact_sums.h"
#include "starfold/runtime/kernels/kernels.h"
#include "starfold/tensor/portable.h"

namespace starfold {
namespace {

using wide::Word;

constexpr double inf = std::numeric_limits<double>::infinity();

template <typename Action>
void on_every_target(const Action& action) {
  for (auto rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    const auto target = rest & ~(rest - 1);
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    action();
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

// Numbers of one kind: ordinary ones, those of all magnitudes, those with what is not finite, those that are hard to slice.
std::vector<double> column(std::mt19937_64& random, std::size_t n, int kind) {
  std::normal_distribution<double> normal;
  std::vector<double> x(kernels::padded(n), std::nan(""));
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = normal(random);
    if (kind == 1) x[i] = std::ldexp(x[i], static_cast<int>(random() % 2000) - 1000);
    if (kind == 2 && random() % 50 == 0)
      x[i] = std::vector<double>{inf, -inf, std::nan(""), 0.0, -0.0, 5e-324, 1e308}[random() % 7];
    if (kind == 3) x[i] = std::ldexp(x[i], static_cast<int>(random() % 80));
    if (kind == 4) x[i] = static_cast<double>(static_cast<int>(random() % 200) - 100);
    if (kind == 5 && random() % 20 == 0) x[i] *= 0x1p-30;
    if (kind == 7 && random() % 100 == 0)
      x[i] = std::vector<double>{inf, -inf, std::nan("")}[random() % 3];
    // In the middle between multiples of the unit of the first slice, or of the second.
    if (kind == 6) {
      const int bits = random() % 2 == 0 ? 23 : 46;
      x[i] = std::ldexp(static_cast<double>(random() >> (64 - bits) | 1U), -bits);
      if (random() % 2 == 0) x[i] = -x[i];
    }
  }
  return x;
}

// Columns where kernels may read them.
class Columns {
 public:
  Columns(std::mt19937_64& random, std::size_t count, std::size_t n, int kind) {
    room_.reserve(count * kernels::padded(n));
    for (std::size_t c = 0; c < count; ++c) {
      const std::vector<double> x = column(random, n, kind < 0 ? static_cast<int>(c % 6) : kind);
      double* to = room_.data() + c * kernels::padded(n);
      std::copy(x.begin(), x.end(), to);
      pointers.push_back(to);
    }
  }
  std::vector<const double*> pointers;

 private:
  engine::Buffer room_;
};

std::vector<Word> words(engine::WideSums& sums, std::size_t entry) {
  return {sums[entry].begin(), sums[entry].end()};
}

TEST(Exact, SlicedSumsAreThoseOfEachNumber) {
  on_every_target([] {
    std::mt19937_64 random(1);
    for (const std::size_t n : {1, 2, 7, 64, 512, 700}) {
      for (int kind = 0; kind < 6; ++kind) {
        const Columns columns(random, 3, n, kind);
        engine::WideSums sums(1, exact::sums);
        std::vector<Word> want(exact::sums.words());
        for (const double* x : columns.pointers) {
          sums.add_column(x, n, 0);
          for (std::size_t i = 0; i < n; ++i) exact::add(want, exact::sums, x[i]);
        }
        EXPECT_EQ(words(sums, 0), want) << n << " of kind " << kind;
      }
    }
  });
}

// Four blocks of columns, against products that are added one by one.
void check_products(std::mt19937_64& random, std::size_t count, std::size_t n, bool upper,
                    int kind) {
  const std::size_t entries = count * count;
  engine::WideSums sums(entries, exact::products);
  engine::ProductGrid grid;
  std::vector<std::vector<Word>> want(entries, std::vector<Word>(exact::products.words()));
  std::vector<std::uint32_t> places(entries);
  for (std::uint32_t i = 0; i < entries; ++i) places[i] = i;
  for (const std::size_t records : {n, n, n / 2 + 1, n}) {
    const Columns rows(random, count, records, kind);
    const Columns others(random, count, records, kind == 0 ? 4 : kind == 7 ? 0 : kind);
    const auto& columns = upper && n > 3 ? rows.pointers : others.pointers;
    sums.add_products(rows.pointers, columns, upper, records, places, grid);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = upper ? i : 0; j < count; ++j) {
        for (std::size_t r = 0; r < records; ++r)
          exact::add_product(want[i * count + j], rows.pointers[i][r], columns[j][r]);
      }
    }
  }
  sums.flush(grid);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j)  // with `upper` nothing is below the diagonal
      EXPECT_EQ(words(sums, i * count + j), want[i * count + j])
          << n << " of kind " << kind << ": " << i << ", " << j << " of " << count;
  }
}

TEST(Exact, SlicedProductsAreThoseOfEachPair) {
  on_every_target([] {
    std::mt19937_64 random(2);
    for (const bool upper : {false, true}) {
      for (const int kind : {-1, 0, 2, 3, 4, 5, 6, 7}) {
        for (const std::size_t n : {1, 3, 64, 512}) check_products(random, 6, n, upper, kind);
        for (const std::size_t count : {1, 2}) {
          check_products(random, count, 300, upper, kind);
          check_products(random, count, 512, upper, kind);
        }
        // So many that processors with tiles of bytes use them; also more records than they take at once.
        check_products(random, 8, 70, upper, kind);
        check_products(random, 37, 130, upper, kind);
        // Whole tiles of residues, and one that is not.
        check_products(random, 12, 600, upper, kind);
      }
    }
    check_products(random, 17, 1500, true, 0);
    check_products(random, 17, 1500, false, 5);
  });
}

// Where every slice is as large as it can be.
TEST(Exact, ProductsOfTheLargestSlices) {
  on_every_target([] {
    constexpr std::size_t n = 512;
    for (const double x : {0x1.fffffffffffffp0, -0x1.7fffffbfffffdp0}) {
      for (const std::size_t count : {1, 3, 8, 9}) {
        engine::Buffer column(n);
        std::fill_n(column.data(), n, x);
        const std::vector<const double*> columns(count, column.data());
        std::vector<std::uint32_t> places(count * count);
        for (std::uint32_t i = 0; i < places.size(); ++i) places[i] = i;
        engine::WideSums sums(places.size(), exact::products);
        engine::ProductGrid grid;
        std::vector<Word> want(exact::products.words());
        for (int block = 0; block < 210; ++block) {
          sums.add_products(columns, columns, false, n, places, grid);
          for (std::size_t i = 0; i < n; ++i) exact::add_product(want, x, x);
        }
        sums.flush(grid);
        EXPECT_EQ(words(sums, 0), want);
        EXPECT_EQ(words(sums, places.size() - 1), want);
      }
    }
  });
}

TEST(Exact, SumsByGroupAreThoseOfEachNumber) {
  std::mt19937_64 random(3);
  const std::size_t n = 300;
  const std::size_t labels = 4;
  const Columns columns(random, 6, n, -1);
  std::vector<std::uint32_t> rows(n);
  for (std::uint32_t& row : rows) row = static_cast<std::uint32_t>(random() % (labels + 1));
  std::vector<std::uint32_t> places(labels * 6);
  for (std::uint32_t i = 0; i < places.size(); ++i) places[i] = i;
  engine::WideSums sums(places.size(), exact::products);
  sums.add_groups(rows, labels, columns.pointers, places);
  for (std::size_t label = 0; label < labels; ++label) {
    for (std::size_t c = 0; c < 6; ++c) {
      std::vector<Word> want(exact::products.words());
      for (std::size_t r = 0; r < n; ++r)
        exact::add_product(want, columns.pointers[c][r], rows[r] == label ? 1 : 0);
      EXPECT_EQ(words(sums, label * 6 + c), want);
    }
  }
}

double sum_of(const std::vector<double>& numbers) {
  std::vector<Word> sum(exact::sums.words());
  for (const double x : numbers) exact::add(sum, exact::sums, x);
  return exact::rounded(sum, exact::sums);
}

TEST(Exact, SumsAreRoundedOnce) {
  EXPECT_EQ(sum_of({1e308, 1e308, -1e308, -1e308, 1e-308}), 1e-308);
  EXPECT_EQ(sum_of({1, 0x1p-53}), 1);  // a tie goes to the even one
  EXPECT_EQ(sum_of({1, 0x1p-53, 5e-324}), 1 + 0x1p-52);
  EXPECT_EQ(sum_of({1 + 0x1p-52, 0x1p-53}), 1 + 0x1p-51);
  EXPECT_EQ(sum_of({1e308, 1e308}), inf);
  EXPECT_EQ(sum_of({inf, 1}), inf);
  EXPECT_EQ(sum_of({-inf, -1e300, -1}), -inf);
  EXPECT_TRUE(std::isnan(sum_of({inf, -inf})));
  EXPECT_TRUE(std::isnan(sum_of({-1, std::nan("")})));
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of({-5e-324}), -5e-324);
  // A quarter of the smallest number, three times: nearer to it than to 0.
  std::vector<Word> products(exact::products.words());
  for (int i = 0; i < 3; ++i) exact::add_product(products, 5e-324, 0.25);
  EXPECT_EQ(exact::rounded(products, exact::products), 5e-324);
}

// Against long doubles, which hold what 12 numbers of 40 bits add up to.
TEST(Exact, SumsOfShortNumbers) {
  std::mt19937_64 random(4);
  for (int number = 0; number < 2000; ++number) {
    std::vector<Word> sum(exact::products.words());
    long double want = 0;
    for (int i = 0; i < 12; ++i) {
      const auto a = static_cast<double>(static_cast<std::int32_t>(random() >> 35U));
      const auto b = static_cast<double>(static_cast<std::int32_t>(random() >> 36U)) - 0x1p27;
      exact::add_product(sum, a, b);
      want += static_cast<long double>(a) * b;
    }
    EXPECT_EQ(exact::rounded(sum, exact::products), static_cast<double>(want));
  }
}

double multiplied(const std::vector<double>& numbers) {
  std::vector<Word> factors(exact::factors_words);
  for (const double x : numbers) exact::multiply(factors, x);
  return exact::multiplied(factors);
}

TEST(Exact, Products) {
  EXPECT_EQ(multiplied({2, 3, 4}), 24);
  EXPECT_EQ(multiplied({}), 1);
  EXPECT_EQ(multiplied({-2, 7, 0.5}), -7);
  EXPECT_EQ(multiplied({0x1p900, 0x1p900, 0x1p-900, 0x1p-900}), 1);
  EXPECT_EQ(multiplied({5e-324, 0.5}), 0);  // a tie
  EXPECT_EQ(multiplied({5e-324, 0.75}), 5e-324);
  EXPECT_EQ(multiplied({1e200, 1e200}), inf);
  EXPECT_TRUE(std::signbit(multiplied({-0.0, 3})));
  EXPECT_TRUE(std::isnan(multiplied({0, inf})));
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (int number = 0; number < 500; ++number) {
    const double a = normal(random);
    const double b = normal(random);
    EXPECT_EQ(multiplied({a, b}), a * b);
  }
}

TEST(Exact, KernelsOfAnExactRunAreTheSameOnEveryTarget) {
  struct Map {
    const char* name;
    double (*map)(double);
    long double (*want)(long double);
  };
  static constexpr Map maps[] = {
      {"exp", portable::exp, [](long double x) { return std::exp(x); }},
      {"expm1", portable::expm1, [](long double x) { return std::expm1(x); }},
      {"log", portable::log, [](long double x) { return std::log(x); }},
      {"log1p", portable::log1p, [](long double x) { return std::log1p(x); }},
      {"sin", portable::sin, [](long double x) { return std::sin(x); }},
      {"cos", portable::cos, [](long double x) { return std::cos(x); }},
      {"tanh", portable::tanh, [](long double x) { return std::tanh(x); }},
      {"sigmoid", [](double x) { return 1 / (1 + portable::exp(-x)); },
       [](long double x) { return 1 / (1 + std::exp(-x)); }},
      {"softplus", [](double x) { return portable::log1p(portable::exp(x)); },
       [](long double x) { return std::log1p(std::exp(x)); }},
  };
  std::mt19937_64 random(6);
  const std::size_t n = 4000;
  engine::Buffer x(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double unit = static_cast<double>(random() >> 11U) * 0x1p-53;
    x.data()[i] = i % 4 == 0   ? 40 * unit
                  : i % 4 == 1 ? unit
                  : i % 4 == 2 ? 1 + unit / 100
                               : 0x1p-30 * unit;
  }
  for (const Map& map : maps) {
    SCOPED_TRACE(map.name);
    std::vector<double> first;
    on_every_target([&] {
      engine::Buffer out(n);
      kernels::unary(map.name, true)(map.map, x.data(), out.data(), n);
      const std::vector<double> found(out.data(), out.data() + n);
      if (first.empty()) first = found;
      EXPECT_EQ(found, first);
    });
    for (std::size_t i = 0; i < n; ++i) {
      const auto want = static_cast<double>(map.want(x.data()[i]));
      EXPECT_NEAR(first[i], want, 1e-15 * std::fabs(want)) << x.data()[i];
    }
  }
}

TEST(Exact, PerRecordProductsAreTheSameOnEveryTarget) {
  std::mt19937_64 random(7);
  const std::size_t n = 100;
  const Columns columns(random, 11, n, 0);
  std::vector<double> weights(11);
  for (double& w : weights) w = std::normal_distribution<double>()(random);
  const double* weight = weights.data();
  std::vector<double> first;
  on_every_target([&] {
    engine::Buffer room(3 * kernels::padded(n));
    double* out[3];
    for (std::size_t k = 0; k < 3; ++k) out[k] = room.data() + k * kernels::padded(n);
    const kernels::Products& products = kernels::products(true);
    products.combine(columns.pointers.data(), 11, &weight, 1, out, 1, n);
    products.distances(columns.pointers.data(), 11, &weight, 1, out + 1, 1, n);
    products.pair_sum(columns.pointers.data(), columns.pointers.data(), 11, out[2], n);
    std::vector<double> found;
    for (const double* o : out) found.insert(found.end(), o, o + n);
    if (first.empty()) first = found;
    EXPECT_EQ(found, first);
  });
}

// Bits that every machine must find.
TEST(Exact, PortableFunctionsHaveTheirBits) {
  EXPECT_EQ(portable::exp(1), 0x1.5bf0a8b145769p+1);
  EXPECT_EQ(portable::exp(-745), 5e-324);
  EXPECT_EQ(portable::log(10), 0x1.26bb1bbb55516p+1);
  EXPECT_EQ(portable::pow(10, -5), 0x1.4f8b588e368f1p-17);
  EXPECT_EQ(portable::pow(-3, 3), -27);
  EXPECT_EQ(portable::pow(1.0000001, 1e9), 0x1.349445c228792p+144);
  EXPECT_EQ(portable::sin(1e9), 0x1.1778cae83c69bp-1);
  EXPECT_EQ(portable::tanh(0.5), 0x1.d9353d7568af3p-2);
  EXPECT_EQ(portable::atan2(1, -1), 0x1.2d97c7f3321d2p+1);
  EXPECT_EQ(portable::erf(0.5), 0x1.0a7ef5c18edd2p-1);
  EXPECT_EQ(portable::lgamma(10.5), 0x1.be199a0f64394p+3);
  EXPECT_EQ(portable::digamma(1), -0x1.2788cfc6fb619p-1);
}

Tensor random_matrix(std::mt19937_64& random, std::int64_t rows, std::int64_t columns) {
  Tensor a(Shape{rows, columns});
  for (double& x : a.data) x = std::normal_distribution<double>()(random);
  return a;
}

Tensor times(const Tensor& a, const Tensor& b) {
  Tensor c(Shape{a.shape[0], b.shape[1]});
  for (std::int64_t i = 0; i < a.shape[0]; ++i)
    for (std::int64_t j = 0; j < b.shape[1]; ++j)
      for (std::int64_t k = 0; k < a.shape[1]; ++k)
        c.data[i * b.shape[1] + j] += a.data[i * a.shape[1] + k] * b.data[k * b.shape[1] + j];
  return c;
}

Tensor turned(const Tensor& a) {
  Tensor t(Shape{a.shape[1], a.shape[0]});
  for (std::int64_t i = 0; i < a.shape[0]; ++i)
    for (std::int64_t j = 0; j < a.shape[1]; ++j)
      t.data[j * a.shape[0] + i] = a.data[i * a.shape[1] + j];
  return t;
}

void expect_near(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.shape, b.shape);
  for (std::size_t i = 0; i < a.data.size(); ++i) EXPECT_NEAR(a.data[i], b.data[i], 1e-12);
}

Tensor identity(std::int64_t n) {
  Tensor result(Shape{n, n});
  for (std::int64_t i = 0; i < n; ++i) result.data[i * n + i] = 1;
  return result;
}

TEST(Exact, PortableLinearAlgebra) {
  std::mt19937_64 random(8);
  for (const auto& [rows, columns] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {4, 4}, {7, 3}, {3, 7}, {12, 12}}) {
    const Tensor a = random_matrix(random, rows, columns);
    Tensor q, r, u, s, v;
    portable::qr(a, q, r);
    expect_near(times(q, r), a);
    expect_near(times(turned(q), q), identity(q.shape[1]));
    portable::svd(a, u, s, v);
    Tensor scaled = u;
    for (std::int64_t i = 0; i < u.shape[0]; ++i)
      for (std::int64_t j = 0; j < u.shape[1]; ++j) scaled.data[i * u.shape[1] + j] *= s.data[j];
    expect_near(times(scaled, turned(v)), a);
    expect_near(times(turned(u), u), identity(u.shape[1]));
    expect_near(times(turned(v), v), identity(v.shape[1]));
    const Tensor definite = times(turned(a), a);
    Tensor values, vectors;
    portable::eigh(definite, values, vectors);
    Tensor stretched = vectors;
    for (std::int64_t i = 0; i < columns; ++i)
      for (std::int64_t j = 0; j < columns; ++j) stretched.data[i * columns + j] *= values.data[j];
    expect_near(times(stretched, turned(vectors)), definite);
    if (rows != columns) continue;
    const Tensor b = random_matrix(random, rows, 2);
    const portable::Solution solution = portable::solve_general(a, b);
    ASSERT_TRUE(solution.solved);
    expect_near(times(a, solution.x), b);
    const portable::Solution other = portable::solve_positive_definite(definite, b);
    ASSERT_TRUE(other.solved);
    for (std::size_t i = 0; i < b.data.size(); ++i)
      EXPECT_NEAR(times(definite, other.x).data[i], b.data[i], 1e-8);
  }
  const Tensor zero(Shape{3, 2});
  Tensor u, s, v;
  portable::svd(zero, u, s, v);
  expect_near(times(turned(u), u), identity(2));
  EXPECT_FALSE(portable::solve_general(Tensor(Shape{2, 2}), Tensor(Shape{2, 1})).solved);
}

}  // namespace
}  // namespace starfold

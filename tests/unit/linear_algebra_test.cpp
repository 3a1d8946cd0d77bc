// Shared-only linear algebra: figures of NumPy, and the equations that define each factorization.
#include "meaning_testing.h"

namespace starfold::testing {
namespace {

using meaning::cholesky;
using meaning::eigh;
using meaning::inv;
using meaning::qr;
using meaning::solve;
using meaning::svd;

const Tensor kGeneral({3, 3}, {4, 1, -2, 2, -3, 5, 0.5, 7, 1});
const Tensor kDefinite({3, 3}, {4, 1, -2, 1, 3, 0.5, -2, 0.5, 6});
const Tensor kTall({4, 2}, {1, 2, 3, 4, 5, 6, 7, 9});

Tensor random_matrix(double seed, std::int64_t m, std::int64_t n) {
  return apply1(meaning::normal, {Tensor::scalar(seed)}, {.sizes = {m, n}});
}
Tensor times(const Tensor& a, const Tensor& b) { return apply1(meaning::matmul, {a, b}); }
Tensor transpose(const Tensor& a) { return apply1(meaning::permute, {a}, {.axes = {1, 0}}); }
Tensor identity(std::int64_t n) { return apply1(meaning::eye, {}, {.sizes = {n}}); }

Tensor random_definite(double seed, std::int64_t n) {
  const Tensor x = random_matrix(seed, n + 5, n);
  return times(transpose(x), x);
}

// Absolute difference, against the size of the entries.
void expect_near(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(got.shape, want.shape);
  double scale = 1;
  for (const double x : want.data) scale = std::max(scale, std::fabs(x));
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    EXPECT_NEAR(got.data[i], want.data[i], tolerance * scale) << "entry " << i;
  }
}

std::string error_of(const Meaning& meaning, const std::vector<Tensor>& args) {
  return run_error_of([&] { apply(meaning, args); });
}

// numpy.linalg.solve
TEST(LinearAlgebra, SolveFigures) {
  const Tensor b = vec({1, 2, 3});
  expect_tensor(apply1(solve, {kGeneral, b}), {3},
                {0.3890410958904109, 0.336986301369863, 0.44657534246575337}, 1e-14);
  expect_tensor(apply1(solve, {kGeneral, Tensor({3, 2}, {1, 0, 2, -1, 3, 4})}), {3, 2},
                {0.3890410958904109, -0.060273972602739756, 0.33698630136986296, 0.5534246575342466,
                 0.44657534246575337, 0.1561643835616438},
                1e-14);
  expect_tensor(apply1(solve, {kDefinite, b}), {3},
                {0.4558823529411765, 0.4117647058823529, 0.6176470588235294}, 1e-14);
  expect_tensor(apply1(solve, {Tensor(Shape{1, 1}, 4), vec({2})}), {1}, {0.5});
}

TEST(LinearAlgebra, SolveSolves) {
  for (const std::int64_t n : {1, 2, 5, 20, 65}) {
    const Tensor b = random_matrix(1, n, 3);
    const Tensor indefinite({2, 2}, {0, 1, 1, 0});  // symmetric, but no Cholesky factor
    for (const Tensor& a : {random_matrix(2, n, n), random_definite(3, n)}) {
      expect_near(times(a, apply1(solve, {a, b})), b, 1e-9);
    }
    expect_tensor(apply1(solve, {indefinite, vec({3, 4})}), {2}, {4, 3});
  }
}

// Units of measurement are no ill-conditioning: numpy.linalg.cond is 1e24 here.
TEST(LinearAlgebra, SolveBearsBadScales) {
  const Tensor definite({2, 2}, {1e12, 0.5, 0.5, 1e-12});
  expect_tensor(apply1(solve, {definite, vec({1, 2})}), {2},
                {(1e-12 - 1) / 0.75, (2e12 - 0.5) / 0.75}, 1e-14);
  const Tensor general({2, 2}, {1e12, 0.5, -0.5, 1e-12});
  expect_tensor(apply1(solve, {general, vec({1, 2})}), {2},
                {(1e-12 - 1) / 1.25, (2e12 + 0.5) / 1.25}, 1e-14);
}

TEST(LinearAlgebra, SingularMatricesAreRefused) {
  const Tensor b = vec({1, 1});
  const std::string exact = "the matrix is singular to working precision (reciprocal condition 0)";
  EXPECT_EQ(error_of(solve, {Tensor({2, 2}, {1, 2, 2, 4}), b}), "solve: " + exact);
  EXPECT_EQ(error_of(solve, {Tensor({2, 2}, {1, 2, 3, 6}), b}), "solve: " + exact);
  EXPECT_EQ(error_of(solve, {Tensor(Shape{2, 2}), b}), "solve: " + exact);
  EXPECT_EQ(error_of(solve, {Tensor(Shape{1, 1}, 0), vec({1})}), "solve: " + exact);
  EXPECT_EQ(error_of(inv, {Tensor({2, 2}, {1, 2, 3, 6})}), "inv: " + exact);
  // The rank-two matrix of numpy.arange(1, 10); rounding leaves a tiny pivot.
  const Tensor near({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_NE(error_of(solve, {near, vec({1, 0, 0})}).find("(reciprocal condition "),
            std::string::npos);
}

TEST(LinearAlgebra, NonFiniteMatricesAreRefused) {
  for (const double bad : {kNan, kInf, -kInf}) {
    const Tensor a({2, 2}, {1, 2, bad, 3});
    EXPECT_EQ(error_of(solve, {a, vec({1, 1})}), "solve: the matrix has non-finite entries");
    EXPECT_EQ(error_of(solve, {identity(2), vec({1, bad})}),
              "solve: the right-hand side has non-finite entries");
    EXPECT_EQ(error_of(inv, {a}), "inv: the matrix has non-finite entries");
    EXPECT_EQ(error_of(cholesky, {a}), "cholesky: the matrix has non-finite entries");
    EXPECT_EQ(error_of(meaning::det, {a}), "det: the matrix has non-finite entries");
    EXPECT_EQ(error_of(meaning::logdet, {a}), "logdet: the matrix has non-finite entries");
    EXPECT_EQ(error_of(eigh, {a}), "eigh: the matrix has non-finite entries");
    EXPECT_EQ(error_of(svd, {a}), "svd: the matrix has non-finite entries");
    EXPECT_EQ(error_of(qr, {a}), "qr: the matrix has non-finite entries");
  }
}

// numpy.linalg.inv
TEST(LinearAlgebra, Inv) {
  expect_tensor(apply1(inv, {kGeneral}), {3, 3},
                {0.20821917808219179, 0.0821917808219178, 0.005479452054794512,
                 -0.002739726027397263, -0.027397260273972598, 0.1315068493150685,
                 -0.08493150684931505, 0.1506849315068493, 0.07671232876712328},
                1e-13);
  for (const std::int64_t n : {1, 4, 33}) {
    const Tensor general = random_matrix(4, n, n);
    expect_near(times(general, apply1(inv, {general})), identity(n), 1e-9);
    const Tensor definite = random_definite(5, n);
    const Tensor inverse = apply1(inv, {definite});
    expect_near(times(definite, inverse), identity(n), 1e-9);
    EXPECT_EQ(transpose(inverse).data, inverse.data);
  }
}

// numpy.linalg.det, numpy.linalg.slogdet
TEST(LinearAlgebra, Determinants) {
  EXPECT_NEAR(apply1(meaning::det, {kGeneral}).item(), -182.5, 1e-12);
  EXPECT_NEAR(apply1(meaning::logdet, {kGeneral}).item(), 5.206750173022547, 1e-14);
  EXPECT_EQ(apply1(meaning::det, {Tensor({2, 2}, {0, 1, 1, 0})}).item(), -1);
  EXPECT_EQ(apply1(meaning::det, {Tensor(Shape{1, 1}, -3)}).item(), -3);
  const Tensor singular({2, 2}, {1, 2, 2, 4});
  EXPECT_EQ(apply1(meaning::det, {singular}).item(), 0);
  EXPECT_EQ(apply1(meaning::logdet, {singular}).item(), -kInf);
  // The product leaves the range of doubles halfway and comes back.
  const Tensor wide = apply1(meaning::diag, {vec({1e200, 1e200, 1e-200, 1e-200})});
  EXPECT_TRUE(close(apply1(meaning::det, {wide}).item(), 1, 1e-14));
  EXPECT_NEAR(apply1(meaning::logdet, {wide}).item(), 0, 1e-12);
}

// numpy.linalg.cholesky
TEST(LinearAlgebra, Cholesky) {
  expect_tensor(apply1(cholesky, {kDefinite}), {3, 3},
                {2, 0, 0, 0.5, 1.6583123951777, 0, -1, 0.6030226891555273, 2.15322168769582},
                1e-14);
  for (const std::int64_t n : {1, 7, 40}) {
    const Tensor a = random_definite(6, n);
    const Tensor l = apply1(cholesky, {a});
    expect_near(times(l, transpose(l)), a, 1e-13);
  }
  EXPECT_EQ(error_of(cholesky, {Tensor({2, 2}, {1, 2, 2, 1})}),
            "cholesky: the matrix is not positive definite (its leading minor of order 2 is not)");
  EXPECT_EQ(error_of(cholesky, {Tensor({2, 2}, {1, 2, 0, 1})}),
            "cholesky needs a symmetric matrix (entries [2, 1] and [1, 2] are 0 and 2)");
}

// numpy.linalg.eigh, with the sign of each vector chosen as in the source.
TEST(LinearAlgebra, EighFigures) {
  const auto results = apply(eigh, {kDefinite});
  ASSERT_EQ(results.size(), 2u);
  expect_tensor(results[0], {3}, {1.7613872124741679, 4, 7.238612787525829}, 1e-14);
  expect_tensor(results[1], {3, 3},
                {-0.6385798321369753, 0.5570860145311558, -0.5309152195988593, 0.6690544948977717,
                 0.742781352708207, -0.025336632097674228, -0.38023924159008005, 0.3713906763541037,
                 0.8470460935936377},
                1e-12);
}

TEST(LinearAlgebra, EighDecomposes) {
  for (const std::int64_t n : {1, 2, 6, 50}) {
    const Tensor a = random_definite(7, n);
    const auto results = apply(eigh, {a});
    const Tensor& v = results[1];
    EXPECT_TRUE(std::is_sorted(results[0].data.begin(), results[0].data.end()));
    expect_near(times(transpose(v), v), identity(n), 1e-12);
    expect_near(times(times(v, apply1(meaning::diag, {results[0]})), transpose(v)), a, 1e-12);
  }
  // Ties in magnitude go to the first row, so the sign does not hang on rounding.
  const auto tied = apply(eigh, {Tensor({2, 2}, {2, 1, 1, 2})});
  const double r = std::sqrt(0.5);
  expect_tensor(tied[1], {2, 2}, {r, r, -r, r}, 1e-14);
  EXPECT_EQ(error_of(eigh, {Tensor({2, 2}, {1, 2, 2.5, 1})}),
            "eigh needs a symmetric matrix (entries [2, 1] and [1, 2] are 2.5 and 2)");
  EXPECT_NO_THROW(apply(eigh, {Tensor({2, 2}, {1, 2, 2 + 1e-9, 1})}));
}

// numpy.linalg.svd(full_matrices=False), with the sign of each column of u chosen as in the source.
TEST(LinearAlgebra, SvdFigures) {
  const auto results = apply(svd, {kTall});
  ASSERT_EQ(results.size(), 3u);
  expect_tensor(results[0], {4, 2},
                {0.14749435385872756, 0.8607887545655885, 0.3364692080900583, 0.19832005669776573,
                 0.5254440623213894, -0.46414864117005605, 0.7674258432957822, 0.06540576446162052},
                1e-12);
  expect_tensor(results[1], {2}, {14.857076037853464, 0.5170025197621854}, 1e-13);
  expect_tensor(results[2], {2, 2},
                {0.61627894812398, -0.7875279411545987, 0.7875279411545987, 0.61627894812398},
                1e-12);
}

TEST(LinearAlgebra, SvdDecomposes) {
  const std::pair<std::int64_t, std::int64_t> sizes[] = {{1, 1}, {6, 3}, {3, 6}, {1, 4}, {40, 40}};
  for (const auto& [m, n] : sizes) {
    const Tensor a = random_matrix(8, m, n);
    const auto results = apply(svd, {a});
    const std::int64_t k = std::min(m, n);
    EXPECT_EQ(results[0].shape, (Shape{m, k}));
    EXPECT_EQ(results[2].shape, (Shape{n, k}));
    EXPECT_TRUE(std::is_sorted(results[1].data.rbegin(), results[1].data.rend()));
    expect_near(times(transpose(results[0]), results[0]), identity(k), 1e-12);
    expect_near(times(transpose(results[2]), results[2]), identity(k), 1e-12);
    const Tensor us = times(results[0], apply1(meaning::diag, {results[1]}));
    expect_near(times(us, transpose(results[2])), a, 1e-12);
  }
  expect_tensor(apply(svd, {Tensor(Shape{3, 2})})[1], {2}, {0, 0});
}

// numpy.linalg.qr, with the diagonal of r made non-negative.
TEST(LinearAlgebra, QrFigures) {
  const auto results = apply(qr, {kTall});
  ASSERT_EQ(results.size(), 2u);
  expect_tensor(results[0], {4, 2},
                {0.10910894511799629, 0.8664912593338828, 0.3273268353539886, 0.21307162114767594,
                 0.5455447255899811, -0.44034801703853, 0.7637626158259735, 0.09943342320224886},
                1e-12);
  expect_tensor(results[1], {2, 2}, {9.16515138991168, 11.674657127625593, 0, 0.8380817098475277},
                1e-12);
}

TEST(LinearAlgebra, QrDecomposes) {
  const std::pair<std::int64_t, std::int64_t> sizes[] = {{1, 1}, {6, 3}, {3, 6}, {40, 40}};
  for (const auto& [m, n] : sizes) {
    const Tensor a = random_matrix(9, m, n);
    const auto results = apply(qr, {a});
    const std::int64_t k = std::min(m, n);
    EXPECT_EQ(results[0].shape, (Shape{m, k}));
    EXPECT_EQ(results[1].shape, (Shape{k, n}));
    expect_near(times(transpose(results[0]), results[0]), identity(k), 1e-12);
    expect_near(times(results[0], results[1]), a, 1e-12);
    for (std::int64_t i = 0; i < k; ++i) {
      EXPECT_GE(results[1].data[i * n + i], 0);
      for (std::int64_t j = 0; j < i; ++j) EXPECT_EQ(results[1].data[i * n + j], 0);
    }
  }
}

TEST(LinearAlgebra, DiagonalAndTrace) {
  expect_tensor(apply1(meaning::diag, {vec({1, 2})}), {2, 2}, {1, 0, 0, 2});
  expect_tensor(apply1(meaning::diag, {kGeneral}), {3}, {4, -3, 1});
  expect_tensor(apply1(meaning::diag, {kTall}), {2}, {1, 4});
  EXPECT_EQ(apply1(meaning::trace_of, {kGeneral}).item(), 2);
}

}  // namespace
}  // namespace starfold::testing

// Meanings on ordinary tensors: aggregation, structure, client-local operations, construction.
#include <algorithm>
#include <numeric>

#include "meaning_testing.h"

namespace starfold::testing {
namespace {

using namespace meaning;
using Kind = Slice::Kind;

const Tensor kTable({3, 4}, {1.5, -2, 3, 0.25, 4, 5.5, -6, 7, 1, 1, 2, 8});

// Arithmetic of more than twice the precision.
__extension__ using Wide = __float128;

// 0, 1, 2, ... in a shape.
Tensor counting(Shape shape) {
  Tensor t(std::move(shape));
  std::iota(t.data.begin(), t.data.end(), 0.0);
  return t;
}

Meaning folding(double (*fold)(std::span<const double>)) {
  return [fold](const Application& a) { return aggregate(fold, a); };
}

// --- aggregation

// numpy.var(ddof=1), numpy.std(ddof=1), scipy.special.logsumexp, numpy.linalg.norm, numpy.median
TEST(Aggregation, Figures) {
  const With first{.axes = {0}};
  const With second{.axes = {1}};
  expect_tensor(apply1(folding(fold_sum), {kTable}, first), {4}, {6.5, 4.5, -1, 15.25});
  expect_tensor(apply1(folding(fold_sum), {kTable}, second), {3}, {2.75, 10.5, 12});
  expect_tensor(apply1(folding(fold_prod), {kTable}, second), {3}, {-2.25, -924, 16});
  expect_tensor(apply1(folding(fold_min), {kTable}, first), {4}, {1, -2, -6, 0.25});
  expect_tensor(apply1(folding(fold_max), {kTable}, second), {3}, {3, 7, 8});
  expect_tensor(apply1(folding(fold_count), {kTable}, second), {3}, {4, 4, 4});
  expect_tensor(apply1(folding(fold_mean), {kTable}, second), {3}, {0.6875, 2.625, 3});
  expect_tensor(apply1(folding(fold_var), {kTable}, first), {4},
                {2.583333333333333, 14.25, 24.333333333333336, 17.770833333333332}, 1e-15);
  expect_tensor(apply1(folding(fold_std), {kTable}, second), {3},
                {2.115173357749509, 5.878988008152423, 3.366501646120693}, 1e-15);
  expect_tensor(apply1(folding(fold_logsumexp), {kTable}, second), {3},
                {3.257580508495379, 7.24131307236366, 8.004293286748853}, 1e-15);
  expect_tensor(apply1(folding(fold_norm), {kTable}, first), {4},
                {4.387482193696061, 5.937171043518958, 7.0, 10.633085159068369}, 1e-15);
  expect_tensor(apply1(folding(fold_argmax), {kTable}, second), {3}, {3, 4, 4});
  expect_tensor(apply1(folding(fold_median), {kTable}, first), {4}, {1.5, 1, 2, 7});
  expect_tensor(apply1(folding(fold_median), {kTable}, second), {3}, {0.875, 4.75, 1.5});
}

TEST(Aggregation, SeveralAxesAreMergedIntoOne) {
  const Tensor t = counting({2, 3, 4});
  expect_tensor(apply1(folding(fold_sum), {t}, {.axes = {0, 2}}), {3}, {60, 92, 124});
  expect_tensor(apply1(folding(fold_sum), {t}, {.axes = {2, 0}}), {3}, {60, 92, 124});
  expect_tensor(apply1(folding(fold_argmax), {t}, {.axes = {2, 0}}), {3}, {8, 8, 8});
  expect_tensor(apply1(folding(fold_sum), {t}, {.axes = {0, 1, 2}}), {}, {276});
  expect_tensor(apply1(folding(fold_sum), {Tensor::scalar(5)}), {}, {5});
}

TEST(Aggregation, OfNothing) {
  const std::pair<double (*)(std::span<const double>), double> cases[] = {
      {fold_sum, 0},           {fold_prod, 1},     {fold_min, kInf}, {fold_max, -kInf},
      {fold_count, 0},         {fold_mean, kNan},  {fold_var, kNan}, {fold_std, kNan},
      {fold_logsumexp, -kInf}, {fold_any, 0},      {fold_all, 1},    {fold_norm, 0},
      {fold_argmax, kNan},     {fold_median, kNan}};
  for (const auto& [fold, want] : cases) {
    expect_tensor(apply1(folding(fold), {Tensor(Shape{0, 2})}, {.axes = {0}}), {2}, {want, want});
    expect_tensor(apply1(folding(fold), {Tensor(Shape{2, 0})}, {.axes = {1}}), {2}, {want, want});
    expect_tensor(apply1(folding(fold), {Tensor(Shape{0, 2})}, {.axes = {1}}), {0}, {});
  }
}

TEST(Aggregation, NanAndInfinity) {
  const std::vector<double> with_nan{1, kNan, 3, kInf};
  for (const auto fold : {fold_sum, fold_prod, fold_min, fold_max, fold_mean, fold_var,
                          fold_logsumexp, fold_norm, fold_median}) {
    EXPECT_TRUE(std::isnan(fold(with_nan)));
  }
  EXPECT_EQ(fold_argmax(with_nan), 2);
  EXPECT_EQ(fold_any(std::vector<double>{0, kNan}), 1);
  EXPECT_EQ(fold_all(std::vector<double>{1, kNan}), 1);
  EXPECT_EQ(fold_all(std::vector<double>{1, 0, kNan}), 0);
  EXPECT_EQ(fold_sum(std::vector<double>{1, kInf, 2}), kInf);
  EXPECT_TRUE(std::isnan(fold_sum(std::vector<double>{-kInf, kInf})));
  EXPECT_EQ(fold_logsumexp(std::vector<double>{1, kInf}), kInf);
  EXPECT_EQ(fold_logsumexp(std::vector<double>{-kInf, -kInf}), -kInf);
  EXPECT_EQ(fold_logsumexp(std::vector<double>{-kInf, 3}), 3);
  EXPECT_EQ(fold_norm(std::vector<double>{-kInf, 3}), kInf);
  EXPECT_EQ(fold_argmax(std::vector<double>{3, 7, 7}), 2);
  EXPECT_EQ(fold_argmax(std::vector<double>{-kInf, -kInf}), 1);
  EXPECT_EQ(fold_median(std::vector<double>{kInf, kInf, 1}), kInf);
}

TEST(Aggregation, IsAccurate) {
  EXPECT_EQ(fold_sum(std::vector<double>{1, 1e100, 1, -1e100}), 2);
  EXPECT_EQ(fold_sum(std::vector<double>(10, 0.1)), 1);
  EXPECT_EQ(fold_var(std::vector<double>{1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16}), 30);
  EXPECT_EQ(fold_var(std::vector<double>(7, 0.1)), 0);
  EXPECT_TRUE(std::isnan(fold_var(std::vector<double>{5})));
  EXPECT_TRUE(close(fold_logsumexp(std::vector<double>{1000, 1000}), 1000 + std::log(2), 1e-15));
  EXPECT_TRUE(close(fold_norm(std::vector<double>{3e200, 4e200}), 5e200, 1e-15));
  EXPECT_TRUE(close(fold_norm(std::vector<double>{3e-200, -4e-200}), 5e-200, 1e-15));
  EXPECT_EQ(fold_norm(std::vector<double>{5e-324}), 5e-324);
}

// numpy.quantile
TEST(Aggregation, Quantile) {
  const Tensor q = vec({0, 0.1, 0.5, 0.9, 1});
  expect_tensor(apply1(quantile, {kTable, q}, {.axes = {1}}), {3, 5},
                {-2, -1.325, 0.875, 2.55, 3, -6, -3, 4.75, 6.55, 7, 1, 1, 1.5, 6.2, 8}, 1e-15);
  expect_tensor(apply1(quantile, {kTable, Tensor::scalar(0.3)}, {.axes = {0, 1}}), {}, {1}, 1e-15);
  expect_tensor(apply1(quantile, {vec({kInf, 1, kInf}), Tensor::scalar(0.8)}, {.axes = {0}}), {},
                {kInf});
  expect_tensor(apply1(quantile, {vec({kNan, 1, 2}), Tensor::scalar(0.1)}, {.axes = {0}}), {},
                {kNan});
  const With records{.record_axes = {0}, .axes = {1}};
  expect_tensor(apply1(quantile, {Tensor(Shape{0, 4}), q}, records), {0, 5}, {});
  for (const double bad : {-0.1, 1.5, kNan}) {
    EXPECT_NE(run_error_of([&] {
                apply(quantile, {kTable, Tensor::scalar(bad)}, {.axes = {1}});
              }).find("is not between 0 and 1"),
              std::string::npos);
  }
}

// --- structure

// numpy.transpose
TEST(Structure, Permute) {
  const Tensor t = counting({2, 3, 4});
  const Tensor p = apply1(permute, {t}, {.axes = {2, 0, 1}});
  EXPECT_EQ(p.shape, (Shape{4, 2, 3}));
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      for (std::int64_t k = 0; k < 4; ++k) {
        EXPECT_EQ(p.data[k * 6 + i * 3 + j], t.data[i * 12 + j * 4 + k]);
      }
    }
  }
  const Tensor back = apply1(permute, {p}, {.axes = {1, 2, 0}});
  EXPECT_EQ(back.shape, t.shape);
  EXPECT_EQ(back.data, t.data);
  expect_tensor(apply1(permute, {Tensor(Shape{0, 3})}, {.axes = {1, 0}}), {3, 0}, {});
}

TEST(Structure, MatmulOfMatricesAndVectors) {
  const Tensor a({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b({3, 2}, {1, 0, -1, 2, 0.5, 1});
  expect_tensor(apply1(matmul, {a, b}), {2, 2}, {0.5, 7, 2, 16});
  expect_tensor(apply1(matmul, {a, vec({1, 0, -1})}), {2}, {-2, -2});
  expect_tensor(apply1(matmul, {vec({1, -1}), a}), {3}, {-3, -3, -3});
  expect_tensor(apply1(matmul, {vec({1, 2}), vec({3, 4})}), {}, {11});
}

TEST(Structure, MatmulBroadcastsLeadingAxes) {
  const Tensor a = counting({2, 2, 3});
  const Tensor b({3, 1}, {1, 10, 100});
  expect_tensor(apply1(matmul, {a, b}), {2, 2, 1}, {210, 543, 876, 1209});
  expect_tensor(apply1(matmul, {a, vec({1, 10, 100})}), {2, 2}, {210, 543, 876, 1209});
  const Tensor c({2, 3, 1}, {1, 0, 0, 0, 0, 1});
  expect_tensor(apply1(matmul, {a, c}), {2, 2, 1}, {0, 3, 8, 11});
  const Tensor d = counting({2, 1, 1, 3});  // [2,1] with [2]: batch [2,2]
  expect_tensor(apply1(matmul, {d, c}), {2, 2, 1, 1}, {0, 2, 3, 5});
  expect_tensor(apply1(matmul, {vec({1, 1}), a}), {2, 3}, {3, 5, 7, 15, 17, 19});
}

TEST(Structure, MatmulOverNoRecords) {
  expect_tensor(apply1(matmul, {Tensor(Shape{2, 0}), Tensor(Shape{0, 3})}), {2, 3},
                {0, 0, 0, 0, 0, 0});
  expect_tensor(apply1(matmul, {Tensor(Shape{0}), Tensor(Shape{0})}), {}, {0});
  expect_tensor(apply1(matmul, {Tensor(Shape{2, 0}), Tensor(Shape{0})}), {2}, {0, 0});
  expect_tensor(apply1(matmul, {Tensor(Shape{0, 3}), Tensor(Shape{3, 2})}), {0, 2}, {});
  expect_tensor(apply1(matmul, {Tensor(Shape{0, 2, 3}), Tensor(Shape{3})}), {0, 2}, {});
  expect_tensor(apply1(matmul, {Tensor(Shape{0, 2, 3}), Tensor(Shape{3, 4})}), {0, 2, 4}, {});
}

TEST(Structure, MatmulPropagatesNanAndInfinity) {
  expect_tensor(apply1(matmul, {Tensor({2, 2}, {0, 1, 1, 1}), vec({kNan, 1})}), {2}, {kNan, kNan});
  expect_tensor(apply1(matmul, {Tensor({2, 2}, {0, 1, 1, 1}), vec({kInf, 1})}), {2}, {kNan, kInf});
}

TEST(Structure, Index) {
  const Tensor t = counting({2, 3, 4});
  const ConcreteSlice all{};
  const ConcreteSlice fresh{Kind::new_axis};
  expect_tensor(apply1(meaning::index, {t}, {.slices = {{Kind::index, 2}, {Kind::index, 3}}}), {4},
                {20, 21, 22, 23});
  expect_tensor(
      apply1(meaning::index, {t}, {.slices = {all, {Kind::index, 1}, {Kind::range, 2, 3}}}), {2, 2},
      {1, 2, 13, 14});
  expect_tensor(apply1(meaning::index, {t}, {.slices = {all, all, {Kind::index, 4}}}), {2, 3},
                {3, 7, 11, 15, 19, 23});
  EXPECT_EQ(apply1(meaning::index, {t}, {.slices = {fresh, all, fresh}}).shape,
            (Shape{1, 2, 1, 3, 4}));
  EXPECT_EQ(apply1(meaning::index, {t}, {.slices = {all, fresh, all, all, fresh}}).shape,
            (Shape{2, 1, 3, 4, 1}));
  expect_tensor(apply1(meaning::index, {Tensor::scalar(7)}, {.slices = {fresh}}), {1}, {7});
  expect_tensor(apply1(meaning::index, {Tensor(Shape{0, 3})}, {.slices = {all, {Kind::index, 3}}}),
                {0}, {});
  expect_tensor(
      apply1(meaning::index, {Tensor(Shape{3, 0})}, {.slices = {{Kind::range, 2, 3}, all}}), {2, 0},
      {});
}

TEST(Structure, IndexOutside) {
  const auto message = [](ConcreteSlice slice) {
    return run_error_of([&] { apply(meaning::index, {vec({1, 2, 3})}, {.slices = {slice}}); });
  };
  EXPECT_EQ(message({Kind::index, 4}), "index 4 is outside an axis of length 3");
  EXPECT_EQ(message({Kind::index, 0}), "index 0 is outside an axis of length 3");
  EXPECT_EQ(message({Kind::range, 2, 5}), "index 5 is outside an axis of length 3");
  EXPECT_EQ(message({Kind::range, 0, 2}), "index 0 is outside an axis of length 3");
  EXPECT_EQ(message({Kind::range, 3, 2}), "the range 3:2 is empty");
}

TEST(Structure, Lookup) {
  const Tensor table({3, 2}, {1, 2, 3, 4, 5, 6});
  expect_tensor(apply1(lookup, {table, vec({3, 1, 3})}, {.record_axes = {{}, 0}}), {3, 2},
                {5, 6, 1, 2, 5, 6});
  expect_tensor(apply1(lookup, {table, Tensor::scalar(2)}), {2}, {3, 4});
  expect_tensor(apply1(lookup, {vec({7, 8, 9}), Tensor({2, 2}, {1, 2, 3, 3})}), {2, 2},
                {7, 8, 9, 9});
  expect_tensor(apply1(lookup, {table, Tensor(Shape{2, 0})}), {2, 0, 2}, {});
  // The index may be a record's: it must not appear.
  const std::string message = run_error_of([&] {
    apply(lookup, {table, vec({1, 777, kNan, 1.5, 0})});
  });
  EXPECT_EQ(message, "4 indices of a table of length 3 are not whole numbers from 1 to 3");
}

TEST(Structure, ConcatOfSharedTensors) {
  const Tensor a({2, 1}, {1, 2});
  const Tensor b({2, 2}, {3, 4, 5, 6});
  expect_tensor(apply1(concat, {a, b}, {.axes = {1}}), {2, 3}, {1, 3, 4, 2, 5, 6});
  expect_tensor(apply1(concat, {b, b}, {.axes = {0}}), {4, 2}, {3, 4, 5, 6, 3, 4, 5, 6});
  expect_tensor(apply1(concat, {vec({1}), vec({2, 3}), vec({4})}, {.axes = {0}}), {4},
                {1, 2, 3, 4});
}

TEST(Structure, ConcatRepeatsSharedOperandsForEveryRecord) {
  const Tensor x({3, 2}, {1, 2, 3, 4, 5, 6});
  const std::vector<double> with_intercept{9, 1, 2, 9, 3, 4, 9, 5, 6};
  expect_tensor(apply1(concat, {vec({9}), x}, {.record_axes = {{}, 0}, .axes = {1}}), {3, 3},
                with_intercept);
  expect_tensor(apply1(concat, {Tensor(Shape{1, 1}, 9), x}, {.record_axes = {{}, 0}, .axes = {1}}),
                {3, 3}, with_intercept);
  // The star last: [2, *].
  expect_tensor(apply1(concat, {Tensor({2, 3}, {1, 2, 3, 4, 5, 6}), vec({8, 9})},
                       {.record_axes = {1, {}}, .axes = {0}}),
                {4, 3}, {1, 2, 3, 4, 5, 6, 8, 8, 8, 9, 9, 9});
  // The star in the middle: [1, *, 2] with [1, 1].
  expect_tensor(apply1(concat, {Tensor({1, 2, 2}, {1, 2, 3, 4}), Tensor(Shape{1, 1}, 9)},
                       {.record_axes = {1, {}}, .axes = {2}}),
                {1, 2, 3}, {1, 2, 9, 3, 4, 9});
  // No records.
  expect_tensor(
      apply1(concat, {vec({9}), Tensor(Shape{0, 2})}, {.record_axes = {{}, 0}, .axes = {1}}),
      {0, 3}, {});
  expect_tensor(
      apply1(concat, {Tensor(Shape{2, 0}), vec({9})}, {.record_axes = {1, {}}, .axes = {0}}),
      {3, 0}, {});
}

TEST(Structure, Stack) {
  expect_tensor(apply1(stack, {Tensor::scalar(1), Tensor::scalar(2)}), {2}, {1, 2});
  expect_tensor(apply1(stack, {vec({1, 2}), vec({3, 4}), vec({5, 6})}), {3, 2}, {1, 2, 3, 4, 5, 6});
  expect_tensor(apply1(stack, {Tensor(Shape{0}), Tensor(Shape{0})}), {2, 0}, {});
}

TEST(Structure, ReshapeKeepsTheStarInItsPlace) {
  const Tensor t = counting({2, 6});
  const Tensor first = apply1(reshape, {t}, {.record_axes = {0}, .sizes = {2, 3}});
  const Tensor last = apply1(reshape, {apply1(permute, {t}, {.axes = {1, 0}})},
                             {.record_axes = {1}, .sizes = {2, 3}});
  EXPECT_EQ(first.shape, (Shape{2, 2, 3}));
  EXPECT_EQ(last.shape, (Shape{2, 3, 2}));
  // Each record's cell reads the same from either side.
  EXPECT_EQ(apply1(permute, {last}, {.axes = {2, 0, 1}}).data, first.data);
  expect_tensor(apply1(reshape, {t}, {.sizes = {3, 4}}), {3, 4}, t.data);
  expect_tensor(apply1(reshape, {vec({5, 6})}, {.record_axes = {0}, .sizes = {1}}), {2, 1}, {5, 6});
  expect_tensor(apply1(reshape, {Tensor(Shape{0, 6})}, {.record_axes = {0}, .sizes = {3, 2}}),
                {0, 3, 2}, {});
  expect_tensor(apply1(reshape, {vec({7})}, {.sizes = {}}), {}, {7});
  EXPECT_EQ(run_error_of([&] { apply(reshape, {t}, {.sizes = {5}}); }),
            "reshape: [2, 6] does not have as many entries as [5]");
}

TEST(Structure, RecordsAndBroadcast) {
  EXPECT_EQ(apply1(records, {Tensor(Shape{2, 5})}, {.record_axes = {1}}).item(), 5);
  EXPECT_EQ(apply1(records, {Tensor(Shape{0, 5})}, {.record_axes = {0}}).item(), 0);
  expect_tensor(apply1(meaning::broadcast, {vec({1, 2}), Tensor(Shape{3, 1})}), {3, 2},
                {1, 2, 1, 2, 1, 2});
  expect_tensor(apply1(meaning::broadcast, {Tensor::scalar(4), Tensor(Shape{0, 2})}), {0, 2}, {});
  EXPECT_EQ(broadcast_shapes({3, 1}, {2}), (Shape{3, 2}));
  EXPECT_EQ(broadcast_shapes({0, 1}, {1, 2}), (Shape{0, 2}));
  EXPECT_THROW(broadcast_shapes({3}, {2}), Bug);
  EXPECT_THROW(broadcast_to(vec({1, 2}), {3}), Bug);
}

// --- client-local

TEST(ClientLocal, Like) {
  expect_tensor(apply1(zeros_like, {kTable}), {3, 4}, std::vector<double>(12, 0));
  expect_tensor(apply1(ones_like, {Tensor(Shape{0, 2})}), {0, 2}, {});
}

TEST(ClientLocal, Outer) {
  expect_tensor(apply1(outer, {vec({1, 2}), vec({3, 4, 5})}), {2, 3}, {3, 4, 5, 6, 8, 10});
  const Tensor x({2, 2}, {1, 2, 3, 4});
  const std::vector<double> squares{1, 2, 2, 4, 9, 12, 12, 16};
  expect_tensor(apply1(outer, {x, x}, {.record_axes = {0, 0}}), {2, 2, 2}, squares);
  const Tensor xt = apply1(permute, {x}, {.axes = {1, 0}});
  expect_tensor(apply1(outer, {xt, x}, {.record_axes = {1, 0}}), {2, 2, 2}, squares);
  expect_tensor(apply1(outer, {x, vec({1, 10})}, {.record_axes = {0, {}}}), {2, 2, 2},
                {1, 10, 2, 20, 3, 30, 4, 40});
  expect_tensor(apply1(outer, {vec({1, 10}), x}, {.record_axes = {{}, 0}}), {2, 2, 2},
                {1, 2, 10, 20, 3, 4, 30, 40});
  const Tensor one_record({1, 2}, {1, 2});
  expect_tensor(apply1(outer, {one_record, vec({3})}, {.record_axes = {0, {}}}), {1, 2, 1}, {3, 6});
  expect_tensor(apply1(outer, {Tensor(Shape{0, 2}), vec({3})}, {.record_axes = {0, {}}}), {0, 2, 1},
                {});
}

TEST(ClientLocal, WhereAndClip) {
  expect_tensor(apply1(where, {vec({1, 0, kNan}), vec({1, 2, 3}), Tensor::scalar(9)}), {3},
                {1, 9, 3});
  // The branch not taken does not count, whatever it holds.
  expect_tensor(apply1(where, {vec({1, 0}), vec({1, kNan}), vec({kInf, 2})}), {2}, {1, 2});
  expect_tensor(apply1(where, {Tensor({2, 1}, {1, 0}), vec({1, 2}), Tensor::scalar(0)}), {2, 2},
                {1, 2, 0, 0});
  expect_tensor(apply1(clip, {vec({-5, 0.5, 5, kNan}), Tensor::scalar(0), Tensor::scalar(1)}), {4},
                {0, 0.5, 1, kNan});
  expect_tensor(apply1(clip, {vec({-5, 5}), Tensor::scalar(-kInf), vec({0, kInf})}), {2}, {-5, 5});
  expect_tensor(apply1(clip, {vec({5}), Tensor::scalar(3), Tensor::scalar(2)}), {1}, {2});
  expect_tensor(apply1(clip, {Tensor(Shape{0}), Tensor::scalar(3), Tensor::scalar(2)}), {0}, {});
}

TEST(ClientLocal, ClipNorm) {
  const Tensor x({3, 2}, {3, 4, 0.3, 0.4, 0, 0});
  const Tensor c = Tensor::scalar(1);
  expect_tensor(apply1(clip_norm, {x, c}, {.record_axes = {0, {}}}), {3, 2},
                {0.6, 0.8, 0.3, 0.4, 0, 0}, 1e-15);
  expect_tensor(
      apply1(clip_norm, {apply1(permute, {x}, {.axes = {1, 0}}), c}, {.record_axes = {1, {}}}),
      {2, 3}, {0.6, 0.3, 0, 0.8, 0.4, 0}, 1e-15);
  expect_tensor(apply1(clip_norm, {vec({3, 4}), c}), {2}, {0.6, 0.8}, 1e-15);
  expect_tensor(apply1(clip_norm, {vec({3, -0.5}), c}, {.record_axes = {0, {}}}), {2}, {1, -0.5});
  expect_tensor(apply1(clip_norm, {vec({3, 4}), Tensor::scalar(0)}), {2}, {0, 0});
  expect_tensor(apply1(clip_norm, {vec({3, 4}), Tensor::scalar(kInf)}), {2}, {3, 4});
  expect_tensor(apply1(clip_norm, {vec({3, kNan}), c}), {2}, {3, kNan});
  expect_tensor(apply1(clip_norm, {Tensor(Shape{0, 2}), c}, {.record_axes = {0, {}}}), {0, 2}, {});
  for (const double bad : {-1.0, kNan}) {
    EXPECT_EQ(run_error_of([&] {
                apply(clip_norm, {x, Tensor::scalar(bad)});
              }),
              "clip_norm: the bound must be a number that is not negative");
  }
}

// A sensitivity bound has no ulp to spare.
TEST(ClientLocal, ClipNormNeverExceedsItsBound) {
  for (const double c : {1.0, 0.1, 3.0, 1e-5, 1e10, 1e-310, 5e-324}) {
    for (double seed = 0; seed < 40; ++seed) {
      const Tensor x = apply1(normal, {Tensor::scalar(seed)}, {.sizes = {20, 3}});
      const Tensor y = apply1(clip_norm, {x, Tensor::scalar(c)}, {.record_axes = {0, {}}});
      for (double norm : apply1(folding(fold_norm), {y}, {.axes = {1}}).data) {
        ASSERT_LE(norm, c);
        if (c > 1e-300 && c < 1) {
          ASSERT_GT(norm, 0.001 * c);
        }
      }
    }
  }
}

TEST(ClientLocal, OneHot) {
  expect_tensor(apply1(one_hot, {vec({2, 1, kNan, 3})}, {.sizes = {3}}), {4, 3},
                {0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1});
  EXPECT_EQ(run_error_of([] {
              apply(one_hot, {vec({2, 0, 4, 1.5, kNan, kInf, -kInf, 1})}, {.sizes = {3}});
            }),
            "one_hot: 5 labels are not whole numbers from 1 to 3");
  EXPECT_EQ(run_error_of([] { apply(one_hot, {Tensor::scalar(4)}, {.sizes = {3}}); }),
            "one_hot: 1 label is not a whole number from 1 to 3");
  expect_tensor(apply1(one_hot, {Tensor::scalar(3)}, {.sizes = {3}}), {3}, {0, 0, 1});
  expect_tensor(apply1(one_hot, {Tensor(Shape{0})}, {.sizes = {3}}), {0, 3}, {});
}

// scipy.special.softmax, scipy.special.log_softmax
TEST(ClientLocal, Softmax) {
  expect_tensor(
      apply1(softmax, {kTable}, {.axes = {0}}), {3, 4},
      {0.07252144568074777, 0.0005467086101034932, 0.7309926286241987, 0.000314798899915477,
       0.8834920740271945, 0.9884723554154383, 9.021165708731927e-05, 0.26885675890640615,
       0.043986480292057845, 0.010980935974458322, 0.2689171597187139, 0.7308284421936784},
      1e-15);
  expect_tensor(apply1(log_softmax, {kTable}, {.axes = {1}}), {3, 4},
                {-1.7575805084953793, -5.257580508495379, -0.2575805084953792, -3.007580508495379,
                 -3.24131307236366, -1.7413130723636598, -13.24131307236366, -0.2413130723636598,
                 -7.004293286748854, -7.004293286748854, -6.004293286748854, -0.00429328674885357},
                1e-13);
  expect_tensor(apply1(softmax, {vec({1000, 1000, -kInf})}, {.axes = {0}}), {3}, {0.5, 0.5, 0});
  expect_tensor(apply1(log_softmax, {vec({-1000, 0})}, {.axes = {0}}), {2}, {-1000, 0});
  expect_tensor(apply1(softmax, {vec({1, kNan})}, {.axes = {0}}), {2}, {kNan, kNan});
  expect_tensor(apply1(softmax, {Tensor(Shape{0, 3})}, {.axes = {1}}), {0, 3}, {});
}

TEST(ClientLocal, SoftmaxAgreesWithLogsumexp) {
  const Tensor x = apply1(normal, {Tensor::scalar(5)}, {.sizes = {4, 3, 2}});
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    const With along{.axes = {axis}};
    const Tensor p = apply1(softmax, {x}, along);
    const Tensor log_p = apply1(log_softmax, {x}, along);
    for (std::size_t i = 0; i < p.data.size(); ++i) {
      EXPECT_TRUE(close(std::exp(log_p.data[i]), p.data[i], 1e-14));
    }
    for (const double total : apply1(folding(fold_sum), {p}, along).data) {
      EXPECT_NEAR(total, 1, 1e-15);
    }
    for (const double total : apply1(folding(fold_logsumexp), {log_p}, along).data) {
      EXPECT_NEAR(total, 0, 1e-15);
    }
  }
}

// --- construction

TEST(Construction, Filled) {
  expect_tensor(apply1(zeros, {}, {.sizes = {2}}), {2}, {0, 0});
  expect_tensor(apply1(zeros, {}, {}), {}, {0});
  expect_tensor(apply1(ones, {}, {.sizes = {1, 2}}), {1, 2}, {1, 1});
  expect_tensor(apply1(full, {Tensor::scalar(kNan)}, {.sizes = {2}}), {2}, {kNan, kNan});
  expect_tensor(apply1(eye, {}, {.sizes = {2}}), {2, 2}, {1, 0, 0, 1});
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_NE(run_error_of([&] {
              apply(zeros, {}, {.sizes = {huge, huge}});
            }).find("more than"),
            std::string::npos);
}

TEST(Construction, Linspace) {
  const auto points = [](double a, double b, std::int64_t n) {
    return apply1(linspace, {Tensor::scalar(a), Tensor::scalar(b)}, {.sizes = {n}});
  };
  expect_tensor(points(0, 1, 5), {5}, {0, 0.25, 0.5, 0.75, 1});
  expect_tensor(points(3, 7, 1), {1}, {3});
  for (const std::int64_t n : {2, 7, 50}) {
    const Tensor t = points(0.1, -0.7, n);
    EXPECT_EQ(t.data.front(), 0.1);
    EXPECT_EQ(t.data.back(), -0.7);
    EXPECT_TRUE(std::is_sorted(t.data.rbegin(), t.data.rend()));
  }
  for (const std::int64_t n : {2, 3, 101, 1000, 4097}) {
    const auto last = static_cast<double>(n);
    for (const double scale : {1.0, 0.25, 1e6, 0x1p-900, 0x1p900}) {
      const Tensor t = points(scale, last * scale, n);
      const Tensor down = points(scale, (2 - last) * scale, n);
      for (std::int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(t.data[i], static_cast<double>(i + 1) * scale) << n << " " << i;
        ASSERT_EQ(down.data[i], static_cast<double>(1 - i) * scale) << n << " " << i;
      }
    }
  }
  const Tensor hundred = points(0, 100, 101);
  for (std::int64_t i = 0; i <= 100; ++i) ASSERT_EQ(hundred.data[i], static_cast<double>(i));
  // Ends and steps that no double holds: each point is the double nearest to the true one.
  const Tensor tenths = points(0, 1, 11);
  expect_tensor(tenths, {11}, {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1});
  expect_tensor(points(-1e308, 1.7e308, 3), {3}, {-1e308, (1.7e308 - 1e308) / 2, 1.7e308});
  expect_tensor(points(-1, 1, 3), {3}, {-1, 0, 1});
  expect_tensor(points(5e-324, 1.5e-323, 3), {3}, {5e-324, 1e-323, 1.5e-323});
  expect_tensor(points(0, kInf, 3), {3}, {0, kInf, kInf});
  expect_tensor(points(-kInf, kInf, 3), {3}, {-kInf, kNan, kInf});
  expect_tensor(points(kNan, 1, 3), {3}, {kNan, kNan, 1});
  expect_tensor(points(2, 2, 4), {4}, {2, 2, 2, 2});
}

// In arithmetic of twice the precision and more, on random ends.
TEST(Construction, LinspaceIsRoundedOnce) {
  const Tensor ends = apply1(normal, {Tensor::scalar(11)}, {.sizes = {2, 300}});
  for (std::int64_t k = 0; k < 300; ++k) {
    const double a = ends.data[k];
    const double b = k % 3 == 0 ? -a * (1 + 1e-9) : ends.data[300 + k];
    const std::int64_t n = 2 + 7 * k;
    const Tensor t = apply1(linspace, {Tensor::scalar(a), Tensor::scalar(b)}, {.sizes = {n}});
    for (std::int64_t i = 0; i < n; ++i) {
      const auto exact = (static_cast<Wide>(a) * static_cast<Wide>(n - 1 - i) +
                          static_cast<Wide>(b) * static_cast<Wide>(i)) /
                         static_cast<Wide>(n - 1);
      ASSERT_EQ(t.data[i], static_cast<double>(exact)) << a << " " << b << " " << n << " " << i;
    }
  }
}

TEST(Construction, SortAndCumsum) {
  expect_tensor(apply1(meaning::sort, {Tensor({2, 3}, {3, kNan, 1, kInf, -kInf, 0})}), {2, 3},
                {1, 3, kNan, -kInf, 0, kInf});
  const Tensor t({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_tensor(apply1(cumsum, {t}, {.axes = {0}}), {2, 3}, {1, 2, 3, 5, 7, 9});
  expect_tensor(apply1(cumsum, {t}, {.axes = {1}}), {2, 3}, {1, 3, 6, 4, 9, 15});
  expect_tensor(apply1(cumsum, {vec({1, kInf, -kInf, 1})}, {.axes = {0}}), {4},
                {1, kInf, kNan, kNan});
}

}  // namespace
}  // namespace starfold::testing

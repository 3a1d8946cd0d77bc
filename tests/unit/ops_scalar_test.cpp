// The scalar maps behind element-wise operations, called through their rows.
#include <set>

#include "meaning_testing.h"
#include "starfold/ops/standard.h"

namespace starfold::testing {
namespace {

double call1(const std::string& name, double x) {
  const Op op = row(unary_ops(), name);
  const double direct = op.map1(x);
  const double meant = apply1(op.meaning, {Tensor::scalar(x)}).item();
  EXPECT_TRUE(close(meant, direct, 0)) << name << " means something else than its map";
  return direct;
}

double call2(const std::string& name, double x, double y) {
  const Op op = row(binary_ops(), name);
  const double direct = op.map2(x, y);
  const double meant = apply1(op.meaning, {Tensor::scalar(x), Tensor::scalar(y)}).item();
  EXPECT_TRUE(close(meant, direct, 0)) << name << " means something else than its map";
  return direct;
}

double distribution(const std::string& name, const std::vector<double>& args) {
  std::vector<Tensor> tensors;
  for (const double x : args) tensors.push_back(Tensor::scalar(x));
  return apply1(row(distribution_ops(), name).meaning, tensors).item();
}

struct Case1 {
  const char* name;
  double x;
  double want;
};
struct Case2 {
  const char* name;
  double x;
  double y;
  double want;
};
struct CaseN {
  const char* name;
  std::vector<double> args;
  double want;
};

TEST(OpsScalar, EveryRowIsComplete) {
  for (const auto& family : {unary_ops(), binary_ops(), distribution_ops()}) {
    std::set<std::string> names;
    for (const Op& op : family) {
      EXPECT_TRUE(names.insert(op.name).second) << op.name;
      EXPECT_FALSE(op.surface.empty()) << op.name;
      EXPECT_FALSE(op.rule.empty()) << op.name;
      EXPECT_FALSE(op.doc.empty()) << op.name;
      EXPECT_TRUE(op.type) << op.name;
      EXPECT_TRUE(op.meaning) << op.name;
      EXPECT_EQ(op.min_args, op.max_args) << op.name;
      EXPECT_EQ(op.map1 != nullptr, op.min_args == 1) << op.name;
      EXPECT_EQ(op.map2 != nullptr, op.min_args == 2) << op.name;
    }
  }
  EXPECT_EQ(unary_ops().size(), 25u);
  EXPECT_EQ(binary_ops().size(), 17u);
  EXPECT_EQ(distribution_ops().size(), 10u);
}

// mpmath 1.4, 40 digits: sqrt, exp, expm1, ..., log(abs(gamma(x))), digamma; sigmoid and softplus
// by their definitions.
TEST(OpsScalar, UnaryFigures) {
  const Case1 cases[] = {
      {"sqrt", 2.0, 1.4142135623730951},
      {"sqrt", 1e-300, 1e-150},
      {"exp", 1.0, 2.718281828459045},
      {"exp", -700.0, 9.85967654375977e-305},
      {"exp", 0.1, 1.1051709180756477},
      {"expm1", 1e-10, 1.00000000005e-10},
      {"expm1", -1e-10, -9.999999999500001e-11},
      {"expm1", 5.0, 147.4131591025766},
      {"expm1", -50.0, -1.0},
      {"log", 10.0, 2.302585092994046},
      {"log", 1e-300, -690.7755278982137},
      {"log1p", 1e-10, 9.999999999500001e-11},
      {"log1p", -0.5, -0.6931471805599453},
      {"log1p", 10000000000.0, 23.025850930040455},
      {"sin", 1.0, 0.8414709848078965},
      {"sin", 1000000.0, -0.34999350217129294},
      {"cos", 1.0, 0.5403023058681398},
      {"cos", -2.5, -0.8011436155469337},
      {"tan", 1.0, 1.5574077246549023},
      {"tan", -1.5, -14.101419947171719},
      {"tanh", 0.5, 0.46211715726000974},
      {"tanh", 1e-08, 1e-08},
      {"tanh", -20.0, -1.0},
      {"sigmoid", 0.3, 0.574442516811659},
      {"sigmoid", -40.0, 4.248354255291589e-18},
      {"sigmoid", -700.0, 9.85967654375977e-305},
      {"sigmoid", 40.0, 1.0},
      {"sigmoid", 2.0, 0.8807970779778824},
      {"softplus", 0.3, 0.8543552444685271},
      {"softplus", -40.0, 4.248354255291589e-18},
      {"softplus", -700.0, 9.85967654375977e-305},
      {"softplus", 40.0, 40.0},
      {"softplus", 800.0, 800.0},
      {"reciprocal", 3.0, 0.3333333333333333},
      {"erf", 0.5, 0.5204998778130465},
      {"erf", -1.5, -0.9661051464753108},
      {"erf", 1e-10, 1.1283791670955126e-10},
      {"lgamma", 0.5, 0.5723649429247001},
      {"lgamma", 10.5, 13.940625219403763},
      {"lgamma", -2.5, -0.056243716497674054},
      {"lgamma", 10000000000.0, 220258509288.81058},
      {"digamma", 1.0, -0.5772156649015329},
      {"digamma", 0.1, -10.423754940411076},
      {"digamma", 10.5, 2.3030010342976865},
      {"digamma", -2.5, 1.103156640645243},
      {"digamma", 10000000000.0, 23.025850929890456},
  };
  for (const Case1& c : cases) {
    EXPECT_TRUE(close(call1(c.name, c.x), c.want, 2e-15))
        << c.name << "(" << c.x << ") = " << call1(c.name, c.x);
  }
}

TEST(OpsScalar, UnaryExact) {
  const Case1 cases[] = {
      {"-", 2, -2},        {"-", kInf, -kInf},      {"not", 0, 1},        {"not", -0.0, 1},
      {"not", 3, 0},       {"not", kNan, 0},        {"abs", -2.5, 2.5},   {"abs", kNan, kNan},
      {"sign", -3, -1},    {"sign", 0, 0},          {"sign", kInf, 1},    {"sign", kNan, kNan},
      {"relu", -3, 0},     {"relu", 3, 3},          {"relu", kNan, kNan}, {"relu", -kInf, 0},
      {"square", -3, 9},   {"reciprocal", 0, kInf}, {"floor", -1.5, -2},  {"ceil", -1.5, -1},
      {"round", 0.5, 0},   {"round", 1.5, 2},       {"round", 2.5, 2},    {"round", -0.5, 0},
      {"round", -3.5, -4}, {"round", kInf, kInf},   {"isnan", kNan, 1},   {"isnan", kInf, 0},
  };
  for (const Case1& c : cases) {
    EXPECT_TRUE(close(call1(c.name, c.x), c.want, 0)) << c.name << "(" << c.x << ")";
  }
}

TEST(OpsScalar, UnaryAtTheEndsOfTheRange) {
  const Case1 cases[] = {
      {"sqrt", -1, kNan},       {"sqrt", kInf, kInf},       {"exp", 1000, kInf},
      {"exp", -kInf, 0},        {"expm1", -kInf, -1},       {"expm1", kInf, kInf},
      {"log", 0, -kInf},        {"log", -1, kNan},          {"log", kInf, kInf},
      {"log1p", -1, -kInf},     {"log1p", -2, kNan},        {"log1p", kInf, kInf},
      {"sin", kInf, kNan},      {"tanh", kInf, 1},          {"tanh", -kInf, -1},
      {"sigmoid", kInf, 1},     {"sigmoid", -kInf, 0},      {"sigmoid", -1000, 0},
      {"sigmoid", 1000, 1},     {"sigmoid", kNan, kNan},    {"softplus", kInf, kInf},
      {"softplus", -kInf, 0},   {"softplus", 1e308, 1e308}, {"softplus", -1000, 0},
      {"softplus", kNan, kNan}, {"erf", kInf, 1},           {"erf", -kInf, -1},
      {"lgamma", 0, kInf},      {"lgamma", -1, kInf},       {"lgamma", -7, kInf},
      {"lgamma", kInf, kInf},   {"lgamma", kNan, kNan},     {"digamma", 0, kNan},
      {"digamma", -1, kNan},    {"digamma", -1e300, kNan},  {"digamma", kInf, kInf},
      {"digamma", -kInf, kNan}, {"digamma", kNan, kNan},
  };
  for (const Case1& c : cases) {
    EXPECT_TRUE(close(call1(c.name, c.x), c.want, 0))
        << c.name << "(" << c.x << ") = " << call1(c.name, c.x);
  }
}

// mod: numpy.mod of NumPy 2.4.
TEST(OpsScalar, Binary) {
  const Case2 cases[] = {
      {"+", 1, 2, 3},
      {"-", 1, 2, -1},
      {"*", 3, 2, 6},
      {"/", 3, 2, 1.5},
      {"/", 1, 0, kInf},
      {"/", 0, 0, kNan},
      {"^", 2, 10, 1024},
      {"^", 2, -1, 0.5},
      {"^", -8, 3, -512},
      {"^", -8, 0.5, kNan},
      {"^", 0, 0, 1},
      {"^", kNan, 0, 1},
      {"and", 1, 0, 0},
      {"and", 2, -1, 1},
      {"and", kNan, 1, 1},
      {"and", kNan, 0, 0},
      {"or", 0, 0, 0},
      {"or", 0, 5, 1},
      {"or", kNan, 0, 1},
      {"min", 1, 2, 1},
      {"min", kNan, 1, kNan},
      {"min", 1, kNan, kNan},
      {"min", -kInf, kNan, kNan},
      {"max", 1, 2, 2},
      {"max", kNan, 1, kNan},
      {"max", 1, kNan, kNan},
      {"max", -kInf, 3, 3},
      {"mod", 7, 3, 1},
      {"mod", -7, 3, 2},
      {"mod", 7, -3, -2},
      {"mod", -7, -3, -1},
      {"mod", 5.5, 2, 1.5},
      {"mod", -5, kInf, kInf},
      {"mod", 5, -kInf, -kInf},
      {"mod", -6, 3, 0},
      {"mod", 1, 0, kNan},
      {"mod", kInf, 2, kNan},
      {"mod", kNan, 2, kNan},
      {"atan2", 0, 1, 0},
      {"atan2", 1, 0, 1.5707963267948966},
      {"atan2", -1, -1, -2.356194490192345},
  };
  for (const Case2& c : cases) {
    EXPECT_TRUE(close(call2(c.name, c.x, c.y), c.want, 1e-15))
        << c.name << "(" << c.x << ", " << c.y << ") = " << call2(c.name, c.x, c.y);
  }
  EXPECT_TRUE(std::signbit(call2("mod", 6, -3)));
  EXPECT_FALSE(std::signbit(call2("mod", -6, 3)));
}

TEST(OpsScalar, Comparisons) {
  const struct {
    const char* name;
    double less, equal, greater, with_nan;
  } cases[] = {{"==", 0, 1, 0, 0}, {"!=", 1, 0, 1, 1}, {"<", 1, 0, 0, 0},
               {"<=", 1, 1, 0, 0}, {">", 0, 0, 1, 0},  {">=", 0, 1, 1, 0}};
  for (const auto& c : cases) {
    EXPECT_EQ(call2(c.name, 1, 2), c.less) << c.name;
    EXPECT_EQ(call2(c.name, 2, 2), c.equal) << c.name;
    EXPECT_EQ(call2(c.name, 2, -kInf), c.greater) << c.name;
    EXPECT_EQ(call2(c.name, kNan, kNan), c.with_nan) << c.name;
    EXPECT_EQ(call2(c.name, 1, kNan), c.with_nan) << c.name;
  }
}

// mpmath 1.4, 40 digits: erfc(x/sqrt(2))/2, betainc(..., regularized=True),
// gammainc(..., regularized=True); quantiles by findroot on the logarithm of these.
TEST(OpsScalar, DistributionFigures) {
  const CaseN cases[] = {
      {"normal_cdf", {1.96}, 0.9750021048517795},
      {"normal_cdf", {-8.0}, 6.220960574271784e-16},
      {"normal_cdf", {-37.5}, 4.605353009581955e-308},
      {"normal_cdf", {0.0}, 0.5},
      {"normal_sf", {1.96}, 0.024997895148220435},
      {"normal_sf", {8.0}, 6.220960574271784e-16},
      {"normal_sf", {37.5}, 4.605353009581955e-308},
      {"normal_sf", {-1.0}, 0.8413447460685429},
      {"normal_quantile", {0.975}, 1.9599639845400538},
      {"normal_quantile", {1e-300}, -37.0470962993612},
      {"normal_quantile", {0.3}, -0.5244005127080408},
      {"normal_quantile", {0.499999999999}, -2.5065728237018603e-12},
      {"t_cdf", {2.0, 5.0}, 0.9490302605850708},
      {"t_cdf", {-40.0, 3.0}, 1.7190340394579263e-05},
      {"t_cdf", {-6.0, 1000000.0}, 9.869249061772174e-10},
      {"t_cdf", {0.5, 0.5}, 0.6213409635352817},
      {"t_sf", {2.0, 5.0}, 0.05096973941492918},
      {"t_sf", {40.0, 3.0}, 1.7190340394579263e-05},
      {"t_sf", {30.0, 100.0}, 4.190166279344146e-52},
      {"t_sf", {1e+160, 1.5}, 3.770852432016246e-241},
      {"t_quantile", {0.975, 10.0}, 2.2281388519862744},
      {"t_quantile", {1e-12, 4.0}, -1316.0727465592565},
      {"t_quantile", {0.3, 2.5}, -0.5973077382523175},
      {"chi2_cdf", {3.84, 1.0}, 0.9499564787512949},
      {"chi2_cdf", {1e-06, 3.0}, 2.659614404791799e-10},
      {"chi2_cdf", {90.0, 100.0}, 0.24680203440017026},
      {"chi2_sf", {3.84, 1.0}, 0.050043521248705106},
      {"chi2_sf", {500.0, 10.0}, 4.414736099913731e-101},
      {"chi2_sf", {1200.0, 1000.0}, 1.2255942330622905e-05},
      {"f_cdf", {3.0, 2.0, 10.0}, 0.904632568359375},
      {"f_cdf", {0.01, 30.0, 0.5}, 2.0309665571490337e-08},
      {"f_sf", {3.0, 2.0, 10.0}, 0.095367431640625},
      {"f_sf", {200.0, 5.5, 100.0}, 5.801896614196936e-52},
  };
  for (const CaseN& c : cases) {
    EXPECT_TRUE(close(distribution(c.name, c.args), c.want, 1e-13))
        << c.name << "(" << c.args[0] << ", ...) = " << distribution(c.name, c.args);
  }
}

TEST(OpsScalar, DistributionsAtTheEndsOfTheirDomains) {
  const CaseN cases[] = {
      {"normal_cdf", {kInf}, 1},
      {"normal_cdf", {-kInf}, 0},
      {"normal_sf", {kInf}, 0},
      {"normal_sf", {-kInf}, 1},
      {"normal_cdf", {kNan}, kNan},
      {"normal_quantile", {0}, -kInf},
      {"normal_quantile", {1}, kInf},
      {"normal_quantile", {0.5}, 0},
      {"normal_quantile", {-0.1}, kNan},
      {"normal_quantile", {1.1}, kNan},
      {"normal_quantile", {kNan}, kNan},
      {"t_cdf", {kInf, 3}, 1},
      {"t_cdf", {-kInf, 3}, 0},
      {"t_cdf", {0, 3}, 0.5},
      {"t_cdf", {1, 0}, kNan},
      {"t_cdf", {1, -2}, kNan},
      {"t_cdf", {kNan, 3}, kNan},
      {"t_cdf", {1, kNan}, kNan},
      {"t_sf", {kInf, 3}, 0},
      {"t_quantile", {0, 3}, -kInf},
      {"t_quantile", {1, 3}, kInf},
      {"t_quantile", {2, 3}, kNan},
      {"t_quantile", {0.5, 3}, 0},
      {"chi2_cdf", {-1, 3}, 0},
      {"chi2_cdf", {0, 3}, 0},
      {"chi2_cdf", {kInf, 3}, 1},
      {"chi2_cdf", {1, 0}, kNan},
      {"chi2_cdf", {1, kInf}, 0},
      {"chi2_sf", {-1, 3}, 1},
      {"chi2_sf", {kInf, 3}, 0},
      {"chi2_sf", {1, -1}, kNan},
      {"chi2_sf", {kNan, 3}, kNan},
      {"f_cdf", {-1, 2, 3}, 0},
      {"f_cdf", {kInf, 2, 3}, 1},
      {"f_cdf", {1, 0, 3}, kNan},
      {"f_cdf", {1, 2, kNan}, kNan},
      {"f_sf", {0, 2, 3}, 1},
      {"f_sf", {kInf, 2, 3}, 0},
      {"f_sf", {2, kInf, kInf}, 0},
      {"f_cdf", {2, kInf, kInf}, 1},
  };
  for (const CaseN& c : cases) {
    EXPECT_TRUE(close(distribution(c.name, c.args), c.want, 0))
        << c.name << "(" << c.args[0] << ", ...) = " << distribution(c.name, c.args);
  }
}

TEST(OpsScalar, InfiniteFreedomIsTheLimit) {
  EXPECT_EQ(distribution("t_cdf", {1.3, kInf}), distribution("normal_cdf", {1.3}));
  EXPECT_EQ(distribution("t_quantile", {0.2, kInf}), distribution("normal_quantile", {0.2}));
  EXPECT_EQ(distribution("f_sf", {1.5, 4, kInf}), distribution("chi2_sf", {6, 4}));
  EXPECT_EQ(distribution("f_sf", {1.5, kInf, 4}), distribution("chi2_cdf", {4 / 1.5, 4}));
}

TEST(OpsScalar, QuantilesInvertDistributions) {
  for (const double df : {0.5, 1.0, 2.0, 3.0, 7.5, 40.0, 1e4}) {
    for (const double p : {1e-250, 1e-100, 1e-20, 1e-3, 0.2, 0.5, 0.9, 0.999}) {
      const double x = distribution("t_quantile", {p, df});
      if (std::isinf(x)) continue;  // half a degree of freedom: beyond the largest double
      EXPECT_TRUE(close(distribution("t_cdf", {x, df}), p, 1e-11)) << p << ", " << df;
    }
  }
  for (const double p : {1e-300, 1e-10, 0.3, 0.5, 0.99}) {
    EXPECT_TRUE(
        close(distribution("normal_cdf", {distribution("normal_quantile", {p})}), p, 1e-12));
  }
}

TEST(OpsScalar, MapsBroadcast) {
  const Tensor column({2, 1}, {10, 20});
  expect_tensor(apply1(row(binary_ops(), "+").meaning, {vec({1, 2, 3}), column}), {2, 3},
                {11, 12, 13, 21, 22, 23});
  expect_tensor(apply1(row(distribution_ops(), "chi2_cdf").meaning, {vec({-1, kInf}), column}),
                {2, 2}, {0, 1, 0, 1});
  expect_tensor(
      apply1(row(distribution_ops(), "f_sf").meaning, {vec({-1, kInf}), column, Tensor::scalar(3)}),
      {2, 2}, {1, 0, 1, 0});
  // No records: an axis of length 0 stretches a 1 and meets no values.
  expect_tensor(apply1(row(binary_ops(), "*").meaning, {Tensor(Shape{0, 3}), vec({1, 2, 3})}),
                {0, 3}, {});
  expect_tensor(apply1(row(binary_ops(), "*").meaning, {Tensor(Shape{2, 0}), column}), {2, 0}, {});
  expect_tensor(apply1(row(unary_ops(), "exp").meaning, {Tensor(Shape{0})}), {0}, {});
}

}  // namespace
}  // namespace starfold::testing

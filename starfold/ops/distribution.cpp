// Shared-only extension: distribution functions, element-wise by broadcasting.
#include "starfold/ops/derivative.h"
#include "starfold/ops/meaning.h"
#include "starfold/ops/special.h"
#include "starfold/ops/standard.h"
#include "starfold/signature/typing.h"

namespace starfold {
namespace {

Op row(const char* name, int arity, const char* parameters, DerivativeRule derivative,
       const char* doc) {
  constexpr const char* kRules[] = {"Sh(s) -> Sh(s)", "Sh(s), Sh(t) -> Sh(broadcast(s, t))",
                                    "Sh(s), Sh(t), Sh(u) -> Sh(broadcast(s, t, u))"};
  Op op;
  op.name = name;
  op.family = Family::shared_only;
  op.min_args = op.max_args = arity;
  op.surface = op.name + "(" + parameters + ")";
  op.rule = kRules[arity - 1];
  op.doc = doc;
  op.derivative = derivative;
  op.type = typing::shared_broadcasting;
  return op;
}

Op row1(const char* name, const char* parameters, double (*map)(double), DerivativeRule derivative,
        const char* doc) {
  Op op = row(name, 1, parameters, derivative, doc);
  op.map1 = map;
  op.meaning = [map](const Application& a) { return meaning::map_unary(map, a); };
  return op;
}

Op row2(const char* name, const char* parameters, double (*map)(double, double),
        DerivativeRule derivative, const char* doc) {
  Op op = row(name, 2, parameters, derivative, doc);
  op.map2 = map;
  op.meaning = [map](const Application& a) { return meaning::map_binary(map, a); };
  return op;
}

Op row3(const char* name, const char* parameters, double (*map)(double, double, double),
        DerivativeRule derivative, const char* doc) {
  Op op = row(name, 3, parameters, derivative, doc);
  op.meaning = [map](const Application& a) { return meaning::map_ternary(map, a); };
  return op;
}

}  // namespace

std::vector<Op> distribution_ops() {
  using namespace special;
  std::vector<Op> ops = {
      row1("normal_cdf", "x", normal_cdf, derivative::normal_cdf,
           "P(Z <= x) of a standard normal Z"),
      row1("normal_sf", "x", normal_sf, derivative::normal_sf,
           "P(Z > x) of a standard normal Z, exact in the far tail"),
      row1("normal_quantile", "p", normal_quantile, derivative::normal_quantile,
           "the x with normal_cdf(x) = p"),
      row2("t_cdf", "x, df", t_cdf, derivative::t_cdf,
           "P(T <= x) of Student's t with df degrees of freedom"),
      row2("t_sf", "x, df", t_sf, derivative::t_sf,
           "P(T > x) of Student's t, exact in the far tail"),
      row2("t_quantile", "p, df", t_quantile, derivative::t_quantile,
           "the x with t_cdf(x, df) = p"),
      row2("chi2_cdf", "x, df", chi2_cdf, derivative::chi2_cdf,
           "P(X <= x) of chi-squared with df degrees of freedom"),
      row2("chi2_sf", "x, df", chi2_sf, derivative::chi2_sf,
           "P(X > x) of chi-squared, exact in the far tail"),
      row3("f_cdf", "x, d1, d2", f_cdf, derivative::f_cdf,
           "P(X <= x) of F with d1 and d2 degrees of freedom"),
      row3("f_sf", "x, d1, d2", f_sf, derivative::f_sf, "P(X > x) of F, exact in the far tail"),
  };
  for (Op& op : ops) {
    if (!op.name.ends_with("_quantile")) op.range = range::unit;
  }
  return ops;
}

}  // namespace starfold

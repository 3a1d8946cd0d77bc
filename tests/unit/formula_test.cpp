// Formulas: how they are read and written, which terms they mean. What designs they make is compared with R in tests/e2e.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "starfold/formula/design.h"
#include "starfold/formula/distinctions.h"

namespace starfold::formula {
namespace {

std::string again(const std::string& text) { return to_text(parse_formula(text)); }

TEST(Formula, HasTheLayoutOfR) {
  EXPECT_EQ(again("y~a*b"), "y ~ a * b");
  EXPECT_EQ(again("y ~ a : b / c %in% d ^ 2 - 1"), "y ~ a:b/c %in% d^2 - 1");
  EXPECT_EQ(again("y~poly( x,2,raw=TRUE )"), "y ~ poly(x, 2, raw = TRUE)");
  EXPECT_EQ(again("y ~ I(-x^2) + I(a>=b&!c|d)"), "y ~ I(-x^2) + I(a >= b & !c | d)");
  EXPECT_EQ(again("~a+b|ward"), "~a + b | ward");
  EXPECT_EQ(again("y ~ C(w,'b')"), "y ~ C(w, \"b\")");
  EXPECT_EQ(again("~`my col` + `ok`"), "~`my col` + ok");
  EXPECT_EQ(again("y ~ a**2"), "y ~ a^2");
  EXPECT_EQ(again("y ~ I(100000*x+123456+0.0001+0.001+.5+2L+1e300)"),
            "y ~ I(1e+05 * x + 123456 + 1e-04 + 0.001 + 0.5 + 2 + 1e+300)");
}

TEST(Formula, ReadsWhatItWrites) {
  for (const char* text : {"y ~ a * b", "~x", "y ~ -a + (b - c)", "y ~ I(2^-x)",
                           "y ~ f(a, b = 2, \"t\\\"u\")", "y ~ a - -b"}) {
    EXPECT_EQ(again(again(text)), again(text)) << text;
  }
}

std::string message(const std::string& text) {
  try {
    const Formula formula = parse_formula(text);
    const Design design(formula, [&](const std::string& name, const Expr& at) -> Variable {
      if (name == "none") throw FormulaError(formula, at, "there is no column none");
      if (name == "ward") return {Variable::Kind::factor, {"a", "b", "c"}};
      return {};
    });
    return "";
  } catch (const FormulaError& error) {
    return error.what();
  }
}

TEST(Formula, SaysWhatIsWrongAndWhere) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "it is empty"},
      {"y", "has a response, `~`"},
      {"y = x", "not `=`"},
      {"y ~", "nothing stands behind"},
      {"y ~ x ~ z", "one `~`"},
      {"y ~ (x", "not closed"},
      {"y ~ x)", "does not belong here"},
      {"y ~ x +", "missing at the end"},
      {"y ~ x $ z", "has no meaning"},
      {"y ~ \"x\"", "without quotes"},
      {"y ~ 2 * x", "I(2 * x)"},
      {"y ~ x^-1", "I(x^-1)"},
      {"y ~ x + 3", "only 1"},
      {"y ~ y + x", "cannot explain itself"},
      {"y ~ x - none", "there is no column none"},
      {"y ~ lg(x)", "did you mean log?"},
      {"y ~ np.log(x)", "write log"},
      {"y ~ ln(x)", "natural logarithm"},
      {"y ~ scale(x)", "standardize"},
      {"y ~ ns(x, 3)", "raw = TRUE"},
      {"y ~ poly(x, 2)", "raw = TRUE"},
      {"y ~ poly(x, 99, raw = TRUE)", "from 1 to 30"},
      {"y ~ log(ward)", "as.numeric(ward)"},
      {"y ~ C(x)", "not declared"},
      {"y ~ C(ward, \"d\")", "none of the declared levels"},
      {"y ~ I(ward == \"d\")", "none of the declared levels"},
      {"y ~ none", "there is no column none"},
      {"y ~ (1 | ward)", "random effects"},
      {"y ~ x && z", "write &"},
      {"y ~ offset()", "one value"},
      {"y ~ offset(ward)", "a number for each record"},
      {"y ~ log(.)", "not inside a function"},
      {"y ~ `a", "not closed"},
      {"y ~ I(1e999)", "no number"},
      {"y ~ x + \xff", "no text"},
  };
  for (const auto& [text, part] : rows)
    EXPECT_NE(message(text).find(part), std::string::npos) << text << ": " << message(text);
  EXPECT_EQ(
      message("y ~ x + lg(z)"),
      "formula: there is no function lg; did you mean log?\n  y ~ x + lg(z)\n          ^^^^^");
}

TEST(Formula, HostileOnesEndSoon) {
  EXPECT_NE(
      message("y ~ " + std::string(1000, '(') + "x" + std::string(1000, ')')).find("too deep"),
      std::string::npos);
  EXPECT_NE(message("y ~ " + std::string(1000, '-') + "x").find("too deep"), std::string::npos);
  std::string sum = "y ~ (a1";
  for (int i = 2; i < 40; ++i) sum += " + a" + std::to_string(i);
  EXPECT_NE(message(sum + ")^6").find("terms"), std::string::npos);
  std::string long_one = "y ~ a";
  for (int i = 0; i < 20000; ++i) long_one += "+a";
  EXPECT_NE(message(long_one).find("words"), std::string::npos);
  EXPECT_NE(message("y ~ " + std::string(100000, 'a')).find("longer"), std::string::npos);
  EXPECT_EQ(message("y ~ (a + b)^1e300"), "");  // all that can be is there soon
}

TEST(Formula, MissingValuesSpread) {
  const Formula formula = parse_formula("~ log(x) + I(x > 1) + ward:x");
  const Design design(formula, [](const std::string& name, const Expr&) -> Variable {
    if (name == "ward") return {Variable::Kind::factor, {"a", "b"}};
    return {};
  });
  const double nan = std::nan("");
  const double x[] = {1, -1, nan, 0};
  const double ward[] = {1, 2, 1, nan};
  std::vector<std::vector<double>> results(design.columns().size(), std::vector<double>(4));
  std::vector<double*> to;
  for (std::vector<double>& column : results) to.push_back(column.data());
  DesignFlaws flaws{std::vector<std::int64_t>(3), std::vector<std::int64_t>(3)};
  std::vector<char> undefined(4);
  const double* sources[] = {x, ward};
  design.compute(sources, 4, nullptr, to, flaws, undefined.data());
  EXPECT_EQ(design.sources(), (std::vector<std::string>{"x", "ward"}));
  EXPECT_EQ(flaws.undefined[0], 1);  // the logarithm of -1, not that of a missing value
  EXPECT_EQ(flaws.infinite[0], 1);
  EXPECT_EQ(undefined, (std::vector<char>{0, 1, 0, 0}));
  EXPECT_TRUE(std::isnan(results[0][2]) && std::isnan(results[1][2]) && std::isnan(results[2][3]));
}

TEST(Formula, AFactorHasALevel) {
  const auto empty_factor = [](const std::string&, const Expr&) {
    Variable variable;
    variable.kind = Variable::Kind::factor;
    return variable;
  };
  for (const char* text : {"y ~ g", "y ~ x:g", "g ~ x", "~ 0 + g"})
    EXPECT_THROW(Design(parse_formula(text), empty_factor), FormulaError) << text;
}

// What tells records apart is a formula itself, with a number for every record.
TEST(Formula, TellsWhatItChoosesBy) {
  const auto sums = [](const std::string& text) {
    const Formula formula = parse_formula(text);
    std::map<std::string, double> found;
    const auto distinctions = distinctions_in(
        formula, [](const std::string&) { return false; }, 64, 1000);
    for (const Distinction& each : distinctions.value()) {
      const std::string written = "~ " + to_text(each.told);
      EXPECT_EQ(again(written), "~" + to_text(each.told));
      const Design design(parse_formula(written),
                          [](const std::string&, const Expr&) { return Variable(); });
      const double id[] = {1, 2, 3, 4, 5};
      std::vector<double> values(5);
      double* to[] = {values.data()};
      const double* sources[] = {id};
      DesignFlaws flaws{std::vector<std::int64_t>(1), std::vector<std::int64_t>(1)};
      design.compute(sources, 5, nullptr, to, flaws, nullptr);
      EXPECT_EQ(flaws.undefined[0] + flaws.infinite[0], 0) << written;
      double& records = found.emplace(each.what, 5).first->second;
      const auto not_zero = static_cast<double>(
          std::count_if(values.begin(), values.end(), [](double x) { return x != 0; }));
      if (not_zero > 0) records = std::min(records, not_zero);
    }
    return found;
  };
  const std::string together = "(id < 3) + (id > 3) by id < 3 and id > 3";
  EXPECT_EQ(sums("~ I((id < 3) + (id > 3))").at(together), 1);
  EXPECT_EQ(sums("~ I(id < 3)").at("id < 3 by id < 3"), 2);
  EXPECT_EQ(sums("~ I(sign(id - 3)^2)").at("sign(id - 3)^2 by sign(id - 3)"), 1);
  EXPECT_EQ(
      sums("~ I((id < 3) + 1):I(id > 3)").at("((id < 3) + 1) * (id > 3) by id < 3 and id > 3"), 2);
  EXPECT_EQ(sums("~ ifelse(id - 3, log(id - 3.5), 1)").count("id - 3 != 0 by id - 3 != 0"), 1u);
  EXPECT_TRUE(sums("~ id + log(id)").empty());

  // Of many choices the cases would fill the memory: they are not made.
  std::string signs = "sign(id)";
  for (int i = 1; i < 600; ++i) signs += " + sign(id - " + std::to_string(i) + ")";
  EXPECT_FALSE(distinctions_in(
      parse_formula("~ I(" + signs + ")"), [](const std::string&) { return false; }, 64, 1000));
}

}  // namespace
}  // namespace starfold::formula

#include "starfold/formula/compute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "starfold/base/suggest.h"

namespace starfold::formula {
namespace {

using Kind = Expr::Kind;
using Step = Computation::Step;

class Compiler {
 public:
  Compiler(const Formula& formula, const FindVariable& find, std::vector<std::string>& sources)
      : formula_(formula), find_(find), sources_(sources) {}

  Computation compile(const Expr& expr) {
    if (expr.is_call("poly")) {
      poly(expr);
    } else {
      result_.type = value(expr);
    }
    if (result_.type.kind == Variable::Kind::factor && result_.type.codes)
      result_.type = {};  // its numbers are meant
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const Expr& at, const std::string& what) const {
    throw FormulaError(formula_, at, what);
  }

  std::size_t add(Step step) {
    result_.steps.push_back(std::move(step));
    return result_.steps.size() - 1;
  }

  // Adds the steps of an expression; what its value is. The last step has it.
  Variable value(const Expr& expr) {
    switch (expr.kind) {
      case Kind::number:
        add({Step::Kind::constant, 0, expr.value, nullptr, {}});
        return {};
      case Kind::text:
        fail(expr, "a text can only be compared with a factor: sex == \"m\"");
      case Kind::name:
        return name(expr);
      case Kind::named:
        fail(expr, fmt::format("{} is no argument here", expr.text));
      case Kind::call:
        break;
    }
    if (expr.text == "(" || expr.text == "I") return value(only_argument(expr));
    if (is_factor_call(expr)) return factor(expr);
    if (expr.text == "as.numeric" || expr.text == "as.integer") {
      value(only_argument(expr));
      return {};
    }
    if (expr.text == "poly")
      fail(expr, "poly() is a variable of its own, not inside another function");
    if (expr.text == "~") fail(expr, "a formula has one `~`");
    if ((expr.text == "==" || expr.text == "!=") && expr.args.size() == 2 &&
        (expr.args[0].kind == Kind::text || expr.args[1].kind == Kind::text))
      return level_comparison(expr);
    return call(expr);
  }

  const Expr& only_argument(const Expr& expr) const {
    if (expr.args.size() != 1 || expr.args[0].kind == Kind::named)
      fail(expr, fmt::format("{}() takes one argument", expr.text));
    return expr.args[0];
  }

  Variable name(const Expr& expr) {
    if (expr.text == "TRUE" || expr.text == "FALSE") {
      add({Step::Kind::constant, 0, expr.text == "TRUE" ? 1.0 : 0.0, nullptr, {}});
      return {Variable::Kind::truth};
    }
    if (expr.text == "pi") {
      // R's constant, unless a column has its name.
      try {
        return column(expr);
      } catch (const FormulaError&) {
        add({Step::Kind::constant, 0, 3.14159265358979323846, nullptr, {}});
        return {};
      }
    }
    return column(expr);
  }

  Variable column(const Expr& expr) {
    Variable variable = find_(expr.text, expr);
    const auto known = std::find(sources_.begin(), sources_.end(), expr.text);
    add({Step::Kind::source, static_cast<std::size_t>(known - sources_.begin()), 0, nullptr, {}});
    if (known == sources_.end()) sources_.push_back(expr.text);
    return variable;
  }

  // --- factors

  static bool is_factor_call(const Expr& expr) {
    return expr.is_call("C") || expr.is_call("factor") || expr.is_call("as.factor") ||
           expr.is_call("relevel");
  }

  // C(ward), C(ward, "b"), relevel(ward, ref = "b").
  Variable factor(const Expr& expr) {
    const bool may_have = expr.text == "C" || expr.text == "relevel";
    if (expr.args.empty() || expr.args.size() > (may_have ? 2U : 1U) ||
        expr.args[0].kind == Kind::named)
      fail(expr,
           fmt::format("{} takes a column{}", expr.text,
                       may_have ? " and, if you like, its reference level: C(ward, \"b\")" : ""));
    const Expr* inner = &expr.args[0];
    while (inner->is_call("(")) inner = &inner->args[0];
    Variable variable = is_factor_call(*inner) ? factor(*inner) : factor_column(*inner);
    variable.codes = false;
    if (expr.args.size() == 2) variable.reference = reference(expr.args[1], variable);
    variable.reference_first = variable.reference_first || expr.text == "relevel";
    return variable;
  }

  Variable factor_column(const Expr& expr) {
    if (expr.kind != Kind::name) fail(expr, "only a column of the data can be a factor");
    Variable variable = column(expr);
    if (variable.kind == Variable::Kind::truth) {
      variable.levels = {"FALSE", "TRUE"};
      return variable;
    }
    if (variable.kind != Variable::Kind::factor)
      fail(expr, fmt::format("the levels of {0} are not declared; clients must agree on them: "
                             "[categorical.{0}] levels = [...] in the study, or --levels {0}=a,b",
                             quoted_name(expr.text)));
    return variable;
  }

  std::size_t reference(const Expr& argument, const Variable& variable) const {
    const Expr& written = argument.kind == Kind::named ? argument.args[0] : argument;
    if (argument.kind == Kind::named && argument.text != "ref" && argument.text != "reference" &&
        argument.text != "base")
      fail(argument, fmt::format("{} is no argument here; write ref = \"b\"", argument.text));
    std::string level;
    if (written.kind == Kind::text || written.kind == Kind::name) level = written.text;
    if (written.kind == Kind::number) level = to_text(written);
    if (written.is_call("Treatment") && written.args.size() == 1)
      return reference(written.args[0], variable);  // as patsy writes it
    if (level.empty()) fail(written, "a reference level is written as a text: C(ward, \"b\")");
    const auto found = std::find(variable.levels.begin(), variable.levels.end(), level);
    if (found == variable.levels.end()) {
      const std::string near = nearest(level, variable.levels);
      fail(written, fmt::format("{} is none of the declared levels{}", level,
                                near.empty() ? "" : fmt::format("; did you mean {}?", near)));
    }
    return static_cast<std::size_t>(found - variable.levels.begin());
  }

  // sex == "m": by the number of the level.
  Variable level_comparison(const Expr& expr) {
    const bool text_first = expr.args[0].kind == Kind::text;
    const Expr& written = expr.args[text_first ? 0 : 1];
    const Expr& side = expr.args[text_first ? 1 : 0];
    const Variable variable = value(side);
    const std::size_t number = result_.steps.size() - 1;
    if (variable.kind != Variable::Kind::factor)
      fail(side, "only a column with declared levels can be compared with a text");
    const auto found = std::find(variable.levels.begin(), variable.levels.end(), written.text);
    if (found == variable.levels.end()) {
      const std::string near = nearest(written.text, variable.levels);
      fail(written, fmt::format("this is none of the declared levels{}",
                                near.empty() ? "" : fmt::format("; did you mean {}?", near)));
    }
    const std::size_t level = add({Step::Kind::constant,
                                   0,
                                   static_cast<double>(found - variable.levels.begin() + 1),
                                   nullptr,
                                   {}});
    add({Step::Kind::function, 0, 0, find_function(expr.text, 2), {number, level}});
    return {Variable::Kind::truth};
  }

  // --- numbers

  Variable call(const Expr& expr) {
    const Function* function = find_function(expr.text, expr.args.size());
    if (function == nullptr) fail(expr, function_help(expr.text, expr.args.size()));
    std::vector<std::size_t> args;
    bool truths = true;
    for (const Expr& arg : expr.args) {
      const bool base = expr.text == "log" && arg.kind == Kind::named && arg.text == "base";
      const Expr& operand = base ? arg.args[0] : arg;
      const Variable type = value(operand);
      if (type.kind == Variable::Kind::factor && !type.codes)
        fail(operand, fmt::format("{} has levels, and {} computes with numbers; compare it with a "
                                  "level, {} == \"{}\", or write as.numeric({})",
                                  to_text(operand), expr.text, to_text(operand),
                                  type.levels.front(), to_text(operand)));
      if (args.size() > 0 || expr.text != "ifelse")
        truths = truths && type.kind == Variable::Kind::truth;
      args.push_back(result_.steps.size() - 1);
    }
    add({Step::Kind::function, 0, 0, function, std::move(args)});
    const bool truth = function->truth || (expr.text == "ifelse" && truths);
    return {truth ? Variable::Kind::truth : Variable::Kind::number};
  }

  void poly(const Expr& expr) {
    constexpr double highest = 30;
    const Expr* degree = nullptr;
    const Expr* raw = nullptr;
    const Expr* coefs = nullptr;
    const Expr* argument = nullptr;
    for (const Expr& arg : expr.args) {
      const bool named = arg.kind == Kind::named;
      const Expr& given = named ? arg.args[0] : arg;
      if (named && arg.text == "degree") {
        degree = &given;
      } else if (named && arg.text == "raw") {
        raw = &given;
      } else if (named && arg.text == "coefs") {
        coefs = &given;
      } else if (named) {
        fail(arg, fmt::format("{} is no argument of poly(x, degree, raw = TRUE)", arg.text));
      } else if (argument == nullptr) {
        argument = &given;
      } else if (degree == nullptr) {
        degree = &given;
      } else if (raw == nullptr) {
        raw = &given;
      } else {
        fail(arg, "poly(x, degree, raw = TRUE) takes one column");
      }
    }
    if (argument == nullptr) fail(expr, "poly(x, degree, raw = TRUE) needs a column");
    if (value(*argument).kind == Variable::Kind::factor) fail(*argument, "a factor has no powers");
    double powers = 1;
    if (degree != nullptr) powers = degree->kind == Kind::number ? degree->value : 0;
    if (!(powers >= 1 && powers <= highest && powers == std::floor(powers)))
      fail(*degree, "a degree is a whole number from 1 to 30");
    const bool is_raw = raw != nullptr && raw->kind == Kind::name &&
                        (raw->text == "TRUE" || raw->text == "T" || raw->text == "raw");
    if (!is_raw && coefs == nullptr)
      fail(
          expr,
          "orthogonal polynomials are orthogonal over all records, which no client sees; "
          "`starfold run polynomial` finds their coefs = list(alpha = c(...), norm2 = c(...)), and "
          "poly(x, 2, raw = TRUE) spans the same space and gives the same fit");
    if (is_raw && coefs != nullptr) fail(*coefs, "powers have no coefs");
    result_.type = {};
    result_.width = static_cast<std::size_t>(powers);
    if (coefs != nullptr) recurrence(*coefs);
  }

  // list(alpha = c(...), norm2 = c(...)), as attr(poly(x, k), "coefs") of R.
  void recurrence(const Expr& coefs) {
    if (!coefs.is_call("list") || coefs.args.size() != 2 || coefs.args[0].kind != Kind::named ||
        coefs.args[1].kind != Kind::named || coefs.args[0].text != "alpha" ||
        coefs.args[1].text != "norm2")
      fail(coefs, "coefs are list(alpha = c(...), norm2 = c(...))");
    result_.alpha = numbers(coefs.args[0].args[0]);
    result_.norm2 = numbers(coefs.args[1].args[0]);
    if (result_.alpha.size() != result_.width || result_.norm2.size() != result_.width + 2)
      fail(coefs, fmt::format("for degree {} alpha has as many numbers and norm2 two more",
                              result_.width));
    for (const double norm : result_.norm2) {
      if (!(norm > 0)) fail(coefs.args[1], "norms are positive");
    }
    result_.norm2.erase(result_.norm2.begin());  // R has a 1 before them
  }

  std::vector<double> numbers(const Expr& list) const {
    std::vector<double> result;
    for (const Expr& entry : list.is_call("c") ? list.args : std::vector<Expr>{list}) {
      const bool minus = entry.is_call("-") && entry.args.size() == 1;
      const Expr& number = minus ? entry.args[0] : entry;
      if (number.kind != Kind::number) fail(entry, "a number must stand here");
      result.push_back(minus ? -number.value : number.value);
    }
    return result;
  }

  const Formula& formula_;
  const FindVariable& find_;
  std::vector<std::string>& sources_;
  Computation result_;
};

}  // namespace

std::vector<const double*> Computation::run(std::span<const double* const> sources,
                                            std::size_t count, Store& store) const {
  if (store.size() < steps.size() + width) store.resize(steps.size() + width);
  const auto room = [&](std::size_t place) {
    if (store[place].size() < count) store[place].resize(count);
    return store[place].data();
  };
  std::vector<const double*> values;
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    if (step.kind == Step::Kind::source) {
      values.push_back(sources[step.source]);
      continue;
    }
    double* to = room(s);
    values.push_back(to);
    if (step.kind == Step::Kind::constant) {
      std::fill_n(to, count, step.value);
      continue;
    }
    std::vector<const double*> args;
    for (const std::size_t arg : step.args) args.push_back(values[arg]);
    step.function->compute(args, count, to);
  }
  if (!alpha.empty()) return polynomials(values.back(), count, store);
  std::vector<const double*> columns = {values.back()};
  for (std::size_t power = 2; power <= width; ++power) {
    double* to = room(steps.size() + power - 1);
    const double* base = columns.front();
    for (std::size_t i = 0; i < count; ++i)
      to[i] = power == 2 ? base[i] * base[i] : std::pow(base[i], static_cast<double>(power));
    columns.push_back(to);
  }
  return columns;
}

// Those of degree 1, 2, ..., each from the two before it, then scaled to length 1 over the records of the norms.
std::vector<const double*> Computation::polynomials(const double* x, std::size_t count,
                                                    Store& store) const {
  const std::size_t first = store.size() - width;
  std::vector<const double*> columns;
  for (std::size_t k = 0; k < width; ++k) {
    std::vector<double>& to = store[first + k];
    if (to.size() < count) to.resize(count);
    const double ratio = k == 0 ? 0 : norm2[k] / norm2[k - 1];
    for (std::size_t i = 0; i < count; ++i) {
      const double before = k == 0 ? 1 : store[first + k - 1][i];
      const double earlier = k < 2 ? 1 : store[first + k - 2][i];
      to[i] = (x[i] - alpha[k]) * before - ratio * earlier;
    }
    columns.push_back(to.data());
  }
  for (std::size_t k = 0; k < width; ++k) {
    const double length = std::sqrt(norm2[k + 1]);
    for (std::size_t i = 0; i < count; ++i) store[first + k][i] /= length;
  }
  return columns;
}

bool Computation::uses(std::size_t source) const {
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
    return step.kind == Step::Kind::source && step.source == source;
  });
}

Computation compile(const Formula& formula, const Expr& expr, const FindVariable& find,
                    std::vector<std::string>& sources) {
  return Compiler(formula, find, sources).compile(expr);
}

}  // namespace starfold::formula

#include "starfold/formula/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "starfold/base/suggest.h"

namespace starfold::formula {
namespace {

using Args = std::span<const double* const>;

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

bool missing(double a) { return a != a; }

double truth(bool value) { return value ? 1 : 0; }

// R's remainder has the sign of the divisor.
double remainder_of(double a, double b) { return b == 0 ? nan_value : a - b * std::floor(a / b); }
double whole_quotient(double a, double b) { return std::floor(a / b); }

// Squares are the same to the last bit however they are written.
double power(double a, double b) { return b == 2 ? a * a : std::pow(a, b); }

// Missing unless the other side decides.
double both(double a, double b) {
  if (a == 0 || b == 0) return 0;
  return missing(a) || missing(b) ? nan_value : 1;
}
double either(double a, double b) {
  if ((a != 0 && !missing(a)) || (b != 0 && !missing(b))) return 1;
  return missing(a) || missing(b) ? nan_value : 0;
}

template <typename Compare>
double compared(double a, double b, Compare compare) {
  return missing(a) || missing(b) ? nan_value : truth(compare(a, b));
}

template <bool Less>
void extreme(Args args, std::size_t count, double* to) {
  std::copy_n(args[0], count, to);
  for (const double* arg : args.subspan(1)) {
    for (std::size_t i = 0; i < count; ++i) {
      if (missing(arg[i]) || (Less ? arg[i] < to[i] : arg[i] > to[i])) to[i] = arg[i];
    }
  }
}

void if_else(Args args, std::size_t count, double* to) {
  for (std::size_t i = 0; i < count; ++i)
    to[i] = missing(args[0][i]) ? nan_value : args[0][i] != 0 ? args[1][i] : args[2][i];
}

constexpr std::size_t many = 64;

const Function functions[] = {
    {"+", 1, 1, false, [](double a) { return a; }, nullptr, nullptr},
    {"+", 2, 2, false, nullptr, [](double a, double b) { return a + b; }, nullptr},
    {"-", 1, 1, false, [](double a) { return -a; }, nullptr, nullptr},
    {"-", 2, 2, false, nullptr, [](double a, double b) { return a - b; }, nullptr},
    {"*", 2, 2, false, nullptr, [](double a, double b) { return a * b; }, nullptr},
    {"/", 2, 2, false, nullptr, [](double a, double b) { return a / b; }, nullptr},
    {"^", 2, 2, false, nullptr, power, nullptr},
    {"%%", 2, 2, false, nullptr, remainder_of, nullptr},
    {"%/%", 2, 2, false, nullptr, whole_quotient, nullptr},
    {"==", 2, 2, true, nullptr,
     [](double a, double b) { return compared(a, b, std::equal_to<>()); }, nullptr},
    {"!=", 2, 2, true, nullptr,
     [](double a, double b) { return compared(a, b, std::not_equal_to<>()); }, nullptr},
    {"<", 2, 2, true, nullptr, [](double a, double b) { return compared(a, b, std::less<>()); },
     nullptr},
    {"<=", 2, 2, true, nullptr,
     [](double a, double b) { return compared(a, b, std::less_equal<>()); }, nullptr},
    {">", 2, 2, true, nullptr, [](double a, double b) { return compared(a, b, std::greater<>()); },
     nullptr},
    {">=", 2, 2, true, nullptr,
     [](double a, double b) { return compared(a, b, std::greater_equal<>()); }, nullptr},
    {"&", 2, 2, true, nullptr, both, nullptr},
    {"|", 2, 2, true, nullptr, either, nullptr},
    {"!", 1, 1, true, [](double a) { return missing(a) ? nan_value : truth(a == 0); }, nullptr,
     nullptr},
    {"log", 1, 1, false, [](double a) { return std::log(a); }, nullptr, nullptr},
    {"log", 2, 2, false, nullptr, [](double a, double b) { return std::log(a) / std::log(b); },
     nullptr},
    {"log2", 1, 1, false, [](double a) { return std::log2(a); }, nullptr, nullptr},
    {"log10", 1, 1, false, [](double a) { return std::log10(a); }, nullptr, nullptr},
    {"log1p", 1, 1, false, [](double a) { return std::log1p(a); }, nullptr, nullptr},
    {"exp", 1, 1, false, [](double a) { return std::exp(a); }, nullptr, nullptr},
    {"expm1", 1, 1, false, [](double a) { return std::expm1(a); }, nullptr, nullptr},
    {"sqrt", 1, 1, false, [](double a) { return std::sqrt(a); }, nullptr, nullptr},
    {"abs", 1, 1, false, [](double a) { return std::fabs(a); }, nullptr, nullptr},
    {"sign", 1, 1, false,
     [](double a) { return missing(a) ? nan_value : truth(a > 0) - truth(a < 0); }, nullptr,
     nullptr},
    {"floor", 1, 1, false, [](double a) { return std::floor(a); }, nullptr, nullptr},
    {"ceiling", 1, 1, false, [](double a) { return std::ceil(a); }, nullptr, nullptr},
    {"trunc", 1, 1, false, [](double a) { return std::trunc(a); }, nullptr, nullptr},
    {"round", 1, 1, false, [](double a) { return std::nearbyint(a); }, nullptr, nullptr},
    {"sin", 1, 1, false, [](double a) { return std::sin(a); }, nullptr, nullptr},
    {"cos", 1, 1, false, [](double a) { return std::cos(a); }, nullptr, nullptr},
    {"tan", 1, 1, false, [](double a) { return std::tan(a); }, nullptr, nullptr},
    {"tanh", 1, 1, false, [](double a) { return std::tanh(a); }, nullptr, nullptr},
    {"is.na", 1, 1, true, [](double a) { return truth(missing(a)); }, nullptr, nullptr},
    {"pmin", 1, many, false, nullptr, nullptr, extreme<true>},
    {"pmax", 1, many, false, nullptr, nullptr, extreme<false>},
    {"ifelse", 3, 3, false, nullptr, nullptr, if_else},
};

// What people bring from elsewhere, and what to write.
constexpr std::pair<std::string_view, std::string_view> foreign[] = {
    {"ln", "log(x) is the natural logarithm"},
    {"ceil", "write ceiling(x)"},
    {"where", "write ifelse(condition, yes, no)"},
    {"min", "write pmin(a, b): the smaller one for each record"},
    {"max", "write pmax(a, b): the larger one for each record"},
    {"pow", "write I(x^k)"},
    {"square", "write I(x^2)"},
    {"scale",
     "the mean and standard deviation of all records are not known before the run; the "
     "program can standardize: stats.standardize(x)"},
    {"standardize",
     "the mean and standard deviation of all records are not known before the run; "
     "the program can standardize: stats.standardize(x)"},
    {"center", "the mean of all records is not known before the run; subtract a number: I(x - 50)"},
    {"mean", "the mean of all records is not known before the run; subtract a number: I(x - 50)"},
    {"ns",
     "splines choose knots by all records; write a polynomial, poly(x, 3, raw = TRUE), or "
     "pieces, pmax(x - 50, 0)"},
    {"bs",
     "splines choose knots by all records; write a polynomial, poly(x, 3, raw = TRUE), or "
     "pieces, pmax(x - 50, 0)"},
    {"s",
     "splines choose knots by all records; write a polynomial, poly(x, 3, raw = TRUE), or "
     "pieces, pmax(x - 50, 0)"},
    {"cut", "write a column for each piece: I(x > 40 & x <= 60)"},
    {"quantile", "quantiles of all records are not known before the run"},
    {"rank", "ranks among all records are not known before the run"},
    {"lag", "records have no order between clients"},
    {"Treatment", "write the level itself: C(ward, \"b\")"},
    {"contr.treatment", "write the level without a column: C(ward, \"b\")"},
    {"contr.sum",
     "codings are those of contr.treatment; write the level without a column: C(ward, "
     "\"b\")"},
    {"contr.helmert",
     "codings are those of contr.treatment; write the level without a column: "
     "C(ward, \"b\")"},
    {"c", "lists of values have no meaning here; write (x == 1 | x == 2)"},
    {"Q", "a name of any signs is written in backticks: `my column`"},
};

}  // namespace

void Function::compute(Args args, std::size_t count, double* to) const {
  if (one != nullptr) {
    for (std::size_t i = 0; i < count; ++i) to[i] = one(args[0][i]);
  } else if (two != nullptr) {
    for (std::size_t i = 0; i < count; ++i) to[i] = two(args[0][i], args[1][i]);
  } else {
    several(args, count, to);
  }
}

const Function* find_function(std::string_view name, std::size_t arguments) {
  const auto* found =
      std::find_if(std::begin(functions), std::end(functions), [&](const auto& row) {
        return row.name == name && row.least <= arguments && arguments <= row.most;
      });
  return found == std::end(functions) ? nullptr : found;
}

std::string function_help(std::string_view name, std::size_t arguments) {
  for (const Function& row : functions) {
    if (row.name != name) continue;
    return fmt::format("{} takes {}, not {}", name,
                       row.least == row.most && row.least == 1 ? "one argument"
                       : row.most == many                      ? "arguments"
                                          : fmt::format("{} arguments", row.least),
                       arguments);
  }
  for (const std::string_view module :
       {"np.", "numpy.", "math.", "base::", "stats::", "splines::"}) {
    if (!name.starts_with(module)) continue;
    const std::string_view bare = name.substr(module.size());
    if (find_function(bare, arguments) != nullptr)
      return fmt::format("there is no function {}; write {}", name, bare);
    name = bare;
  }
  const auto* known = std::find_if(std::begin(foreign), std::end(foreign),
                                   [&](const auto& row) { return row.first == name; });
  if (known != std::end(foreign))
    return fmt::format("there is no function {}: {}", name, known->second);
  std::vector<std::string> names = {"poly", "C", "factor", "relevel", "offset", "I", "as.numeric"};
  for (const Function& row : functions) names.emplace_back(row.name);
  const std::string near = nearest(name, names);
  return fmt::format("there is no function {}{}", name,
                     near.empty() ? "; there are log, sqrt, exp, abs, pmin, pmax, ifelse, poly, I, "
                                    "C, offset and a few more"
                                  : fmt::format("; did you mean {}?", near));
}

}  // namespace starfold::formula

#include "starfold/check/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "starfold/base/analyses.h"
#include "starfold/base/embedded_lib.h"

namespace starfold {
namespace {

using Row = std::pair<std::string_view, std::string_view>;

// The length of an axis is not computed: it stands in the type.
constexpr std::string_view length_help =
    "`records(e)` is the number of records; the length of another axis is the size in its type, "
    "such as `p`";
constexpr std::string_view join_records_help =
    "`concat[j](a, b)` joins along an ordinary axis; records of two values cannot be joined";

// Functions that are here under another name, or are written with others.
constexpr Row functions[] = {
    // sums and moments
    {"avg", "write `mean[axes](e)`"},
    {"average", "write `mean[axes](e)`"},
    {"sd", "write `std[axes](e)`"},
    {"stdev", "write `std[axes](e)`"},
    {"variance", "write `var[axes](e)`"},
    {"product", "write `prod[axes](e)`"},
    {"nansum", "write `sum[axes](where(isnan(e), 0, e))`"},
    {"colSums", "write `sum[*](e)`: it folds the records and keeps the columns"},
    {"colMeans", "write `mean[*](e)`: it folds the records and keeps the columns"},
    {"rowSums", "write `sum[2](e)`: it folds the columns and keeps the records"},
    {"rowMeans", "write `mean[2](e)`: it folds the columns and keeps the records"},
    {"argmin", "write `argmax[axes](-e)`"},
    {"range", "write `min[axes](e)` and `max[axes](e)`"},
    {"scale", "`import stats` and write `stats.standardize(e)`"},
    {"bincount", "`import stats` and write `stats.tabulate(label, zeros(k))`"},
    {"poly", "write powers, `x^2`; in a formula, `poly(x, 2, raw = TRUE)`"},
    {"nanmean", "write `sum[axes](where(isnan(e), 0, e)) / sum[axes](not isnan(e))`"},
    {"model.matrix", "give the run a formula: `--formula 'y ~ a * b'` builds the columns of x"},
    {"data.frame", "columns of data are inputs: `input age : [*]`"},
    // element by element
    {"ln", "write `log(e)`"},
    {"log10", "write `log(e) / log(10)`"},
    {"log2", "write `log(e) / log(2)`"},
    {"pow", "write `a ^ b`"},
    {"power", "write `a ^ b`"},
    {"fabs", "write `abs(e)`"},
    {"absolute", "write `abs(e)`"},
    {"logistic", "write `sigmoid(e)`"},
    {"expit", "write `sigmoid(e)`"},
    {"inv_logit", "write `sigmoid(e)`"},
    {"logit", "write `log(e) - log1p(-e)`"},
    {"log1p_exp", "write `softplus(e)`"},
    {"gamma", "write `exp(lgamma(e))`"},
    {"factorial", "write `exp(lgamma(e + 1))`"},
    {"lfactorial", "write `lgamma(e + 1)`"},
    {"erfc", "write `1 - erf(e)`"},
    {"atan", "write `atan2(e, 1)`"},
    {"arctan", "write `atan2(e, 1)`"},
    {"asin", "write `atan2(e, sqrt(1 - e^2))`"},
    {"acos", "write `atan2(sqrt(1 - e^2), e)`"},
    {"sinh", "write `(exp(e) - exp(-e)) / 2`"},
    {"cosh", "write `(exp(e) + exp(-e)) / 2`"},
    {"trunc", "write `sign(e) * floor(abs(e))`"},
    {"fmod", "write `mod(a, b)`"},
    {"ifelse", "write `where(c, a, b)`"},
    {"if_else", "write `where(c, a, b)`"},
    {"maximum", "write `max(a, b)`"},
    {"minimum", "write `min(a, b)`"},
    {"pmax", "write `max(a, b)`"},
    {"pmin", "write `min(a, b)`"},
    {"isna", "write `isnan(e)`"},
    // linear algebra
    {"t", "write `e'`"},
    {"transpose", "write `e'`"},
    {"dot", "write `a @ b`"},
    {"matmul", "write `a @ b`"},
    {"dot_product", "write `a @ b`"},
    {"crossprod", "write `a' @ b`"},
    {"tcrossprod", "write `a @ b'`"},
    {"einsum", "write products with `@`, or `sum[axes](a * b)`"},
    {"inverse", "write `inv(a)`"},
    {"chol", "write `cholesky(a)`, which is lower triangular"},
    {"eig", "write `let (values, vectors) = eigh(a)` for a symmetric matrix"},
    {"eigen", "write `let (values, vectors) = eigh(a)` for a symmetric matrix"},
    {"determinant", "write `det(a)`"},
    {"trace", "write `trace_of(a)`"},
    {"identity", "write `eye(n)`"},
    // making and joining
    {"c", "a vector is written in brackets, as in [1, 2]; values are joined with concat[1](a, b)"},
    {"array", "a vector is written in brackets, as in [1, 2]"},
    {"vector", "a vector is written in brackets, as in [1, 2]"},
    {"matrix", "a matrix is written [[1, 2], [3, 4]], or made with reshape(e, n, m)"},
    {"rep", "write `full(v, n)`"},
    {"repmat", "write `full(v, n)`; values of different shape broadcast by themselves"},
    {"seq", "write `linspace(a, b, n)`"},
    {"arange", "write `linspace(a, b, n)`"},
    {"cbind", "write `concat[2](a, b)`"},
    {"hstack", "write `concat[2](a, b)`"},
    {"append_col", "write `concat[2](a, b)`"},
    {"rbind", join_records_help},
    {"vstack", join_records_help},
    {"append_row", join_records_help},
    {"concatenate", "write `concat[j](a, b)`"},
    {"randn", "write `normal(seed, sizes...)`"},
    {"rnorm", "write `normal(seed, sizes...)`"},
    {"rand", "write `uniform(seed, sizes...)`"},
    {"runif", "write `uniform(seed, sizes...)`"},
    // sizes
    {"len", length_help},
    {"length", length_help},
    {"nrow", length_help},
    {"ncol", length_help},
    {"dim", length_help},
    {"shape", length_help},
    {"size", length_help},
    {"rows", length_help},
    {"cols", length_help},
    {"num_elements", length_help},
    // distributions and derivatives
    {"pnorm", "write `normal_cdf(x)`"},
    {"qnorm", "write `normal_quantile(p)`"},
    {"dnorm", "write `exp(-x^2 / 2) / sqrt(2 * pi)`"},
    {"pt", "write `t_cdf(x, n)`"},
    {"qt", "write `t_quantile(p, n)`"},
    {"pchisq", "write `chi2_cdf(x, n)`, or `chi2_sf(x, n)` for the upper tail"},
    {"pf", "write `f_cdf(x, m, n)`, or `f_sf(x, m, n)` for the upper tail"},
    {"gradient", "write `grad(e, v)`"},
    {"print", "show a result with `output`"},
};

constexpr Row values[] = {
    {"TRUE", "truth is a number: write 1"},
    {"True", "truth is a number: write 1"},
    {"true", "truth is a number: write 1"},
    {"FALSE", "truth is a number: write 0"},
    {"False", "truth is a number: write 0"},
    {"false", "truth is a number: write 0"},
    {"NA", "write `nan`"},
    {"NaN", "write `nan`"},
    {"None", "write `nan` for a missing number"},
    {"NULL", "write `nan` for a missing number"},
    {"Inf", "write `inf`"},
    {"Infinity", "write `inf`"},
};

std::string_view find(std::span<const Row> rows, std::string_view name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.first == name; });
  return found == rows.end() ? std::string_view{} : found->second;
}

// The module of the library that has a function of this name; empty when none does.
std::string_view library_module_with(std::string_view name) {
  const std::string definition = fmt::format("\nfn {}(", name);
  for (const EmbeddedModule& module : embedded_modules()) {
    const bool ready_made = module.name.find('/') != std::string_view::npos;
    if (!ready_made && module.text.find(definition) != std::string_view::npos) return module.name;
  }
  return {};
}

// Of a model or test: the ready-made program, and how to write it in one's own; empty when it is not a known one.
std::string analysis_help(std::string_view name) {
  const Analysis* row = find_analysis(name);
  if (row == nullptr) return {};
  std::string programs;
  for (std::string_view rest = row->programs; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    programs +=
        fmt::format("{}{}`", programs.empty() ? "`starfold run " : " or `", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (programs.empty()) return std::string(row->inside);
  return fmt::format("{} does this{}{}", programs, row->inside.empty() ? "" : "; in a program, ",
                     row->inside);
}

}  // namespace

std::string foreign_function_help(std::string_view name) {
  if (const std::string_view help = find(functions, name); !help.empty()) return std::string(help);
  if (const std::string help = analysis_help(name); !help.empty()) return help;
  if (const std::string_view module = library_module_with(name); !module.empty())
    return fmt::format("`import {0}` and write `{0}.{1}(...)`", module, name);
  return {};
}

std::string foreign_member_help(std::string_view module, std::string_view name) {
  const std::string whole = fmt::format("{}.{}", module, name);
  if (const std::string_view help = find(functions, whole); !help.empty()) return std::string(help);
  if (const std::string help = analysis_help(whole); !help.empty()) return help;
  constexpr std::string_view packages[] = {"np",  "numpy", "math",   "scipy", "torch", "jnp",
                                           "jax", "pd",    "pandas", "tf",    "base"};
  if (std::find(std::begin(packages), std::end(packages), module) == std::end(packages)) return {};
  const std::string help = foreign_function_help(name);
  return help.empty() ? "operations are built in and need no module: `starfold ops` lists them"
                      : help;
}

std::string_view foreign_value_help(std::string_view name) { return find(values, name); }

}  // namespace starfold

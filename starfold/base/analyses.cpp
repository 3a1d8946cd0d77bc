#include "starfold/base/analyses.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace starfold {
namespace {

constexpr Analysis rows[] = {
    // description
    {"CreateTableOne", "table1", ""},
    {"tableone", "table1", ""},
    {"describe", "summary table1", ""},
    {"summarize", "summary table1", ""},
    {"univariate", "summary column_quantiles", ""},
    {"aggregate", "table1", "`import stats` and write `stats.group_mean(y, label, zeros(k))`"},
    {"tapply", "table1", "`import stats` and write `stats.group_mean(y, label, zeros(k))`"},
    {"quantile", "quantiles column_quantiles", "`import stats` and write `stats.quantile(x, 0.5)`"},
    {"percentile", "quantiles column_quantiles",
     "`import stats` and write `stats.quantile(x, 0.5)`"},
    {"centile", "quantiles column_quantiles", ""},
    {"median", "quantiles", "`import stats` and write `stats.quantile(x, 0.5)`"},
    {"hist", "histogram", "`import stats` and write `stats.histogram(e, edges)`"},
    {"table", "chi_square table1",
     "`import stats` and write `stats.tabulate(label, zeros(k))` or `stats.crosstab(row, column, "
     "zeros(k, m))`"},
    {"xtabs", "chi_square", ""},
    {"crosstab", "chi_square",
     "`import stats` and write `stats.crosstab(row, column, zeros(k, m))`"},
    {"tabulate", "chi_square", "`import stats` and write `stats.tabulate(label, zeros(k))`"},
    {"freq", "chi_square table1", ""},
    {"cor", "correlation", "`import stats` and write `stats.cor(x)`"},
    {"corr", "correlation", "`import stats` and write `stats.cor(x)`"},
    {"corrcoef", "correlation", "`import stats` and write `stats.cor(x)`"},
    {"correlate", "correlation", "`import stats` and write `stats.cor(x)`"},
    {"pwcorr", "correlation", ""},
    {"cor.test", "correlation", ""},
    {"pearsonr", "correlation", ""},
    {"svymean", "survey_mean", ""},
    // tests
    {"t.test", "t_test t_one_sample t_paired", "`import stats` and write `stats.t_test(y, group)`"},
    {"ttest_ind", "t_test", "`import stats` and write `stats.t_test(y, group)`"},
    {"ttest_1samp", "t_one_sample", ""},
    {"ttest_rel", "t_paired", ""},
    {"aov", "anova anova_two_way", "`import stats` and write `stats.anova(y, label, zeros(k))`"},
    {"oneway.test", "anova", ""},
    {"oneway", "anova", ""},
    {"f_oneway", "anova", "`import stats` and write `stats.anova(y, label, zeros(k))`"},
    {"anova_lm", "anova anova_two_way", ""},
    {"chisq.test", "chi_square", "`import stats` and write `stats.chi_square(counts)`"},
    {"chi2_contingency", "chi_square", "`import stats` and write `stats.chi_square(counts)`"},
    {"chi2", "chi_square", "`import stats` and write `stats.chi_square(counts)`"},
    {"fisher.test", "fisher", ""},
    {"fisher_exact", "fisher", ""},
    {"prop.test", "proportions", ""},
    {"prtest", "proportions", ""},
    {"proportions_ztest", "proportions", ""},
    {"wilcox.test", "mann_whitney", ""},
    {"mannwhitneyu", "mann_whitney", ""},
    {"ranksum", "mann_whitney", ""},
    {"npar1way", "mann_whitney", ""},
    {"ks.test", "kolmogorov_smirnov", ""},
    {"ks_2samp", "kolmogorov_smirnov", ""},
    {"ksmirnov", "kolmogorov_smirnov", ""},
    // regression
    {"lm", "linear weighted", "`import stats` and write `stats.ols(x, y)`"},
    {"ols", "linear", "`import stats` and write `stats.ols(x, y)`"},
    {"LinearRegression", "linear", "`import stats` and write `stats.ols(x, y)`"},
    {"lstsq", "linear", "`import stats` and write `stats.ols(x, y)`"},
    {"regress", "linear", "`import stats` and write `stats.ols(x, y)`"},
    {"wls", "weighted", ""},
    {"glm", "logistic poisson gamma", "`import glm` and write `glm.binomial(x, y)`"},
    {"genmod", "logistic poisson gamma", "`import glm` and write `glm.binomial(x, y)`"},
    {"LogisticRegression", "logistic", "`import glm` and write `glm.binomial(x, y)`"},
    {"PoissonRegressor", "poisson", "`import glm` and write `glm.poisson(x, y)`"},
    {"GammaRegressor", "gamma", "`import glm` and write `glm.gamma(x, y)`"},
    {"glm.nb", "negative_binomial", ""},
    {"nbreg", "negative_binomial", ""},
    {"NegativeBinomialP", "negative_binomial", ""},
    {"multinom", "multinomial", ""},
    {"mlogit", "multinomial", ""},
    {"MNLogit", "multinomial", ""},
    {"polr", "ordinal", ""},
    {"clm", "ordinal", ""},
    {"ologit", "ordinal", ""},
    {"OrderedModel", "ordinal", ""},
    {"rlm", "huber", ""},
    {"rreg", "huber", ""},
    {"HuberRegressor", "huber", ""},
    {"rq", "quantile_regression", ""},
    {"qreg", "quantile_regression", ""},
    {"QuantReg", "quantile_regression", ""},
    {"QuantileRegressor", "quantile_regression", ""},
    {"nls", "", "`import optim` and write `optim.lm` in a loop, as docs/learning.md shows"},
    {"curve_fit", "", "`import optim` and write `optim.lm` in a loop, as docs/learning.md shows"},
    {"lm.ridge", "ridge", ""},
    {"glmnet", "lasso ridge", ""},
    {"ElasticNet", "lasso", ""},
    {"cv.glmnet", "lasso_cv", ""},
    {"ElasticNetCV", "lasso_cv", ""},
    {"sandwich", "robust", ""},
    {"vcovHC", "robust", ""},
    {"geeglm", "gee gee_exchangeable gee_linear", ""},
    {"xtgee", "gee gee_exchangeable gee_linear", ""},
    {"svyglm", "survey_linear survey_logistic", ""},
    {"lmer", "random_intercept random_slope client_intercept client_slope", ""},
    {"lme", "random_intercept random_slope", ""},
    {"mixed", "random_intercept random_slope", ""},
    {"xtreg", "random_intercept within", ""},
    {"MixedLM", "random_intercept random_slope", ""},
    {"rma", "meta linear_by_client logistic_by_client", ""},
    {"metagen", "meta linear_by_client logistic_by_client", ""},
    // survival
    {"coxph", "cox cox_strata", ""},
    {"stcox", "cox cox_strata", ""},
    {"phreg", "cox cox_strata", ""},
    {"CoxPHFitter", "cox cox_strata", ""},
    {"survfit", "kaplan_meier", ""},
    {"KaplanMeierFitter", "kaplan_meier", ""},
    {"sts", "kaplan_meier logrank", ""},
    {"lifetest", "kaplan_meier logrank", ""},
    {"survdiff", "logrank", ""},
    {"logrank_test", "logrank", ""},
    {"survreg", "weibull exponential", ""},
    {"streg", "weibull exponential", ""},
    {"WeibullFitter", "weibull", ""},
    {"WeibullAFTFitter", "weibull", ""},
    {"survival", "cox kaplan_meier weibull", ""},
    // learning
    {"prcomp", "pca", "`import stats` and write `stats.pca(x)`"},
    {"princomp", "pca", "`import stats` and write `stats.pca(x)`"},
    {"factanal", "factor_analysis", ""},
    {"LinearDiscriminantAnalysis", "lda", ""},
    {"QuadraticDiscriminantAnalysis", "qda", ""},
    {"Mclust", "gaussian_mixture", ""},
    {"GaussianNB", "naive_bayes", ""},
    {"LinearSVC", "svm", ""},
    {"xgboost", "boosted_trees boosted_logistic boosted_poisson", ""},
    {"xgb.train", "boosted_trees boosted_logistic boosted_poisson", ""},
    {"lightgbm", "boosted_trees boosted_logistic boosted_poisson", ""},
    {"gbm", "boosted_trees boosted_logistic boosted_poisson", ""},
    {"XGBClassifier", "boosted_logistic", ""},
    {"LGBMClassifier", "boosted_logistic", ""},
    {"GradientBoostingClassifier", "boosted_logistic", ""},
    {"HistGradientBoostingClassifier", "boosted_logistic", ""},
    {"XGBRegressor", "boosted_trees boosted_poisson", ""},
    {"LGBMRegressor", "boosted_trees boosted_poisson", ""},
    {"GradientBoostingRegressor", "boosted_trees", ""},
    {"HistGradientBoostingRegressor", "boosted_trees boosted_poisson", ""},
    {"nnet", "perceptron perceptron_regression network", ""},
    {"MLPClassifier", "perceptron network", ""},
    {"MLPRegressor", "perceptron_regression", ""},
    {"mice", "impute_chained", ""},
    {"IterativeImputer", "impute_chained", ""},
    {"SimpleImputer", "impute_mean", ""},
    // judging
    {"roc_curve", "roc", ""},
    {"roc_auc_score", "roc", ""},
    {"roctab", "roc", ""},
    {"auc", "roc", ""},
    {"brier_score_loss", "calibration", ""},
    {"calibration_curve", "calibration", ""},
    {"confusionMatrix", "confusion", ""},
    {"accuracy_score", "confusion", ""},
    {"classification_report", "confusion", ""},
    {"cross_val_score", "cross_validation linear_cross_validation lasso_cv", ""},
    {"cv.glm", "cross_validation linear_cross_validation", ""},
    {"lrtest", "nested_logistic nested_linear", ""},
    {"bptest", "residuals", ""},
    {"hettest", "residuals", ""},
    {"jarque.bera.test", "residuals", ""},
    {"resid", "residuals", ""},
    {"LogisticRegressionCV", "cross_validation", ""},
    {"variance_inflation_factor", "vif", ""},
};

// Letters and digits only, small.
std::string plain(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) text += static_cast<char>(std::tolower(byte));
  }
  return text;
}

const Analysis* row_of(std::string_view name) {
  const std::string wanted = plain(name);
  const auto* found = std::find_if(std::begin(rows), std::end(rows),
                                   [&](const Analysis& row) { return plain(row.name) == wanted; });
  return found == std::end(rows) ? nullptr : found;
}

}  // namespace

std::span<const Analysis> analyses() { return rows; }

const Analysis* find_analysis(std::string_view name) {
  constexpr std::size_t longest = 100;
  if (name.size() > longest) return nullptr;
  if (const std::size_t package = name.rfind("::"); package != std::string_view::npos)
    name.remove_prefix(package + 2);
  if (const Analysis* row = row_of(name)) return row;
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? nullptr : row_of(name.substr(dot + 1));
}

bool same_analysis(std::string_view a, std::string_view b) { return plain(a) == plain(b); }

}  // namespace starfold

# Offsets and weights of models, as R takes them, from the pooled data of tests/data. Needs R with survival and MASS. From the root of the
# repository:
#   Rscript tests/reference/offsets.R
# writes tests/reference/offsets.json.
suppressPackageStartupMessages({ library(survival); library(MASS) })
options(warn = 1)
mtcars_data <- read.csv("tests/data/mtcars.csv")
infert_data <- read.csv("tests/data/infert.csv")
quine_data <- read.csv("tests/data/quine.csv")
lung_data <- read.csv("tests/data/lung.csv")

# The same numbers are made in tests/e2e/test_lib_offsets.py: shifts from the rows' places, and weights of one to three.
shift <- function(d) ((seq_len(nrow(d)) * 7) %% 11) / 10 - 0.5
trials <- function(d) 1 + (seq_len(nrow(d)) * 5) %% 3

number <- function(v) paste0("[", paste(sprintf("%.17g", v), collapse = ", "), "]")
all <- list()
put <- function(name, ...) {
  values <- list(...)
  all[[name]] <<- paste0("{", paste(sprintf('"%s": %s', names(values), sapply(values, function(v) if (length(v) == 1 && is.null(names(v))) sprintf("%.17g", v) else number(v))), collapse = ", "), "}")
}
vec <- function(x) { x <- as.vector(x); names(x) <- seq_along(x); x }
tight <- glm.control(epsilon = 1e-15, maxit = 200)

generalized <- function(name, fit, likelihood = TRUE) {
  # On to the optimum: a deviance that has settled leaves the coefficients half of its digits.
  for (i in 1:4) fit <- update(fit, start = coef(fit))
  s <- summary(fit)$coefficients
  if (likelihood)
    put(name, beta = vec(s[, 1]), beta_se = vec(s[, 2]), statistic = vec(s[, 3]), p_value = vec(s[, 4]), deviance = fit$deviance,
        null_deviance = fit$null.deviance, log_likelihood = as.numeric(logLik(fit)), aic = AIC(fit), bic = BIC(fit))
  else
    put(name, beta = vec(s[, 1]), beta_se = vec(s[, 2]), statistic = vec(s[, 3]), p_value = vec(s[, 4]), deviance = fit$deviance,
        null_deviance = fit$null.deviance, dispersion = summary(fit)$dispersion)
}

infert_data$shift <- shift(infert_data); infert_data$trials <- trials(infert_data)
for (link in c("logit", "probit", "cloglog")) {
  program <- c(logit = "logistic", probit = "probit", cloglog = "cloglog")[[link]]
  generalized(paste0(program, "_offset"), glm(case ~ spontaneous + induced + offset(shift), binomial(link), infert_data, control = tight))
  generalized(paste0(program, "_weight"), glm(case ~ spontaneous + induced, binomial(link), infert_data, weights = trials, control = tight))
  generalized(paste0(program, "_both"), glm(case ~ spontaneous + induced + offset(shift), binomial(link), infert_data, weights = trials, control = tight))
  generalized(paste0(program, "_none"), glm(case ~ spontaneous + induced + offset(shift) - 1, binomial(link), infert_data, control = tight))
}
generalized("quasibinomial_both", glm(case ~ spontaneous + induced + offset(shift), quasibinomial, infert_data, weights = trials, control = tight), FALSE)
# Proportions of trials.
infert_data$share <- (infert_data$case + infert_data$trials - 1) / (infert_data$trials + 1) 
infert_data$tries <- infert_data$trials + 1
generalized("logistic_share", glm(share ~ spontaneous + age, binomial, infert_data, weights = tries, control = tight))

mtcars_data$shift <- shift(mtcars_data); mtcars_data$trials <- trials(mtcars_data)
for (which in c("offset", "weight", "both", "none")) {
  f <- if (which == "weight") carb ~ qsec + wt else if (which == "none") carb ~ qsec + wt + offset(shift) - 1 else carb ~ qsec + wt + offset(shift)
  w <- if (which %in% c("weight", "both")) mtcars_data$trials else rep(1, nrow(mtcars_data))
  environment(f) <- environment()
  generalized(paste0("poisson_", which), glm(f, poisson, mtcars_data, weights = w, control = tight))
  generalized(paste0("quasipoisson_", which), glm(f, quasipoisson, mtcars_data, weights = w, control = tight), FALSE)
  g <- update(f, mpg ~ .)
  environment(g) <- environment()
  generalized(paste0("gamma_", which), glm(g, Gamma("log"), mtcars_data, weights = w, control = tight))
}

# R squared and F of R 4.2 count the offset among what the model explains; here they are those of the response without it.
fit <- lm(I(mpg - shift) ~ wt + hp, mtcars_data); s <- summary(fit)
stopifnot(all.equal(coef(fit), coef(lm(mpg ~ wt + hp + offset(shift), mtcars_data))))
put("linear_offset", beta = vec(coef(fit)), beta_se = vec(s$coefficients[, 2]), p_value = vec(s$coefficients[, 4]), sigma = s$sigma, r_squared = s$r.squared,
    f = s$fstatistic[[1]], log_likelihood = as.numeric(logLik(fit)), aic = AIC(fit))
fit <- lm(I(mpg - shift) ~ wt + hp, mtcars_data, weights = trials); s <- summary(fit)
put("weighted_offset", beta = vec(coef(fit)), beta_se = vec(s$coefficients[, 2]), p_value = vec(s$coefficients[, 4]), sigma = s$sigma, r_squared = s$r.squared,
    f = s$fstatistic[[1]], log_likelihood = as.numeric(logLik(fit)), aic = AIC(fit))

quine_data$shift <- shift(quine_data)
fit <- glm.nb(days ~ aboriginal + male + slow + offset(shift), quine_data, control = glm.control(epsilon = 1e-15, maxit = 500))
put("negative_binomial_offset", beta = vec(coef(fit)), beta_se = vec(summary(fit)$coefficients[, 2]), theta = fit$theta, log_likelihood = as.numeric(logLik(fit)))

lung_data$shift <- shift(lung_data)
fit <- coxph(Surv(time, status) ~ age + male + offset(shift), lung_data, control = coxph.control(eps = 1e-14, iter.max = 100))
put("cox_offset", beta = vec(coef(fit)), beta_se = vec(sqrt(diag(vcov(fit)))), log_likelihood = fit$loglik[2], null_log_likelihood = fit$loglik[1])
fit <- coxph(Surv(time, status) ~ age + ecog + strata(male) + offset(shift), lung_data, control = coxph.control(eps = 1e-14, iter.max = 100))
put("cox_strata_offset", beta = vec(coef(fit)), beta_se = vec(sqrt(diag(vcov(fit)))), log_likelihood = fit$loglik[2], null_log_likelihood = fit$loglik[1])
for (dist in c("weibull", "exponential")) {
  fit <- survreg(Surv(time, status) ~ age + male + offset(shift), lung_data, dist = dist, control = survreg.control(rel.tolerance = 1e-14, maxiter = 200))
  put(paste0(dist, "_offset"), beta = vec(coef(fit)), beta_se = vec(sqrt(diag(vcov(fit)))[1:3]), log_likelihood = fit$loglik[2])
}
writeLines(paste0("{\"made_by\": \"tests/reference/offsets.R with ", R.version.string, "\",\n",
                  paste(sprintf('"%s": %s', names(all), unlist(all)), collapse = ",\n"), "}"), "tests/reference/offsets.json")

# What R's packages compute from the pooled data of tests/data, for the ready-made programs, and the data that come with R.
# Needs R with survival, MASS, nnet, glmnet, car, survey, lme4, geepack, quantreg, mice, metafor (Debian: r-base-core, r-cran-...). From
# the root of the repository:
#   Rscript tests/reference/library.R
# writes tests/data/{lung,quine,iris,sleep,education,stackloss,sleepstudy,...}.csv and tests/reference/library.json.
suppressPackageStartupMessages({
  library(datasets); library(survival); library(MASS); library(nnet); library(glmnet); library(car)
})
options(warn = 1)

# --- data, numbers only: factors are labels 1, 2, ... or columns of 0 and 1
write_csv <- function(data, name) {
  for (column in names(data)) {
    text <- sprintf("%.17g", data[[column]])
    short <- format(data[[column]], digits = 15, trim = TRUE, scientific = FALSE)
    data[[column]] <- ifelse(as.numeric(short) == data[[column]], short, text)
  }
  write.csv(data, file.path("tests/data", paste0(name, ".csv")), row.names = FALSE, quote = FALSE)
  read.csv(file.path("tests/data", paste0(name, ".csv")))
}
lung_data <- write_csv(with(na.omit(survival::lung), data.frame(time, status = status - 1, age, male = as.integer(sex == 1),
                                                                ecog = ph.ecog, karno = ph.karno, sex)), "lung")
quine_data <- write_csv(with(MASS::quine, data.frame(days = Days, aboriginal = as.integer(Eth == "A"), male = as.integer(Sex == "M"),
                                                     F1 = as.integer(Age == "F1"), F2 = as.integer(Age == "F2"),
                                                     F3 = as.integer(Age == "F3"), slow = as.integer(Lrn == "SL"))), "quine")
iris_data <- write_csv(with(datasets::iris, data.frame(sepal_length = Sepal.Length, sepal_width = Sepal.Width, petal_length = Petal.Length,
                                                       petal_width = Petal.Width, species = as.integer(Species))), "iris")
sleep_data <- write_csv(with(datasets::sleep, data.frame(first = extra[group == 1], second = extra[group == 2])), "sleep")
education_data <- write_csv(with(datasets::infert, data.frame(education = as.integer(education), age, parity, case, spontaneous, induced, stratum)), "education")
stackloss_data <- write_csv(with(datasets::stackloss, data.frame(air = Air.Flow, water = Water.Temp, acid = Acid.Conc., loss = stack.loss)),
                            "stackloss")
cars_data <- write_csv(with(datasets::mtcars, data.frame(mpg, cyl = cyl / 2 - 1, am = am + 1, wt, hp, disp, drat, qsec)), "cars")
attitude_data <- write_csv(datasets::attitude, "attitude")
puromycin_data <- write_csv(with(subset(datasets::Puromycin, state == "treated"), data.frame(conc, rate)), "puromycin")
infert_data <- read.csv("tests/data/infert.csv")
mtcars_data <- read.csv("tests/data/mtcars.csv")
warpbreaks_data <- read.csv("tests/data/warpbreaks.csv")
insects_data <- read.csv("tests/data/insects.csv")

# --- figures with seventeen digits
json <- function(value) {
  if (is.list(value)) {
    paste0("{", paste(sprintf('"%s": %s', names(value), vapply(value, json, "")), collapse = ",\n  "), "}")
  } else if (is.matrix(value)) {
    paste0("[", paste(apply(value, 1, function(row) json(unname(row))), collapse = ", "), "]")
  } else if (is.character(value)) {
    paste0('"', value, '"')
  } else {
    numbers <- ifelse(is.nan(value), '"nan"', ifelse(is.infinite(value), ifelse(value > 0, '"inf"', '"-inf"'), sprintf("%.17g", value)))
    if (length(value) == 1 && is.null(names(value))) numbers else paste0("[", paste(numbers, collapse = ", "), "]")
  }
}
all <- list(made_by = paste("tests/reference/library.R with", R.version.string))
vec <- function(x) { x <- as.vector(x); names(x) <- seq_along(x); x }   # always written as a list
put <- function(name, ...) all[[name]] <<- list(...)

# --- linear models
fit <- lm(mpg ~ wt + hp + qsec, mtcars_data); s <- summary(fit)
put("linear", beta = vec(coef(fit)), beta_se = vec(s$coefficients[, 2]), t = vec(s$coefficients[, 3]), p_value = vec(s$coefficients[, 4]),
    beta_lower = vec(confint(fit)[, 1]), beta_upper = vec(confint(fit)[, 2]), sigma = s$sigma, r_squared = s$r.squared,
    adjusted_r_squared = s$adj.r.squared, f = s$fstatistic[[1]], df = s$fstatistic[[3]],
    f_p_value = pf(s$fstatistic[[1]], s$fstatistic[[2]], s$fstatistic[[3]], lower.tail = FALSE),
    log_likelihood = as.numeric(logLik(fit)), aic = AIC(fit), bic = BIC(fit), vif = vec(vif(fit)))
fit <- lm(mpg ~ wt + hp, mtcars_data, weights = qsec); s <- summary(fit)
put("weighted", beta = vec(coef(fit)), beta_se = vec(s$coefficients[, 2]), t = vec(s$coefficients[, 3]), p_value = vec(s$coefficients[, 4]),
    beta_lower = vec(confint(fit)[, 1]), beta_upper = vec(confint(fit)[, 2]), sigma = s$sigma, r_squared = s$r.squared, f = s$fstatistic[[1]],
    log_likelihood = as.numeric(logLik(fit)), aic = AIC(fit), bic = BIC(fit))
fit <- lm.ridge(mpg ~ wt + hp + qsec, mtcars_data, lambda = 2)
put("ridge", beta = vec(coef(fit)))
x <- with(mtcars_data, cbind(1, wt, hp, qsec)); fit <- lm(mpg ~ wt + hp + qsec, mtcars_data); e <- resid(fit)
bread <- solve(crossprod(x)); meat <- function(w) bread %*% crossprod(x * (e * w)) %*% bread
put("robust", beta = vec(coef(fit)), beta_se = vec(sqrt(diag(meat(1)))), hc1 = vec(sqrt(diag(meat(sqrt(32 / 28))))))

# --- generalized linear models, to the optimum
tight <- glm.control(1e-16, 200)
fits <- list(
  logistic = suppressWarnings(glm(case ~ age + parity + induced + spontaneous, binomial, infert_data, control = tight)),
  probit = suppressWarnings(glm(case ~ age + parity + induced + spontaneous, binomial("probit"), infert_data, control = tight)),
  cloglog = suppressWarnings(glm(case ~ age + parity + induced + spontaneous, binomial("cloglog"), infert_data, control = tight)),
  poisson = suppressWarnings(glm(breaks ~ woolB + tensionM + tensionH, poisson, warpbreaks_data, control = tight)),
  quasipoisson = suppressWarnings(glm(breaks ~ woolB + tensionM + tensionH, quasipoisson, warpbreaks_data, control = tight)),
  rates = suppressWarnings(glm(carb ~ qsec + wt, poisson, mtcars_data, offset = log(hp), control = tight)),
  gamma = suppressWarnings(glm(mpg ~ wt + hp, Gamma("log"), mtcars_data, control = tight)),
  quasibinomial = suppressWarnings(glm(case ~ age + parity + induced + spontaneous, quasibinomial, infert_data, control = tight)))
# R's standard errors belong to the iterate before the last: begun at the optimum, both are there.
again <- function(fit) { for (i in 1:8) fit <- suppressWarnings(update(fit, start = coef(fit), control = glm.control(1e-16, 4))); fit }
for (name in names(fits)) {
  fit <- again(fits[[name]]); s <- summary(fit)
  normal <- s$dispersion == 1
  q <- if (normal) qnorm(0.975) else qt(0.975, fit$df.residual)
  b <- s$coefficients
  put(name, beta = vec(b[, 1]), beta_se = vec(b[, 2]), statistic = vec(b[, 3]), p_value = vec(b[, 4]),
      beta_lower = vec(b[, 1] - q * b[, 2]), beta_upper = vec(b[, 1] + q * b[, 2]), deviance = deviance(fit),
      null_deviance = fit$null.deviance, dispersion = s$dispersion, aic = if (is.na(AIC(fit))) "none" else AIC(fit),
      bic = if (is.na(AIC(fit))) "none" else BIC(fit), log_likelihood = if (is.na(AIC(fit))) "none" else as.numeric(logLik(fit)))
}
fit <- suppressWarnings(glm.nb(days ~ aboriginal + male + F1 + F2 + F3 + slow, quine_data, control = glm.control(1e-16, 500)))
# To the optimum in theta as well: profile by Newton's method on the likelihood.
score <- function(theta) {
  fit <<- suppressWarnings(glm(days ~ aboriginal + male + F1 + F2 + F3 + slow, negative.binomial(theta), quine_data, control = tight))
  mu <- fitted(fit); y <- quine_data$days
  sum(digamma(theta + y) - digamma(theta) + log(theta) + 1 - log(theta + mu) - (y + theta) / (mu + theta))
}
theta <- uniroot(score, c(0.5, 3), tol = 1e-14)$root; score(theta)
mu <- fitted(fit); y <- quine_data$days
info <- sum(-trigamma(theta + y) + trigamma(theta) - 1 / theta + 2 / (mu + theta) - (y + theta) / (mu + theta)^2)
b <- summary(fit, dispersion = 1)$coefficients
put("negative_binomial", beta = vec(b[, 1]), beta_se = vec(b[, 2]), statistic = vec(b[, 3]), p_value = vec(b[, 4]), theta = theta,
    theta_se = sqrt(1 / info), deviance = deviance(fit), log_likelihood = sum(dnbinom(y, size = theta, mu = mu, log = TRUE)))

# --- survival
surv_control <- coxph.control(eps = 1e-13, toler.chol = 1e-14, iter.max = 100)
for (ties in c("efron", "breslow")) {
  fit <- coxph(Surv(time, status) ~ age + male + ecog + karno, lung_data, ties = ties, control = surv_control); s <- summary(fit)
  put(paste0("cox_", ties), beta = vec(coef(fit)), beta_se = vec(s$coefficients[, 3]), z = vec(s$coefficients[, 4]), p_value = vec(s$coefficients[, 5]),
      hazard_ratio = vec(exp(coef(fit))), hazard_ratio_lower = vec(s$conf.int[, 3]), hazard_ratio_upper = vec(s$conf.int[, 4]),
      log_likelihood = fit$loglik[2], null_log_likelihood = fit$loglik[1], score = s$sctest[[1]], wald = fit$wald.test[[1]],
      likelihood_ratio = s$logtest[[1]], likelihood_ratio_p = s$logtest[[3]], times = vec(sort(unique(lung_data$time[lung_data$status == 1]))),
      cumulative_hazard = vec(with(basehaz(fit, centered = FALSE), hazard[time %in% lung_data$time[lung_data$status == 1]])))
}
fit <- coxph(Surv(time, status) ~ age + ecog + strata(male), lung_data, control = surv_control); s <- summary(fit)
put("cox_strata", beta = vec(coef(fit)), beta_se = vec(s$coefficients[, 3]), z = vec(s$coefficients[, 4]), p_value = vec(s$coefficients[, 5]),
    log_likelihood = fit$loglik[2], null_log_likelihood = fit$loglik[1])
events <- sort(unique(lung_data$time[lung_data$status == 1]))
km <- survfit(Surv(time, status) ~ 1, lung_data); k <- summary(km, times = events)
put("kaplan_meier", times = vec(events), at_risk = vec(k$n.risk), events = vec(k$n.event), survival = vec(k$surv), survival_se = vec(k$std.err),
    survival_lower = vec(k$lower), survival_upper = vec(k$upper), median = summary(km)$table[["median"]], cumulative_hazard = vec(k$cumhaz))
lr <- survdiff(Surv(time, status) ~ male, lung_data)
put("logrank", observed = vec(lr$obs), expected = vec(lr$exp), chi_square = lr$chisq, df = 1, p_value = pchisq(lr$chisq, 1, lower.tail = FALSE))
for (dist in c("weibull", "exponential")) {
  fit <- survreg(Surv(time, status) ~ age + male + ecog, lung_data, dist = dist, control = survreg.control(rel.tolerance = 1e-15, maxiter = 200))
  s <- summary(fit)$table
  put(dist, beta = vec(coef(fit)), beta_se = vec(s[1:4, 2]), z = vec(s[1:4, 3]), p_value = vec(s[1:4, 4]), scale = fit$scale,
      log_scale_se = if (dist == "weibull") s[5, 2] else 0, log_likelihood = fit$loglik[2])
}

# Plain times whose likelihood bends downwards where the fit begins.
set.seed(3); n <- 150
far_data <- write_csv(data.frame(x = round(rnorm(n) * 10, 3), time = round(rweibull(n, 0.3, 0.01), 6) + 1e-6, status = rbinom(n, 1, 0.6)), "far_times")
fit <- survreg(Surv(time, status) ~ x, far_data, control = survreg.control(rel.tolerance = 1e-15, maxiter = 200)); s <- summary(fit)$table
put("weibull_far", beta = vec(coef(fit)), beta_se = vec(s[1:2, 2]), scale = fit$scale, log_scale_se = s[3, 2], log_likelihood = fit$loglik[2])

# --- tests
tt <- function(h) list(statistic = h$statistic[[1]], df = h$parameter[[1]], p_value = h$p.value, lower = h$conf.int[1], upper = h$conf.int[2])
all$t_one_sample <- tt(t.test(mtcars_data$mpg, mu = 18))
all$t_pooled <- tt(t.test(mpg ~ I(1 - am), mtcars_data, var.equal = TRUE))
all$t_welch <- tt(t.test(mpg ~ I(1 - am), mtcars_data))
all$t_paired <- tt(t.test(sleep_data$first, sleep_data$second, paired = TRUE))
sprays <- with(datasets::InsectSprays, aov(count ~ spray)); a <- summary(sprays)[[1]]
put("anova_one_way", f = a$F[1], p_value = a$Pr[1], between = a$Sum[1], within = a$Sum[2])
cars2 <- transform(cars_data, cyl = factor(cyl), am = factor(am))
one <- anova(lm(mpg ~ cyl * am, cars2))
two <- Anova(lm(mpg ~ cyl * am, cars2), type = 2)
three <- Anova(lm(mpg ~ cyl * am, cars2, contrasts = list(cyl = contr.sum, am = contr.sum)), type = 3)
put("anova_two_way", type_1 = vec(one$Sum[1:3]), f_1 = vec(one$F[1:3]), p_1 = vec(one$Pr[1:3]), residual = one$Sum[4],
    type_2 = vec(two$Sum[1:3]), f_2 = vec(two$F[1:3]), p_2 = vec(two$Pr[1:3]),
    type_3 = vec(three$Sum[2:4]), f_3 = vec(three$F[2:4]), p_3 = vec(three$Pr[2:4]))
tab <- table(cars_data$cyl, cars_data$am)
h <- suppressWarnings(chisq.test(tab, correct = FALSE))
put("chi_square", counts = unclass(tab) + 0, expected = unclass(h$expected) + 0, statistic = h$statistic[[1]], df = h$parameter[[1]], p_value = h$p.value,
    residuals = unclass(h$residuals) + 0)
tab <- table(cars_data$am, mtcars_data$wt > 3.2)
h <- fisher.test(tab); h2 <- suppressWarnings(chisq.test(tab))
# fisher.test searches its roots to 1e-4 only: the same equations, to the last digit.
m <- sum(tab[1, ]); n <- sum(tab[2, ]); k <- sum(tab[, 1]); support <- max(0, k - n):min(k, m); count <- tab[1, 1]
chance <- function(log_odds) { d <- dhyper(support, m, n, k, log = TRUE) + log_odds * support; d <- exp(d - max(d)); d / sum(d) }
solve_for <- function(f) exp(uniroot(f, c(-30, 30), tol = 1e-15)$root)
exact <- c(solve_for(function(w) sum(support * chance(w)) - count), solve_for(function(w) sum(chance(w)[support >= count]) - 0.025),
           solve_for(function(w) sum(chance(w)[support <= count]) - 0.025))
stopifnot(abs(exact / c(h$estimate, h$conf.int) - 1) < 0.05)
put("fisher", p_value = h$p.value, odds_ratio = exact[1], odds_ratio_lower = exact[2], odds_ratio_upper = exact[3])
h <- prop.test(c(sum(infert_data$case[infert_data$induced > 0]), sum(infert_data$case[infert_data$induced == 0])),
               c(sum(infert_data$induced > 0), sum(infert_data$induced == 0)), correct = FALSE)
put("proportions", proportion = vec(h$estimate), statistic = h$statistic[[1]], p_value = h$p.value, difference_lower = h$conf.int[1], difference_upper = h$conf.int[2])
h <- suppressWarnings(ks.test(cars_data$mpg[cars_data$am == 2], cars_data$mpg[cars_data$am == 1], exact = FALSE))
put("kolmogorov_smirnov", statistic = h$statistic[[1]], p_value = h$p.value, grid = vec(sort(unique(cars_data$mpg))))
h <- wilcox.test(cars_data$mpg[cars_data$am == 2], cars_data$mpg[cars_data$am == 1], exact = FALSE, correct = TRUE)
put("mann_whitney", statistic = h$statistic[[1]], p_value = h$p.value, grid = vec(sort(unique(cars_data$mpg))))
put("correlation", p_value = cor.test(cars_data$mpg, cars_data$wt)$p.value, lower = cor.test(cars_data$mpg, cars_data$wt)$conf.int[1],
    spearman = cor(cars_data$mpg, cars_data$wt, method = "spearman"))

# --- judging
prediction <- 0.1 + 0.3 * infert_data$spontaneous
fit <- again(glm(case ~ qlogis(prediction), binomial, infert_data, control = tight)); s <- summary(fit)$coefficients
put("calibration", brier = mean((infert_data$case - prediction)^2), intercept = s[1, 1], intercept_se = s[1, 2], slope = s[2, 1], slope_se = s[2, 2],
    log_loss = -mean(ifelse(infert_data$case == 1, log(prediction), log(1 - prediction))))
fold <- rep_len(1:5, nrow(infert_data)); held <- numeric(nrow(infert_data)); rows <- matrix(0, 5, 5)
for (f in 1:5) {
  fit <- again(glm(case ~ age + parity + induced + spontaneous, binomial, infert_data[fold != f, ], control = tight)); rows[f, ] <- coef(fit)
  held[fold == f] <- predict(fit, infert_data[fold == f, ], type = "response")
}
put("cross_validation", beta = rows, brier = mean((infert_data$case - held)^2), accuracy = mean((held > 0.5) == infert_data$case),
    log_loss = -mean(ifelse(infert_data$case == 1, log(held), log(1 - held))))

# --- other regressions
# BFGS stops early: Newton's method on the score, with its derivative by differences, goes on to the optimum.
slope <- function(score, b) sapply(seq_along(b), function(j) {
  h <- 1e-5 * max(1, abs(b[j])); up <- b; up[j] <- b[j] + h; down <- b; down[j] <- b[j] - h
  (score(up) - score(down)) / (2 * h)
})
root <- function(score, b) { for (i in 1:30) b <- b - solve(slope(score, b), score(b)); b }
x <- with(education_data, cbind(1, age, parity)); level <- education_data$education
fit <- multinom(education ~ age + parity, transform(education_data, education = factor(education)), trace = FALSE, reltol = 1e-14, maxit = 1000)
multi_score <- function(b) {
  eta <- cbind(0, x %*% t(matrix(b, 2))); p <- exp(eta) / rowSums(exp(eta))
  as.vector(t((outer(level, 2:3, "==") - p[, 2:3])) %*% x)
}
b <- root(multi_score, as.vector(coef(fit)))
eta <- cbind(0, x %*% t(matrix(b, 2)))
put("multinomial", beta = matrix(b, 2), beta_se = matrix(sqrt(diag(solve(-slope(multi_score, b)))), 2),
    log_likelihood = sum(eta[cbind(seq_along(level), level)] - log(rowSums(exp(eta)))))
fit <- polr(factor(education) ~ age + parity, education_data, Hess = TRUE, control = list(reltol = 1e-14, maxit = 1000))
z <- with(education_data, cbind(age, parity))
ordinal_parts <- function(b) {
  eta <- as.vector(z %*% b[1:2]); cut <- c(-Inf, b[3:4], Inf)
  list(up = cut[level + 1] - eta, low = cut[level] - eta)
}
ordinal_score <- function(b) {
  q <- ordinal_parts(b); p <- plogis(q$up) - plogis(q$low); u <- dlogis(q$up) / p; l <- dlogis(q$low) / p
  c(-colSums(z * (u - l)), sum(u[level == 1]) - sum(l[level == 2]), sum(u[level == 2]) - sum(l[level == 3]))
}
b <- root(ordinal_score, c(coef(fit), fit$zeta)); q <- ordinal_parts(b)
put("ordinal", beta = vec(b[1:2]), cut = vec(b[3:4]), se = vec(sqrt(diag(solve(-slope(ordinal_score, b))))),
    log_likelihood = sum(log(plogis(q$up) - plogis(q$low))))
fit <- rlm(loss ~ air + water + acid, stackloss_data, scale.est = "proposal 2", k2 = 1.345, maxit = 2000, acc = 1e-16)
put("huber", beta = vec(coef(fit)), scale = fit$s, beta_se = vec(summary(fit)$coefficients[, 2]))
kinetics <- deriv(~ vm * conc / (k + conc), c("vm", "k"), function(conc, vm, k) NULL)
fit <- nls(rate ~ kinetics(conc, vm, k), puromycin_data, start = list(vm = 200, k = 0.05), control = nls.control(tol = 1e-12, maxiter = 200, minFactor = 1e-12, warnOnly = TRUE))
put("nls", beta = vec(coef(fit)), beta_se = vec(summary(fit)$coefficients[, 2]), sigma = summary(fit)$sigma)
x <- as.matrix(attitude_data[, -1]); y <- attitude_data$rating
for (alpha in c(1, 0.5)) {
  lambda <- exp(seq(log(8), log(0.05), length.out = 20))
  fit <- glmnet(x, y, alpha = alpha, lambda = lambda, thresh = 1e-30, maxit = 1e8)
  put(paste0("lasso_", alpha), lambda = vec(lambda), beta = unname(t(as.matrix(coef(fit)))))
}
fold <- rep_len(1:5, length(y)); lambda <- exp(seq(log(8), log(0.05), length.out = 20))
fit <- cv.glmnet(x, y, lambda = lambda, foldid = fold, thresh = 1e-30, maxit = 1e8)
put("lasso_cv", lambda = vec(lambda), error = vec(fit$cvm), error_se = vec(fit$cvsd), lambda_best = fit$lambda.min, lambda_1se = fit$lambda.1se,
    beta_best = vec(coef(fit, s = "lambda.min")[-1]))
suppressPackageStartupMessages(library(survey))
design <- svydesign(ids = ~1, weights = ~qsec, data = mtcars_data)
fit <- svyglm(mpg ~ wt + hp, design); s <- summary(fit)$coefficients
put("survey_linear", beta = vec(s[, 1]), beta_se = vec(s[, 2]), t = vec(s[, 3]), p_value = vec(s[, 4]))
m <- svymean(~ mpg + wt, design)
put("survey_mean", mean = vec(coef(m)), mean_se = vec(sqrt(diag(vcov(m)))))
design <- svydesign(ids = ~1, weights = ~age, data = infert_data)
fit <- suppressWarnings(svyglm(case ~ induced + spontaneous, design, family = quasibinomial, control = glm.control(1e-15, 100))); s <- summary(fit)$coefficients
put("survey_logistic", beta = vec(s[, 1]), beta_se = vec(s[, 2]), t = vec(s[, 3]), p_value = vec(s[, 4]))
suppressPackageStartupMessages(library(lme4))
sleepstudy_data <- write_csv(with(lme4::sleepstudy, data.frame(reaction = Reaction, days = Days, subject = as.integer(Subject))), "sleepstudy")
for (reml in c(TRUE, FALSE)) {
  fit <- lmer(reaction ~ days + (1 | subject), sleepstudy_data, REML = reml, control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-12)))
  s <- coef(summary(fit)); v <- as.data.frame(VarCorr(fit))
  put(if (reml) "random_intercept_reml" else "random_intercept_ml", beta = vec(s[, 1]), beta_se = vec(s[, 2]), sd_between = v$sdcor[1], sd_within = v$sdcor[2],
      log_likelihood = as.numeric(logLik(fit)), aic = AIC(fit), bic = BIC(fit), group_effects = vec(ranef(fit)$subject[, 1]))
}
# Groups that hardly differ: the likelihood bends downwards where the fit begins.
set.seed(2); n <- 200
near_data <- data.frame(group = sample(1:10, n, TRUE), x = rnorm(n)); near_data$y <- round(near_data$x + rnorm(10, 0, 0.05)[near_data$group] + rnorm(n), 4)
near_data$x <- round(near_data$x, 4); near_data <- write_csv(near_data, "near_groups")
fit <- lmer(y ~ x + (1 | group), near_data, control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-12))); s <- coef(summary(fit)); v <- as.data.frame(VarCorr(fit))
put("random_intercept_near", beta = vec(s[, 1]), beta_se = vec(s[, 2]), sd_between = v$sdcor[1], sd_within = v$sdcor[2], log_likelihood = as.numeric(logLik(fit)))
# With a group of one record: subject 1 is asked on the first day only. The optimizer is begun again where it stopped, until nothing changes.
few_data <- sleepstudy_data[!(sleepstudy_data$subject == 1 & sleepstudy_data$days > 0), ]
for (reml in c(TRUE, FALSE)) for (which in c("all", "few")) {
  fit <- lmer(reaction ~ days + (1 + days | subject), if (which == "all") sleepstudy_data else few_data, REML = reml)
  for (i in 1:6) fit <- update(fit, start = getME(fit, "theta"), control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 10^(-1 - i), rhoend = 1e-13)))
  s <- coef(summary(fit)); v <- as.data.frame(VarCorr(fit))
  put(paste0("random_slope_", which, if (reml) "_reml" else "_ml"), beta = vec(s[, 1]), beta_se = vec(s[, 2]), sd_intercept = v$sdcor[1], sd_slope = v$sdcor[2],
      correlation = v$sdcor[3], sd_within = v$sdcor[4], log_likelihood = as.numeric(logLik(fit)), aic = AIC(fit), bic = BIC(fit),
      group_intercepts = vec(ranef(fit)$subject[, 1]), group_slopes = vec(ranef(fit)$subject[, 2]))
}
suppressPackageStartupMessages(library(geepack))
by_stratum <- education_data[order(education_data$stratum), ]
fit <- geeglm(case ~ spontaneous + induced, binomial, by_stratum, id = stratum, control = geese.control(epsilon = 1e-14, maxit = 100)); s <- summary(fit)$coefficients
put("gee", beta = vec(s[, 1]), beta_se = vec(s[, 2]))
fit <- geeglm(age ~ parity + case, gaussian, by_stratum, id = stratum, control = geese.control(epsilon = 1e-14, maxit = 100)); s <- summary(fit)$coefficients
put("gee_linear", beta = vec(s[, 1]), beta_se = vec(s[, 2]))
data(respiratory, package = "geepack")
breath_data <- write_csv(with(respiratory, data.frame(outcome, treated = as.integer(treat == "A"), male = as.integer(sex == "M"), age, baseline,
                                                      patient = as.integer(factor(paste(center, id))))), "respiratory")
tight_gee <- geese.control(epsilon = 1e-15, maxit = 500)
breath <- breath_data[order(breath_data$patient), ]
fit <- geeglm(outcome ~ treated + male + age + baseline, binomial, breath, id = patient, corstr = "exchangeable", control = tight_gee)
s <- summary(fit)$coefficients
put("gee_exchangeable", beta = vec(s[, 1]), beta_se = vec(s[, 2]), correlation = fit$geese$alpha[[1]], scale = fit$geese$gamma[[1]],
    naive_se = vec(sqrt(diag(fit$geese$vbeta.naiv))))
fit <- geeglm(reaction ~ days, gaussian, sleepstudy_data, id = subject, corstr = "exchangeable", control = tight_gee)
s <- summary(fit)$coefficients
put("gee_linear_exchangeable", beta = vec(s[, 1]), beta_se = vec(s[, 2]), correlation = fit$geese$alpha[[1]], scale = fit$geese$gamma[[1]])
fit <- glmnet(as.matrix(infert_data[, -1]), infert_data$case, family = "binomial", alpha = 1, lambda = c(0.1, 0.05, 0.02, 0.005), thresh = 1e-30, maxit = 1e8)
put("lasso_logistic", lambda = vec(c(0.1, 0.05, 0.02, 0.005)), beta = unname(t(as.matrix(coef(fit)))))

suppressPackageStartupMessages(library(quantreg))
for (tau in c(0.25, 0.5, 0.9)) {
  fit <- rq(mpg ~ wt + hp + qsec, tau = tau, data = mtcars_data); s <- suppressWarnings(summary(fit, se = "nid"))$coefficients
  put(paste0("quantile_regression_", tau), beta = vec(s[, 1]), beta_se = vec(s[, 2]), t = vec(s[, 3]), p_value = vec(s[, 4]), objective = fit$rho)
}
fit <- rq(loss ~ air + water + acid, tau = 0.5, data = stackloss_data)
put("quantile_regression_stackloss", beta = vec(coef(fit)), objective = fit$rho)

# --- models of each client by itself, and their means
suppressPackageStartupMessages(library(metafor))
by_client <- function(name, fits) {
  b <- t(sapply(fits, coef)); se <- t(sapply(fits, function(fit) sqrt(diag(vcov(fit)))))
  meta <- lapply(seq_len(ncol(b)), function(j) list(fe = rma(yi = b[, j], sei = se[, j], method = "FE"), dl = rma(yi = b[, j], sei = se[, j], method = "DL")))
  put(name, own_beta = unname(b), own_se = unname(se), beta = vec(sapply(meta, function(m) m$dl$beta)), beta_se = vec(sapply(meta, function(m) m$dl$se)),
      p_value = vec(sapply(meta, function(m) m$dl$pval)), fixed = vec(sapply(meta, function(m) m$fe$beta)), fixed_se = vec(sapply(meta, function(m) m$fe$se)),
      q = vec(sapply(meta, function(m) m$dl$QE)), q_p_value = vec(sapply(meta, function(m) m$dl$QEp)), between = vec(sapply(meta, function(m) sqrt(m$dl$tau2))))
}
by_client("linear_by_client", lapply(split(cars_data, cars_data$cyl), function(d) lm(mpg ~ wt + hp, d)))
by_client("logistic_by_client", lapply(split(education_data, education_data$education), function(d) {
  fit <- glm(case ~ spontaneous + induced, binomial, d, control = glm.control(1e-8, 50))
  for (i in 1:8) fit <- suppressWarnings(glm(case ~ spontaneous + induced, binomial, d, start = coef(fit), control = glm.control(1e-16, 4)))
  fit
}))

# --- orthogonal polynomials
basis <- poly(mtcars_data$hp, 3)
put("polynomial", alpha = vec(attr(basis, "coefs")$alpha), norm2 = vec(attr(basis, "coefs")$norm2))
fit <- lm(mpg ~ poly(hp, 3) * am, mtcars_data); s <- summary(fit)$coefficients
put("polynomial_fit", beta = vec(s[, 1]), beta_se = vec(s[, 2]))

# --- imputation; missing values are written as nan
air <- datasets::airquality[, 1:4]; names(air) <- c("ozone", "solar", "wind", "temp")
text <- air; for (column in names(text)) text[[column]] <- ifelse(is.na(air[[column]]), "nan", format(air[[column]], trim = TRUE, digits = 15))
write.csv(text, "tests/data/airquality.csv", row.names = FALSE, quote = FALSE)
suppressPackageStartupMessages(library(mice))
# Three columns with gaps: every 17th temperature is taken away too.
air$temp[seq(5, nrow(air), 17)] <- NA
fit <- mice(air, m = 1, maxit = 400, method = "norm.predict", printFlag = FALSE, seed = 1)
# mice regularizes its regressions a little: the same by lm, from there to the fixed point.
full <- complete(fit)
for (i in 1:200) for (name in names(which(colSums(is.na(air)) > 0)))
  full[is.na(air[[name]]), name] <- predict(lm(reformulate(setdiff(names(air), name), name), full[!is.na(air[[name]]), ]), full[is.na(air[[name]]), ])
stopifnot(abs(as.matrix(full) / as.matrix(complete(fit)) - 1) < 1e-7)
put("impute_chained", mean = vec(colMeans(full)), sd = vec(apply(full, 2, sd)), missing = vec(colSums(is.na(air))),
    imputed = unname(as.matrix(full)))

# --- learning
fit <- lda(iris_data[, 1:4], iris_data$species); p <- predict(fit, iris_data[, 1:4])
put("lda", means = unname(fit$means), prior = vec(fit$prior), correct = sum(p$class == iris_data$species), first = p$posterior[71, ])
fit <- qda(iris_data[, 1:4], iris_data$species); p <- predict(fit, iris_data[, 1:4])
put("qda", correct = sum(p$class == iris_data$species))
fit <- factanal(attitude_data, 2, rotation = "none", control = list(opt = list(factr = 1e-3, pgtol = 1e-12), lower = 0.005))
put("factor_analysis", uniquenesses = vec(fit$uniquenesses), loadings = unname(unclass(fit$loadings) + 0), statistic = fit$STATISTIC[[1]], df = fit$dof, p_value = fit$PVAL[[1]])
p <- prcomp(iris_data[, 1:4], scale. = TRUE)
put("pca_scaled", variances = vec(p$sdev^2), directions = unname(p$rotation))

lines <- paste0("{\n", paste(sprintf('"%s": %s', names(all), vapply(all, json, "")), collapse = ",\n"), "\n}")
writeLines(lines, "tests/reference/library.json")

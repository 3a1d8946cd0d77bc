# Residuals, nested models and cross-validation by R, from the pooled data of tests/data. Needs R alone. From the root of the repository:
#   Rscript tests/reference/judging.R
# writes tests/reference/judging.json.
options(warn = 1)
mtcars_data <- read.csv("tests/data/mtcars.csv")
infert_data <- read.csv("tests/data/infert.csv")
all <- list()
numbers <- function(v) paste0("[", paste(sprintf("%.17g", v), collapse = ", "), "]")
json <- function(v) if (is.matrix(v)) paste0("[", paste(apply(v, 1, numbers), collapse = ", "), "]") else if (length(v) == 1) sprintf("%.17g", v) else numbers(v)
put <- function(.key, ...) { values <- list(...); all[[.key]] <<- paste0("{", paste(sprintf('"%s": %s', names(values), sapply(values, json)), collapse = ", "), "}") }

fit <- lm(mpg ~ wt + hp + qsec, mtcars_data)
r <- residuals(fit); n <- length(r); quartiles <- quantile(r, c(0.25, 0.5, 0.75), names = FALSE)
second <- mean(r^2); skewness <- mean(r^3) / second^1.5; kurtosis <- mean(r^4) / second^2
jb <- n / 6 * (skewness^2 + (kurtosis - 3)^2 / 4)
bp <- n * summary(lm(r^2 ~ wt + hp + qsec, mtcars_data))$r.squared
put("residuals", n = n, min = min(r), lower_quartile = quartiles[1], median = quartiles[2], upper_quartile = quartiles[3], max = max(r), sigma = summary(fit)$sigma,
    df = fit$df.residual, skewness = skewness, kurtosis = kurtosis, jarque_bera = jb, jarque_bera_p = pchisq(jb, 2, lower.tail = FALSE),
    breusch_pagan = bp, breusch_pagan_df = 3, breusch_pagan_p = pchisq(bp, 3, lower.tail = FALSE))

small <- lm(mpg ~ wt, mtcars_data); large <- lm(mpg ~ wt + hp + qsec, mtcars_data); a <- anova(small, large)
lr <- 2 * (as.numeric(logLik(large)) - as.numeric(logLik(small)))
put("nested_linear", n = n, f = a$F[2], f_df = c(a$Df[2], a$Res.Df[2]), f_p_value = a$`Pr(>F)`[2], likelihood_ratio = lr, likelihood_ratio_df = 2,
    likelihood_ratio_p = pchisq(lr, 2, lower.tail = FALSE), residual_squares = a$RSS, log_likelihood = c(logLik(small), logLik(large)),
    aic = c(AIC(small), AIC(large)), bic = c(BIC(small), BIC(large)))

tight <- glm.control(epsilon = 1e-15, maxit = 200)
small <- glm(case ~ spontaneous, binomial, infert_data, control = tight)
large <- glm(case ~ spontaneous + induced + parity, binomial, infert_data, control = tight)
lr <- small$deviance - large$deviance
added <- coef(large)[3:4]; wald <- as.numeric(added %*% solve(vcov(large)[3:4, 3:4], added))
put("nested_logistic", n = nrow(infert_data), likelihood_ratio = lr, likelihood_ratio_df = 2, likelihood_ratio_p = pchisq(lr, 2, lower.tail = FALSE),
    wald = wald, wald_df = 2, wald_p = pchisq(wald, 2, lower.tail = FALSE), deviance = c(small$deviance, large$deviance),
    aic = c(AIC(small), AIC(large)), bic = c(BIC(small), BIC(large)))

fold <- 1 + (seq_len(nrow(mtcars_data)) - 1) %% 5
beta <- t(sapply(1:5, function(k) coef(lm(mpg ~ wt + hp, mtcars_data[fold != k, ]))))
prediction <- rowSums(cbind(1, mtcars_data$wt, mtcars_data$hp) * beta[fold, ])
e <- mtcars_data$mpg - prediction
put("linear_cross_validation", n = n, mse = mean(e^2), rmse = sqrt(mean(e^2)), mae = mean(abs(e)),
    r_squared = 1 - mean(e^2) / mean((mtcars_data$mpg - mean(mtcars_data$mpg))^2), beta = unname(beta))
writeLines(paste0("{\"made_by\": \"tests/reference/judging.R with ", R.version.string, "\",\n",
                  paste(sprintf('"%s": %s', names(all), unlist(all)), collapse = ",\n"), "}"), "tests/reference/judging.json")

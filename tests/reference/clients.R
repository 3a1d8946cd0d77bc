# Random intercepts and meta-analyses by site, as R has them: Rscript tests/reference/clients.R > tests/reference/clients.json
# Needs lme4, metafor and jsonlite (Debian: r-cran-lme4, r-cran-metafor, r-cran-jsonlite). Data: tests/data/mtcars.csv by number of carburettors, tests/data/insects.csv by spray.
suppressPackageStartupMessages({
  library(lme4)
  library(metafor)
  library(jsonlite)
})
cars <- read.csv("tests/data/mtcars.csv")
control <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-12), check.conv.singular = "ignore")
fit <- lmer(mpg ~ qsec + am + (1 | carb), cars, REML = TRUE, control = control)
spread <- as.data.frame(VarCorr(fit))$sdcor
insects <- read.csv("tests/data/insects.csv")
insects$spray <- 1 + as.matrix(insects[, -1]) %*% 1:5
mean_of <- tapply(insects$count, insects$spray, mean)
variance_of <- tapply(insects$count, insects$spray, var) / tapply(insects$count, insects$spray, length)
meta <- function(method) {
  m <- rma(yi = as.numeric(mean_of), vi = as.numeric(variance_of), method = method, control = list(threshold = 1e-14, maxiter = 10000))
  list(mean = as.numeric(m$beta), se = m$se, tau2 = m$tau2, q = m$QE)
}
cat(toJSON(list(
  random_intercept = list(beta = unname(fixef(fit)), beta_se = unname(sqrt(diag(as.matrix(vcov(fit))))),
                          between = spread[1], residual = spread[2]),
  fixed = meta("FE"), dl = meta("DL"), reml = meta("REML")), digits = 17, auto_unbox = TRUE, pretty = TRUE), "\n")

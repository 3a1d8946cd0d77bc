# Generalized linear models by R's glm, and the data they were fitted to, which comes with R (package datasets).
# Needs R alone (Debian: r-base-core). From the root of the repository:
#   Rscript tests/reference/glm.R
# writes tests/data/{infert,mtcars,warpbreaks,esoph,insects}.csv and tests/reference/glm.json.
library(datasets)

number <- function(v) paste0("[", paste(sprintf("%.17g", v), collapse = ", "), "]")
write_csv <- function(data, name) write.csv(data, file.path("tests/data", paste0(name, ".csv")), row.names = FALSE, quote = FALSE)

infert_data <- with(infert, data.frame(case, age, parity, induced, spontaneous))
mtcars_data <- with(mtcars, data.frame(mpg, wt, hp, qsec, am, carb))
warpbreaks_data <- with(warpbreaks, data.frame(breaks, woolB = as.integer(wool == "B"), tensionM = as.integer(tension == "M"),
                                               tensionH = as.integer(tension == "H")))
esoph_data <- with(esoph, data.frame(age = as.integer(agegp), alcohol = as.integer(alcgp), tobacco = as.integer(tobgp),
                                     rate = ncases / (ncases + ncontrols), trials = ncases + ncontrols))
sprays <- c(B = "B", C = "C", D = "D", E = "E", F = "F")
insects_data <- with(InsectSprays, data.frame(count, sapply(sprays, function(s) as.integer(spray == s))))
write_csv(infert_data, "infert")
write_csv(mtcars_data, "mtcars")
write_csv(warpbreaks_data, "warpbreaks")
# Seventeen digits, so that the proportions read back as the same numbers.
esoph_data$rate <- sprintf("%.17g", esoph_data$rate)
write_csv(esoph_data, "esoph")
write_csv(insects_data, "insects")
esoph_data <- read.csv("tests/data/esoph.csv")

# name, data, formula, family, then what glm takes by name
fits <- list(
  list("infert", "infert", case ~ age + parity + induced + spontaneous, binomial()),
  list("mtcars_am", "mtcars", am ~ wt + hp, binomial()),
  list("esoph", "esoph", rate ~ age + alcohol + tobacco, binomial(), weights = "trials"),
  list("warpbreaks", "warpbreaks", breaks ~ woolB + tensionM + tensionH, poisson()),
  list("insects", "insects", count ~ B + C + D + E + F, poisson()),
  list("mtcars_carb", "mtcars", carb ~ qsec + wt, poisson(), offset = "hp"),
  list("mtcars_log", "mtcars", mpg ~ wt + hp, Gamma(link = "log")),
  list("mtcars_inverse", "mtcars", mpg ~ wt + hp, Gamma()),
  list("mtcars_gaussian", "mtcars", mpg ~ wt + hp + qsec, gaussian())
)

# From R's own start, or from given coefficients.
one <- function(fit, epsilon, maxit = 25, start = NULL) {
  data <- get(paste0(fit[[2]], "_data"))
  data$.w <- if (is.null(fit$weights)) rep(1, nrow(data)) else data[[fit$weights]]
  data$.o <- if (is.null(fit$offset)) rep(0, nrow(data)) else log(data[[fit$offset]])
  formula <- fit[[3]]
  environment(formula) <- environment()
  suppressWarnings(glm(formula, family = fit[[4]], data = data, weights = .w, offset = .o, start = start, control = glm.control(epsilon, maxit)))
}

# Where glm goes from zero, without stopping: coefficients and deviance after each iteration, the first being zero's own. Then how
# many iterations it takes until it stops by itself, and until no coefficient moves by 1e-9 any more.
from_zero <- function(fit, count = 12) {
  zero <- 0 * coef(one(fit, 1e-8))
  runs <- lapply(seq_len(count), function(k) one(fit, 1e-300, k, zero))
  path <- cbind(zero, sapply(runs, coef))
  mu <- rep(0.5, nrow(get(paste0(fit[[2]], "_data"))))
  deviances <- c(sum(fit[[4]]$dev.resids(runs[[1]]$y, mu, runs[[1]]$prior.weights)), sapply(runs, deviance))
  moved <- apply(abs(path[, -1] - path[, -ncol(path)]), 2, max)
  settled <- which(moved < 1e-9)[1]
  c(paste0('"zero_iterations": ', one(fit, 1e-8, 25, zero)$iter),
    paste0('"zero_settled": ', settled),
    paste0('"zero_path": [', paste(apply(path[, seq_len(settled + 1)], 2, number), collapse = ", "), "]"),
    paste0('"zero_deviance": ', number(deviances[seq_len(settled)])))
}

lines <- character()
for (fit in fits) {
  usual <- one(fit, 1e-8)
  tight <- one(fit, 1e-15, 100)
  table <- summary(tight)
  path <- sapply(seq_len(usual$iter), function(k) coef(one(fit, 1e-300, k)))  # the iterates, a column each
  quote <- function(text) paste0('"', text, '"')
  lines <- c(lines, paste0(quote(fit[[1]]), ": {\n    ", paste(c(
    paste0('"data": ', quote(fit[[2]])),
    paste0('"family": ', quote(paste0(fit[[4]]$family, "(", fit[[4]]$link, ")"))),
    paste0('"y": ', quote(all.vars(fit[[3]])[1])),
    paste0('"x": [', paste(quote(all.vars(fit[[3]])[-1]), collapse = ", "), "]"),
    paste0('"weights": ', if (is.null(fit$weights)) "null" else quote(fit$weights)),
    paste0('"log_offset": ', if (is.null(fit$offset)) "null" else quote(fit$offset)),
    paste0('"iterations": ', usual$iter),
    paste0('"beta": ', number(coef(usual))),
    paste0('"deviance": ', sprintf("%.17g", deviance(usual))),
    paste0('"path": [', paste(apply(path, 2, number), collapse = ", "), "]"),
    paste0('"tight_iterations": ', tight$iter),
    paste0('"tight_beta": ', number(coef(tight))),
    paste0('"tight_se": ', number(table$coefficients[, 2])),
    paste0('"tight_z": ', number(table$coefficients[, 3])),
    paste0('"tight_p": ', number(table$coefficients[, 4])),
    paste0('"tight_deviance": ', sprintf("%.17g", deviance(tight))),
    paste0('"dispersion": ', sprintf("%.17g", table$dispersion)),
    if (fit[[1]] %in% c("infert", "mtcars_am")) from_zero(fit)), collapse = ",\n    "), "\n  }"))
}
version <- paste0('"made_by": "tests/reference/glm.R with ', R.version.string, '"')
writeLines(paste0("{\n  ", paste(c(version, lines), collapse = ",\n  "), "\n}"), "tests/reference/glm.json")

# Designs by R's model.matrix: names of columns and numbers, for formulas of every kind, over a table of thirteen records. Needs R alone.
# From the root of the repository:
#   Rscript tests/reference/formulas.R
# writes tests/data/formulas.csv, tests/data/formulas_holes.csv and tests/reference/formulas.json. `id` numbers the records in them; no formula
# uses it.

# A level that no record has (d), missing values, a column whose name is not made of letters.
data <- data.frame(
  y = c(2.5, 3.25, 1, 4.5, 2, 6.75, 3, 1.5, 5, 2.25, 7, 3.5, 4),
  n = c(1, 0, 2, 3, 1, 5, 2, 0, 4, 1, 6, 2, 3),
  x = c(0.5, 1.25, 2, 3.5, 4, 1.75, 2.5, 0.25, 3, 5.5, 6, 2.75, 1),
  z = c(3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9),
  ward = c("a", "b", "c", "a", "b", "c", "a", "c", "b", "a", "c", "b", "a"),
  sex = c("f", "m", "m", "f", "f", "m", "f", "m", "f", "m", "f", "m", "m"),
  arm = c("p", "q", "p", "q", "q", "p", "p", "q", "p", "q", "q", "p", "q"),
  smoker = c(TRUE, FALSE, TRUE, TRUE, FALSE, FALSE, TRUE, FALSE, TRUE, FALSE, FALSE, TRUE, TRUE),
  code = c(1, 2, 3, 3, 2, 1, 2, 3, 1, 1, 2, 3, 2),
  check.names = FALSE)
data[["blood pressure"]] <- c(120, 130, 125, 140, 110, 135, 128, 122, 131, 119, 127, 138, 126)
holes <- data
holes$x[3] <- NA
holes$z[7] <- NA
holes$ward[11] <- NA

with_levels <- function(d) {
  d$ward <- factor(d$ward, levels = c("a", "b", "c", "d"))
  d$sex <- factor(d$sex, levels = c("f", "m"))
  d$arm <- factor(d$arm, levels = c("p", "q"))
  d
}

formulas <- c(
  "y ~ x", "y ~ x + z", "y ~ x * z", "y ~ x:z", "y ~ (x + z)", "y ~ (x)", "y ~ x + x", "y ~ x - x + z",
  "y ~ sex", "y ~ ward", "y ~ sex + ward", "y ~ sex * ward", "y ~ sex:ward", "y ~ ward:sex", "y ~ x * sex", "y ~ sex * x",
  "y ~ x:sex", "y ~ x:ward + sex", "y ~ x * sex * arm", "y ~ sex * ward * arm",
  "y ~ x - 1", "y ~ 0 + x", "y ~ x + 0 + z", "y ~ -1 + sex", "y ~ sex - 1", "y ~ ward + sex - 1", "y ~ x + sex - 1",
  "y ~ sex:ward - 1", "y ~ x:sex - 1", "y ~ x:sex + ward - 1", "y ~ sex * ward - 1", "y ~ 1 + x - 1 + 1",
  "y ~ sex / ward", "y ~ sex/(ward + x)", "y ~ (sex + arm)/x", "y ~ sex/arm/x", "y ~ ward %in% sex", "y ~ sex + ward %in% sex",
  "y ~ sex + x %in% sex", "y ~ sex/x - 1",
  "y ~ (sex + ward + x)^2", "y ~ (sex + arm + x)^3", "y ~ (x + z)^2 - x:z", "y ~ (sex + arm + x)^2 - sex:arm", "y ~ x^2", "y ~ sex^2",
  "y ~ sex * ward - sex", "y ~ sex * ward - ward", "y ~ sex * arm - sex - 1", "y ~ x * sex - x", "y ~ x * sex - sex",
  "y ~ sex:ward + sex", "y ~ sex:ward + ward", "y ~ ward:sex + sex", "y ~ sex:arm:x + arm", "y ~ sex:arm + arm:ward",
  "y ~ sex:arm + sex:ward + x", "y ~ sex:arm + sex:ward - 1", "y ~ ward:x + sex:x", "y ~ sex + sex:arm:ward",
  "y ~ log(x)", "y ~ sqrt(z) + exp(-x/2)", "y ~ log(x, 2) + log(x, base = 10)", "y ~ log2(x) + log10(x) + log1p(x) + expm1(x)",
  "y ~ I(x^2)", "y ~ x + I(x^2) + I(x^3)", "y ~ I(x * z) + I(x/z) + I(x - z) + I((x + z)^2)", "y ~ I(-x)", "y ~ I(z%%2) + I(z%/%2)",
  "y ~ I(0.5 * x) + I(1e-04 * x) + I(100000 * x) + I(123456 * x)", "y ~ I(.1+x)", "y ~ I(2 * pi * x)", "y ~ abs(x - 2) + floor(x) + ceiling(x) + round(x) + sign(x - 2)",
  "y ~ pmin(x, z) + pmax(x - 2, 0)", "y ~ ifelse(x > 2, 1, 0)", "y ~ sin(x) + cos(x) + tan(x) + tanh(x)",
  "y ~ log(x) * sex", "y ~ I(x^2):sex", "y ~ log(x):log(z)",
  "y ~ smoker", "y ~ smoker - 1", "y ~ smoker * sex", "y ~ I(x > 2)", "y ~ I(x > 2) - 1", "y ~ I(x > 1 & z < 6) + I(!smoker) + I(x < 1 | z == 5)",
  "y ~ I(x > 2):sex", "y ~ x > 2", "y ~ I(sex == \"m\")", "y ~ as.numeric(ward)", "y ~ as.numeric(x > 2)",
  "y ~ poly(x, 2, raw = TRUE)", "y ~ poly(x, 3, raw = TRUE) * sex", "y ~ poly(x, 1, raw = TRUE)", "y ~ poly(x, degree = 2, raw = TRUE):ward", "y ~ poly(log(x), 2, raw = TRUE) - 1",
  "y ~ C(ward)", "y ~ factor(ward, levels = LEVELS)", "y ~ relevel(ward, ref = \"b\")", "y ~ relevel(ward, ref = \"c\") * x", "y ~ C(sex) * C(arm)", "y ~ C(ward) - 1", "y ~ relevel(sex, ref = \"m\"):x",
  "y ~ `blood pressure`", "y ~ `blood pressure` * sex", "y ~ log(`blood pressure`) + I(`blood pressure`^2)",
  "log(y) ~ x", "I(y > 3) ~ x", "sqrt(y) ~ x * sex", "sex ~ x", "smoker ~ x + z", "cbind(n, z) ~ x", "~ x + sex", "~ sex:ward - 1",
  "n ~ x + offset(log(z))", "n ~ offset(log(z)) + x + offset(x)", "n ~ sex + offset(z) - 1",
  "y ~ x * z:sex", "y ~ (x + z)**2", "y ~ ward:sex:arm", "y ~ ward:sex:arm - 1", "y ~ sex %in% ward", "y ~ ward/sex/arm", "y ~ sex/ward/arm - 1",
  "y ~ ward/x + sex", "y ~ (ward + sex)/arm", "y ~ sex * (x + z)", "y ~ (sex + x)^2 - sex", "y ~ ward * poly(x, 2, raw = TRUE) - 1",
  "y ~ poly(x, 2, raw = TRUE):poly(z, 2, raw = TRUE)", "y ~ I(x^2) * ward", "y ~ x:z:sex", "y ~ x * z * sex - x:z:sex", "y ~ 0 + ward:x",
  "y ~ 0 + x + ward:x", "y ~ 0 + ward + ward:x", "y ~ sex + 0 + arm", "y ~ -1 + x:sex:arm", "y ~ sex:x + arm:x - 1", "y ~ sex:x:ward",
  "y ~ smoker:sex", "y ~ smoker:sex - 1", "y ~ smoker:x", "y ~ smoker/x", "y ~ smoker * I(x > 2)", "y ~ C(sex):C(ward)",
  "y ~ relevel(ward, ref = \"c\"):sex - 1", "y ~ relevel(ward, ref = \"d\")", "y ~ relevel(ward, ref = \"d\"):x + sex", "y ~ as.factor(ward)", "y ~ as.factor(sex):x",
  "y ~ `blood pressure`:ward", "y ~ I(`blood pressure` - 100) * sex", "y ~ log(x + 1) * sqrt(z)", "y ~ exp(x):ward - 1",
  "log(n + 1) ~ sex * ward + offset(x)", "n ~ x + offset(2 * z) + sex", "n ~ offset(x) + offset(I(z^2)) + sex:x",
  "y ~ (sex + ward + arm)^2 - sex:ward", "y ~ (sex + ward + arm)^3 - sex:ward:arm - 1", "y ~ sex + ward - sex", "y ~ sex * ward - 1 - sex", "y ~ x %in% sex - 1",
  "y ~ . - n - smoker + x:z", "y ~ x + I(x * (z > 3))", "y ~ I((x > 1) + (z > 3))", "y ~ ifelse(sex == \"m\", x, z)", "y ~ pmin(x, 3):sex", "y ~ 1 + sex",
  "y ~ ((sex)):((x))", "y ~ z - z + x", "y ~ x + z:sex:arm + sex", "y ~ I(-(x - 2)^2)", "y ~ I(x^-1) + I(2^x)", "y ~ I(x/z/2) + I(x - (z - 1))", "y ~ I(x%%2 == 0)",
  "cbind(y, log(z)) ~ sex - 1", "I(sex == \"m\") ~ x", "y ~ is.na(x) + z", "y ~ trunc(x) + sign(-x)",
  "y ~ x + z + sex + ward + arm + smoker + code", "y ~ . - smoker - n", "y ~ (. - n - smoker - code)^2 - `blood pressure`")
formulas <- setdiff(formulas, "y ~ factor(ward, levels = LEVELS)")

number <- function(v) paste0("[", paste(ifelse(is.na(v), "null", sprintf("%.17g", v)), collapse = ", "), "]")
text <- function(s) encodeString(s, quote = "\"")
texts <- function(s) paste0("[", paste(sapply(s, text), collapse = ", "), "]")

# The response as glm takes it: a factor is 1 where it has not its first level.
response <- function(frame) {
  y <- model.response(frame)
  if (is.null(y)) return(NULL)
  if (is.factor(y)) y <- as.integer(y != levels(y)[1])
  as.matrix(y) + 0
}

one <- function(written, d) {
  frame <- model.frame(as.formula(written), with_levels(d), na.action = na.omit, drop.unused.levels = FALSE)
  design <- model.matrix(attr(frame, "terms"), frame)
  keep <- colnames(design) != "(Intercept)"
  y <- response(frame)
  offset <- model.offset(frame)
  paste0("  {\"formula\": ", text(written), ", \"records\": ", number(as.integer(rownames(frame))),
         ", \"intercept\": ", tolower(!all(keep)),
         ", \"names\": ", if (any(keep)) texts(colnames(design)[keep]) else "[]",
         ",\n   \"x\": ", number(as.vector(t(design[, keep, drop = FALSE]))),
         if (!is.null(y)) paste0(",\n   \"y\": ", number(as.vector(t(y)))) else "",
         if (!is.null(offset)) paste0(",\n   \"offset\": ", number(offset)) else "", "}")
}

holed <- c("y ~ x", "y ~ x * sex", "y ~ ward + z", "y ~ ward:sex", "y ~ log(x):ward - 1", "n ~ x + offset(log(z))", "y ~ z + sex", "y ~ sqrt(x - 1)", "y ~ sqrt(z - 3) + x")
whole <- sapply(formulas, one, d = data)
missing <- suppressWarnings(sapply(holed, one, d = holes))
writeLines(paste0("{\"whole\": [\n", paste(whole, collapse = ",\n"), "],\n \"holes\": [\n", paste(missing, collapse = ",\n"), "]}"),
           "tests/reference/formulas.json")
write_csv <- function(d, name) {
  d$smoker <- tolower(d$smoker)
  write.csv(cbind(id = seq_len(nrow(d)), d), file.path("tests/data", name), row.names = FALSE, quote = FALSE)
}
write_csv(data, "formulas.csv")
write_csv(holes, "formulas_holes.csv")

# R's glm, as a contestant of bench/run: prepares, says "ready", answers "run K" with a line of JSON.
words <- commandArgs(trailingOnly = TRUE)
settings <- sub("^[^=]*=", "", words[-1])
names(settings) <- sub("=.*$", "", words[-1])

# The numbers of a .npy file of doubles.
read_npy <- function(name, count) {
  file <- file(paste0(settings[["data"]], "/", name, ".npy"), "rb")
  on.exit(close(file))
  readBin(file, "raw", 8)
  header <- readBin(file, "integer", 1, size = 2, signed = FALSE, endian = "little")
  readBin(file, "raw", header)
  readBin(file, "double", count, endian = "little")
}

logistic_fit <- function() {
  records <- as.numeric(settings[["records"]])
  columns <- as.numeric(settings[["columns"]])
  x <- matrix(read_npy("x", records * columns), ncol = columns, byrow = TRUE)
  y <- read_npy("y", records)
  function() glm.fit(x, y, family = binomial(), intercept = FALSE, control = glm.control(epsilon = 1e-8))$coefficients
}

work <- switch(words[1], logistic_fit = logistic_fit())
input <- file("stdin", "r")
cat("ready\n")
flush(stdout())
while (length(line <- readLines(input, n = 1)) > 0) {
  seconds <- system.time(values <- work())[["elapsed"]]
  cat(sprintf('{"seconds": %.6f, "values": [%s]}\n', seconds, paste(sprintf("%.17g", values), collapse = ", ")))
  flush(stdout())
}

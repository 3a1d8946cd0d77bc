"""Regression: linear, generalized linear, robust, penalized, clustered, nonlinear.

Ready-made programs equal R on the pooled data, over uneven clients of which one has a single record and one has none.
"""
import numpy as np
import pytest
from ready_made import ATTITUDE, BINARY, BREAKS, MTCARS, R, agree, check, shuffled, table


def test_linear(ready):
    out, report = check(ready, "linear", "linear", "mtcars", ["x=wt,hp,qsec", "y=mpg"], tolerance=1e-11, skip=["vif"])
    assert report["rounds"] == 2 and report["warnings"] == []
    vif, _ = ready("vif", MTCARS, ["x=wt,hp,qsec"])
    agree(vif["vif"], R["linear"]["vif"], 1e-12, "vif")


def test_weighted(ready):
    check(ready, "weighted", "weighted", "mtcars", ["x=wt,hp", "y=mpg", "weight=qsec"], tolerance=1e-11)


def test_ridge(ready):
    out, report = ready("ridge", MTCARS, ["x=wt,hp,qsec", "y=mpg"], {"penalty": 2})
    agree(np.append(out["intercept"], out["beta"]), R["ridge"]["beta"], 1e-11, "ridge")
    assert report["rounds"] == 1


def test_robust(ready):
    check(ready, "robust", "robust", "mtcars", ["x=wt,hp,qsec", "y=mpg"], tolerance=1e-10, names={"beta_se": "hc0", "hc1": "beta_se"})


@pytest.mark.parametrize("program", ["logistic", "probit", "cloglog", "quasibinomial"])
def test_binary_outcomes(ready, program):
    statistic = "t" if program == "quasibinomial" else "z"
    skip = [] if program == "quasibinomial" else ["dispersion"]
    out, report = check(ready, program, program, "infert", BINARY, tolerance=2e-9, names={"statistic": statistic}, skip=skip)
    assert out["converged"] == 1 and report["warnings"] == []
    assert np.all(np.diff(report["traces"]["deviance"]) < 1e-6), "every point of the trace is a fit, and none is worse than the one before"


@pytest.mark.parametrize("program", ["poisson", "quasipoisson"])
def test_counts(ready, program):
    check(ready, program, program, "warpbreaks", BREAKS, names={"statistic": "z" if program == "poisson" else "t"})


def test_rates(ready):
    check(ready, "rates", "rates", "mtcars", ["x=qsec,wt", "y=carb", "exposure=hp"], names={"statistic": "z"})


def test_gamma(ready):
    check(ready, "gamma", "gamma", "mtcars", ["x=wt,hp", "y=mpg"], tolerance=2e-9, names={"statistic": "t"})


def test_negative_binomial(ready):
    check(ready, "negative_binomial", "negative_binomial", "quine", ["x=aboriginal,male,F1,F2,F3,slow", "y=days"], tolerance=2e-9,
          names={"statistic": "z"})


def test_multinomial(ready):
    # The errors of the reference are made with differences.
    out, _ = check(ready, "multinomial", "multinomial", "education", ["x=age,parity", "y=education"], tolerance=1e-10, skip=["beta_se"])
    agree(out["beta_se"], R["multinomial"]["beta_se"], 1e-7, "errors")


def test_ordinal(ready):
    out, _ = check(ready, "ordinal", "ordinal", "education", ["x=age,parity", "y=education"], tolerance=1e-10, skip=["se"])
    agree(np.append(out["beta_se"], out["cut_se"]), R["ordinal"]["se"], 1e-7, "errors")


def test_huber(ready):
    check(ready, "huber", "huber", "stackloss", ["x=air,water,acid", "y=loss"], tolerance=1e-10)


@pytest.mark.parametrize("mixing", ["1", "0.5"])
def test_lasso(ready, mixing):
    expected = R[f"lasso_{mixing}"]
    out, report = ready("lasso", table("attitude"), ATTITUDE, {"lambda": expected["lambda"], "mixing": float(mixing)})
    agree(np.column_stack([out["intercept"], out["beta"]]), expected["beta"], 1e-10, "path")
    assert report["rounds"] == 1
    ladder, _ = ready("lasso", table("attitude"), ATTITUDE, {"mixing": float(mixing)})
    assert ladder["nonzero"][0] == 0 and ladder["nonzero"][1] > 0


def test_lasso_by_cross_validation(ready):
    data = table("attitude")
    data["fold"] = [float(1 + i % 5) for i in range(len(data["rating"]))]
    _, report = check(ready, "lasso_cv", "lasso_cv", data, ATTITUDE + ["fold=fold"], {"lambda": R["lasso_cv"]["lambda"]}, tolerance=1e-10)
    assert report["rounds"] == 2


def test_survey_weights(ready):
    check(ready, "survey_linear", "survey_linear", "mtcars", ["x=wt,hp", "y=mpg", "weight=qsec"], tolerance=1e-11)
    check(ready, "survey_mean", "survey_mean", "mtcars", ["x=mpg,wt", "weight=qsec"], tolerance=1e-12)
    check(ready, "survey_logistic", "survey_logistic", "infert", ["x=induced,spontaneous", "y=case", "weight=age"])


def test_clustered_records(ready):
    data = table("education")
    # Interleaved, so that clusters are spread over clients.
    order = sorted(range(len(data["case"])), key=lambda i: i * 37 % 248)
    data = {name: [values[i] for i in order] for name, values in data.items()}
    check(ready, "gee", "gee", data, ["x=spontaneous,induced", "y=case", "cluster=stratum"], {"clusters": 83}, 1e-8)
    check(ready, "gee_linear", "gee_linear", data, ["x=parity,case", "y=age", "cluster=stratum"], {"clusters": 83}, 1e-8)


def test_exchangeable_correlation(ready):
    check(ready, "gee_exchangeable", "gee_exchangeable", shuffled("respiratory"), ["x=treated,male,age,baseline", "y=outcome", "cluster=patient"],
          {"clusters": 111}, 1e-8)
    check(ready, "gee_linear_exchangeable", "gee_linear_exchangeable", shuffled("sleepstudy"), ["x=days", "y=reaction", "cluster=subject"],
          {"clusters": 18}, 1e-8)


@pytest.mark.parametrize("tau", [0.25, 0.5, 0.9])
def test_quantile_regression(ready, tau):
    out, report = check(ready, f"quantile_regression_{tau}", "quantile_regression", "mtcars", ["x=wt,hp,qsec", "y=mpg"], {"tau": tau}, 1e-10)
    agree(out["beta"], R[f"quantile_regression_{tau}"]["beta"], 1e-13, "the vertex of the linear program")
    assert any("quantiles cross for some records" in warning for warning in report["warnings"]) == (tau != 0.5)
    check(ready, "quantile_regression_stackloss", "quantile_regression", "stackloss", ["x=air,water,acid", "y=loss"], None, 1e-11)


def test_quantiles_that_are_not_unique(ready):
    """With ties and without a unique solution the loss is still the least."""
    data = {"x": [0.0, 0, 0, 0, 1, 1, 1, 1], "y": [1.0, 2, 3, 4, 5, 5, 7, 7]}
    out, _ = ready("quantile_regression", data, ["x=x", "y=y"])
    agree(out["objective"], 4, 1e-10, "loss")
    assert 2 - 1e-9 <= out["beta"][0] <= 3 + 1e-9 and 5 - 1e-9 <= out["beta"].sum() <= 7 + 1e-9
    assert "tau must lie between 0 and 1" in ready("quantile_regression", data, ["x=x", "y=y"], {"tau": 1}, fails=True)


def test_orthogonal_polynomials(ready):
    """In two runs: their numbers over all records, then the model, with R's names."""
    out, report = check(ready, "polynomial", "polynomial", "mtcars", ["x=hp"], {"degree": 3}, 1e-11)
    assert report["rounds"] == 2
    lists = {name: ", ".join(repr(v) for v in out[name].tolist()) for name in ("alpha", "norm2")}
    formula = f"mpg ~ poly(hp, 3, coefs = list(alpha = c({lists['alpha']}), norm2 = c({lists['norm2']}))) * am"
    fit, _ = ready("linear", MTCARS, [], None, "--formula", formula)
    for name in ("beta", "beta_se"):
        agree(fit[name], R["polynomial_fit"][name], 1e-9, name)
    few = {"x": [1.0, 1, 2, 2, 1]}
    assert "no more different values than the degree" in ready("polynomial", few, ["x=x"], fails=True)
    assert "no more records than the degree" in ready("polynomial", {"x": [1.0, 2]}, ["x=x"], fails=True)


@pytest.mark.parametrize("coefs, why", [("list(alpha = c(1, 2), norm2 = c(1, 3, 4, 5))", "alpha has as many numbers and norm2 two more"),
                                        ("c(1, 2)", "coefs are list"), ("list(alpha = hp, norm2 = c(1, 2, 3))", "a number must stand here"),
                                        ("list(alpha = 1, norm2 = c(1, -2, 3))", "norms are positive"), (None, "starfold run polynomial")])
def test_polynomials_without_their_numbers(starfold, tmp_path, coefs, why):
    (tmp_path / "a.csv").write_text("hp,mpg\n1,2\n2,3\n3,5\n4,4\n")
    text = "poly(hp)" if coefs is None else f"poly(hp, 1, coefs = {coefs})"
    result = starfold("run", "linear", "--client", f"a={tmp_path / 'a.csv'}", "--formula", f"mpg ~ {text}")
    assert result.code == 2 and why in result.err, result.err


def test_nonlinear_least_squares(ready, tmp_path):
    """A model of one's own: Michaelis and Menten's, by the optimizer of the library."""
    path = tmp_path / "kinetics.fold"
    path.write_text("import optim\ninput conc : [*]\ninput rate : [*]\nstate opt = optim.lm_start([200, 0.05])\nrepeat 1000 {\n"
                    "  let b = opt[1]\n  let r = rate - b[1] * conc / (b[2] + conc)\n  let j = jacobian(r, b)\n"
                    "  opt <- optim.lm(opt, r @ r, j' @ j, j' @ r)\n} until optim.lm_change(opt) < 1e-12\n"
                    "output beta = opt[2]\noutput beta_se = optim.lm_errors(opt, records(rate))\n"
                    "output sigma = sqrt(opt[4, 1] / (records(rate) - 2))\n")
    check(ready, "nls", path, "puromycin", [], None, 1e-8)

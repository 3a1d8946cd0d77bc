"""The ready-made programs equal R on the pooled data, over uneven clients of which one has a single record and one has none.

The figures and the script that made them are in tests/reference (library.json, library.R); R is not needed here.
"""
import csv
import json

import numpy as np
import pytest
from conftest import ROOT, array

R = json.loads((ROOT / "tests" / "reference" / "library.json").read_text())


def table(name):
    with open(ROOT / "tests" / "data" / f"{name}.csv") as file:
        rows = list(csv.DictReader(file))
    return {key: [float(row[key]) for row in rows] for key in rows[0]}


@pytest.fixture
def ready(starfold, tmp_path):
    """Runs a library program over the rows of a table, bound by column; returns outputs as arrays, and the report."""

    def go(program, data, binds, sets=None, *more, fails=False):
        rows = list(zip(*data.values()))
        n = len(rows)
        cuts = [0, n // 4, n // 4 + 1, n // 4 + 1, n]
        arguments = []
        for i, (a, b) in enumerate(zip(cuts, cuts[1:])):
            with open(tmp_path / f"c{i}.csv", "w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(data)
                writer.writerows([[repr(v) for v in row] for row in rows[a:b]])
            arguments += ["--client", f"c{i}={tmp_path / f'c{i}.csv'}"]
        for bind in binds:
            arguments += ["--bind", bind]
        for name, value in (sets or {}).items():
            arguments += ["--set", f"{name}={json.dumps(value)}"]
        result = starfold("run", program, "--json", *arguments, *more)
        if fails:
            assert result.code == 3, result.out + result.err
            return result.err
        assert result.code == 0, result.err
        report = result.json()
        return {name: array(value) for name, value in report["outputs"].items()}, report

    return go


def agree(actual, expected, tolerance, where):
    """Relative, with a floor at a thousandth of the largest entry."""
    expected = np.array(expected, dtype=float)
    floor = np.maximum(np.abs(expected), 1e-3 * np.max(np.abs(expected)))
    assert actual.shape == expected.shape, where
    off = np.abs(actual - expected) > tolerance * floor
    assert not np.any(off), f"{where}: {np.atleast_1d(actual)[np.atleast_1d(off)]} is not {np.atleast_1d(expected)[np.atleast_1d(off)]}"


def check(ready, key, program, data, binds, sets=None, tolerance=1e-9, names=(), skip=()):
    """Every figure of R's that has a result of the same name; `names` translates, `skip` leaves out."""
    out, report = ready(program, table(data) if isinstance(data, str) else data, binds, sets)
    names, compared = dict(names), 0
    for name, expected in R[key].items():
        if name in skip or isinstance(expected, str):
            continue
        agree(out[names.get(name, name)], expected, tolerance, f"{program}: {name}")
        compared += 1
    assert compared > 0
    return out, report


MTCARS, INFERT, LUNG, CARS = table("mtcars"), table("infert"), table("lung"), table("cars")
EVENTS = sorted({time for time, status in zip(LUNG["time"], LUNG["status"]) if status == 1})
SURVIVAL = ["time=time", "status=status"]
LUNG_STRATA = {**LUNG, "stratum": [1 + male for male in LUNG["male"]]}
BINARY = ["x=age,parity,induced,spontaneous", "y=case"]
BREAKS = ["x=woolB,tensionM,tensionH", "y=breaks"]
IRIS = ["x=sepal_length,sepal_width,petal_length,petal_width"]
ATTITUDE = ["x=complaints,privileges,learning,raises,critical,advance", "y=rating"]


# --- regression

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


def shuffled(name):
    """Interleaved, so that clusters are spread over clients."""
    data = table(name)
    n = len(next(iter(data.values())))
    order = sorted(range(n), key=lambda i: (i * 37 % n, i))
    return {name: [values[i] for i in order] for name, values in data.items()}


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


@pytest.mark.parametrize("reml", [1, 0])
def test_random_intercept(ready, reml):
    data = table("sleepstudy")
    order = sorted(range(180), key=lambda i: i * 37 % 180)
    data = {name: [values[i] for i in order] for name, values in data.items()}
    # lmer's optimizer finds the ratio of variances to about 1e-7.
    _, report = check(ready, f"random_intercept_{'reml' if reml else 'ml'}", "random_intercept", data,
                      ["x=days", "y=reaction", "group=subject"], {"groups": 18, "reml": reml}, 1e-7)
    assert report["rounds"] == 1


def test_groups_that_hardly_differ(ready):
    """The likelihood bends downwards where the fit begins; the answer is still lmer's."""
    check(ready, "random_intercept_near", "random_intercept", "near_groups", ["x=x", "y=y", "group=group"], {"groups": 10}, 1e-6)


def test_groups_behind_the_bar(ready):
    """The formula of a mixed model, and of clusters."""
    out, _ = ready("random_intercept", shuffled("sleepstudy"), [], {"groups": 18}, "--formula", "reaction ~ days | subject")
    agree(out["sd_between"], R["random_intercept_reml"]["sd_between"], 1e-7, "deviation")
    out, _ = ready("gee_linear_exchangeable", shuffled("sleepstudy"), [], {"clusters": 18}, "--formula", "reaction ~ days | subject")
    agree(out["beta_se"], R["gee_linear_exchangeable"]["beta_se"], 1e-8, "errors")


@pytest.mark.parametrize("reml", [1, 0])
def test_random_slope(ready, reml):
    """lmer's optimizer finds deviations to about 1e-6, what depends on their square to more."""
    key = f"random_slope_all_{'reml' if reml else 'ml'}"
    out, report = check(ready, key, "random_slope", shuffled("sleepstudy"), ["x=days", "y=reaction", "slope=days", "group=subject"],
                        {"groups": 18, "reml": reml}, 2e-6, skip=["group_intercepts"])
    agree(out["group_intercepts"], R[key]["group_intercepts"], 1e-5, "small beside the largest of them")
    agree(out["log_likelihood"], R[key]["log_likelihood"], 1e-11, "log-likelihood")
    assert report["rounds"] == 1 and report["warnings"] == []


@pytest.mark.parametrize("reml", [1, 0])
def test_random_slope_by_client(starfold, federation, tmp_path, reml):
    """Every subject is a client; one has a single record, and one client has none."""
    data = {name: np.array(values) for name, values in table("sleepstudy").items()}
    parts = {f"s{g:02}": (data["subject"] == g) & ((g > 1) | (data["days"] == 0)) for g in range(1, 19)}
    parts["empty"] = data["subject"] < 0
    clients = federation({name: {"x": data["days"][part][:, None], "y": data["reaction"][part], "slope": data["days"][part]} for name, part in parts.items()})
    result = starfold("run", "client_slope", "--json", "--out", tmp_path / "out", "--set", f"reml={reml}", *clients)
    assert result.code == 0, result.err
    expected = R[f"random_slope_few_{'reml' if reml else 'ml'}"]
    out = {name: array(value) for name, value in result.json()["outputs"].items()}
    for name in ("beta", "beta_se", "sd_intercept", "sd_slope", "correlation", "sd_within", "log_likelihood", "aic", "bic"):
        agree(out[name], expected[name], 2e-6, name)
    own = np.array([[np.load(tmp_path / "out" / "clients" / f"s{g:02}" / f"own_{name}.npy").item() for name in ("intercept", "slope")] for g in range(1, 19)])
    agree(own[:, 0], expected["group_intercepts"], 1e-5, "intercepts of clients")
    agree(own[:, 1], expected["group_slopes"], 2e-6, "slopes of clients")


@pytest.mark.parametrize("program, name, columns, outcome, by", [("linear_by_client", "cars", ["wt", "hp"], "mpg", "cyl"),
                                                                   ("logistic_by_client", "education", ["spontaneous", "induced"], "case", "education")])
def test_models_of_each_client(starfold, federation, tmp_path, program, name, columns, outcome, by):
    """A level is a client. One with a single record and one with none have no model and count nothing; every other keeps its own."""
    data = {key: np.array(values) for key, values in table(name).items()}
    parts = {f"c{int(level)}": data[by] == level for level in np.unique(data[by])}
    parts |= {"single": np.arange(len(data[by])) == 3, "empty": data[by] < 0}
    clients = federation({key: {"x": np.column_stack([data[c][part] for c in columns]), "y": data[outcome][part]} for key, part in parts.items()})
    result = starfold("run", program, "--json", "--out", tmp_path / "out", *clients)
    assert result.code == 0, result.err
    out = {key: array(value) for key, value in result.json()["outputs"].items()}
    for key in ("beta", "beta_se", "p_value", "fixed", "fixed_se", "q", "q_p_value", "between"):
        agree(out[key], R[program][key], 1e-8, key)
    assert out["clients"] == len(parts) - 2
    for i in range(len(parts) - 2):
        for key in ("own_beta", "own_se"):
            agree(np.load(tmp_path / "out" / "clients" / f"c{i + 1}" / f"{key}.npy").ravel(), R[program][key][i], 1e-8, key)
    assert np.isnan(np.load(tmp_path / "out" / "clients" / "single" / "own_beta.npy")).all()


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


# --- survival

@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_cox(ready, ties):
    skip = ["cumulative_hazard"] if ties == "efron" else []
    check(ready, f"cox_{ties}", "cox", "lung", ["x=age,male,ecog,karno"] + SURVIVAL, {"grid": EVENTS, "efron": int(ties == "efron")},
          tolerance=1e-10, names={"cumulative_hazard": "breslow_hazard"}, skip=skip)


def test_cox_with_strata(ready):
    check(ready, "cox_strata", "cox_strata", LUNG_STRATA, ["x=age,ecog", "stratum=stratum"] + SURVIVAL, {"grid": EVENTS}, tolerance=1e-10)


def test_kaplan_meier(ready):
    _, report = check(ready, "kaplan_meier", "kaplan_meier", "lung", SURVIVAL, {"grid": EVENTS}, tolerance=1e-12)
    assert report["rounds"] == 1 and report["warnings"] == []
    # Between times of a coarser grid events count at the next one, and that is said.
    _, report = ready("kaplan_meier", LUNG, SURVIVAL, {"grid": [100, 200, 400, 1100]})
    assert any("between times of the grid" in warning for warning in report["warnings"])


def test_logrank(ready):
    check(ready, "logrank", "logrank", LUNG_STRATA, SURVIVAL + ["group=stratum"], {"grid": EVENTS}, tolerance=1e-12)


@pytest.mark.parametrize("program", ["weibull", "exponential"])
def test_parametric_survival(ready, program):
    skip = ["scale", "log_scale_se"] if program == "exponential" else []
    check(ready, program, program, "lung", ["x=age,male,ecog"] + SURVIVAL, tolerance=2e-9, skip=skip)


def test_weibull_far_from_its_start(ready):
    """The likelihood bends downwards where the fit begins; the answer is still that of survreg."""
    out, _ = check(ready, "weibull_far", "weibull", "far_times", ["x=x", "time=time", "status=status"], tolerance=2e-9)
    assert out["converged"] == 1 and out["iterations"] < 20


# --- tests

DIFFERENCE = {"statistic": "t", "lower": "difference_lower", "upper": "difference_upper"}


def test_t_tests(ready):
    check(ready, "t_one_sample", "t_one_sample", "mtcars", ["x=mpg"], {"mu": 18}, 1e-12,
          {"statistic": "t", "lower": "mean_lower", "upper": "mean_upper"})
    check(ready, "t_pooled", "t_test", "mtcars", ["y=mpg", "group=am"], {"pooled": 1}, 1e-12, DIFFERENCE)
    check(ready, "t_welch", "t_test", "mtcars", ["y=mpg", "group=am"], None, 1e-12, DIFFERENCE)
    check(ready, "t_paired", "t_paired", "sleep", ["x=first", "y=second"], None, 1e-12, DIFFERENCE)


def test_analysis_of_variance(ready):
    data = table("insects")
    data["spray"] = [1 + b + 2 * c + 3 * d + 4 * e + 5 * f for b, c, d, e, f in zip(*[data[name] for name in "BCDEF"])]
    check(ready, "anova_one_way", "anova", data, ["y=count", "group=spray"], {"groups": 6}, 1e-11)
    check(ready, "anova_two_way", "anova_two_way", "cars", ["y=mpg", "a=cyl", "b=am"], {"levels_a": 3}, 1e-11)


def test_tables_of_counts(ready):
    _, report = check(ready, "chi_square", "chi_square", "cars", ["row=cyl", "column=am"], {"rows": 3}, 1e-12)
    assert any("below 5" in warning for warning in report["warnings"])
    table_2 = {"row": [am - 1 for am in CARS["am"]], "column": [float(wt > 3.2) for wt in MTCARS["wt"]]}
    check(ready, "fisher", "fisher", table_2, ["row=row", "column=column"], None, 1e-11)
    data = {"y": INFERT["case"], "group": [float(induced > 0) for induced in INFERT["induced"]]}
    check(ready, "proportions", "proportions", data, ["y=y", "group=group"], None, 1e-12)


@pytest.mark.parametrize("program", ["kolmogorov_smirnov", "mann_whitney"])
def test_on_a_grid(ready, program):
    data = {"x": CARS["mpg"], "group": [am - 1 for am in CARS["am"]]}
    check(ready, program, program, data, ["x=x", "group=group"], {"grid": R[program]["grid"]}, 1e-12, skip=["grid"])


# --- description and judging

def test_table1(ready):
    data = table("iris")
    data["sepal_length"] = [float("nan") if i % 7 == 3 else v for i, v in enumerate(data["sepal_length"])]
    out, _ = ready("table1", data, ["x=sepal_length,petal_width", "group=species"], {"groups": 3}, "--missing", "nan")
    x = np.column_stack([data["sepal_length"], data["petal_width"]])
    group = np.array(data["species"])
    for name, expected in (("mean", np.nanmean(x, 0)), ("sd", np.nanstd(x, 0, ddof=1)), ("lower_quartile", np.nanquantile(x, 0.25, 0)),
                           ("median", np.nanmedian(x, 0)), ("upper_quartile", np.nanquantile(x, 0.75, 0)), ("missing", np.isnan(x).sum(0))):
        agree(out[name], expected, 1e-12, name)
    for g in range(3):
        own = x[group == g + 1]
        agree(out["mean_by_group"][:, g], np.nanmean(own, 0), 1e-12, "mean by group")
        agree(out["sd_by_group"][:, g], np.nanstd(own, 0, ddof=1), 1e-12, "sd by group")
        agree(out["median_by_group"][:, g], np.nanmedian(own, 0), 1e-12, "median by group")
        agree(out["missing_by_group"][:, g], np.isnan(own).sum(0), 0, "missing by group")


def test_table1_by_site(starfold, tmp_path):
    """All columns, by a factor, by the client: what stands behind `|`."""
    (tmp_path / "a.csv").write_text("age,sex,bmi\n50,m,20\n60,f,\n55,m,30\n")
    (tmp_path / "b.csv").write_text("age,sex,bmi\n41,f,22\n66,f,25\n58,m,31\n")
    clients = ["--client", f"north={tmp_path / 'a.csv'}", "--client", f"south={tmp_path / 'b.csv'}", "--levels", "sex=f,m", "--missing", "nan"]
    result = starfold("run", "table1", "--json", "--formula", "~ . | site", *clients)
    assert result.code == 0, result.err
    out = {name: array(value) for name, value in result.json()["outputs"].items()}
    agree(out["mean_by_group"], [[55, 55], [2 / 3, 1 / 3], [25, 26]], 1e-14, "means by site")
    assert out["missing_by_group"].tolist() == [[0, 0], [0, 0], [1, 0]]
    result = starfold("run", "table1", "--json", "--formula", "~ age + bmi | sex", *clients)
    agree(array(result.json()["outputs"]["median_by_group"]), [[60, 55], [23.5, 30]], 1e-14, "medians by sex")
    wrong = starfold("run", "linear", "--formula", "bmi ~ age | sex", *clients)
    assert wrong.code != 0 and "is for an input group, cluster or stratum" in wrong.err
    for formula, why in (("~ age | sex | site", "one `|`"), ("~ age | .", "no group"), ("~ age | poly(bmi, 2, raw = TRUE)", "one column")):
        wrong = starfold("run", "table1", "--formula", formula, *clients)
        assert wrong.code == 2 and why in wrong.err


def test_correlation(ready):
    out, _ = ready("correlation", CARS, ["x=mpg,wt"])
    agree(out["p_value"][0, 1], R["correlation"]["p_value"], 1e-11, "p value")
    agree(out["correlation_lower"][0, 1], R["correlation"]["lower"], 1e-11, "interval")


def test_histogram_and_quantiles(ready):
    edges = [10, 15, 20, 25, 35]
    out, _ = ready("histogram", CARS, ["x=mpg"], {"edges": edges})
    assert out["counts"].tolist() == np.histogram(CARS["mpg"], edges)[0].tolist()
    data = table("iris")
    out, _ = ready("column_quantiles", data, IRIS, {"q": [0.1, 0.5, 0.9]})
    x = np.column_stack([data[name] for name in IRIS[0][2:].split(",")])
    agree(out["quantile"], np.quantile(x, [0.1, 0.5, 0.9], axis=0), 1e-14, "quantiles")


def test_roc(ready):
    out, _ = ready("roc", INFERT, ["score=spontaneous", "y=case"], {"grid": [0, 1, 2]})
    score, y = np.array(INFERT["spontaneous"]), np.array(INFERT["case"])
    wins = np.sign(score[y == 1][:, None] - score[y == 0]) / 2 + 0.5
    agree(out["auc"], wins.mean(), 1e-14, "AUC")
    delong = wins.mean(1).var(ddof=1) / (y == 1).sum() + wins.mean(0).var(ddof=1) / (y == 0).sum()
    agree(out["auc_se"], np.sqrt(delong), 1e-13, "its error")
    agree(out["sensitivity"], [(score[y == 1] >= t).mean() for t in (0, 1, 2)], 1e-14, "sensitivity")
    agree(out["specificity"], [(score[y == 0] < t).mean() for t in (0, 1, 2)], 1e-14, "specificity")


def test_calibration_and_cross_validation(ready):
    data = {**INFERT, "p": [0.1 + 0.3 * s for s in INFERT["spontaneous"]], "fold": [float(1 + i % 5) for i in range(len(INFERT["case"]))]}
    check(ready, "calibration", "calibration", data, ["prediction=p", "y=case"], None, 1e-10)
    check(ready, "cross_validation", "cross_validation", data, BINARY + ["fold=fold"], None, 1e-10)


def test_confusion(ready):
    data = {"truth": [1.0, 1, 2, 2, 2, 3, 3, 1], "prediction": [1.0, 2, 2, 2, 3, 3, 3, 1]}
    out, _ = ready("confusion", data, ["truth=truth", "prediction=prediction"], {"labels": 3})
    assert out["counts"].tolist() == [[2, 1, 0], [0, 2, 1], [0, 0, 2]]
    agree(out["accuracy"], 0.75, 1e-15, "accuracy")
    agree(out["f1"], [0.8, 2 / 3, 0.8], 1e-15, "F1")


# --- imputation

def air_quality():
    data = table("airquality")
    data["temp"] = [float("nan") if i % 17 == 4 else v for i, v in enumerate(data["temp"])]
    return data


def kept(folder, name):
    return np.concatenate([np.load(folder / "clients" / f"c{i}" / f"{name}.npy") for i in range(4)])


def test_imputation_by_mean(ready, tmp_path):
    data = air_quality()
    out, _ = ready("impute_mean", data, ["x=*"], None, "--missing", "nan", "--out", tmp_path / "out")
    x = np.column_stack(list(data.values()))
    agree(out["mean"], np.nanmean(x, 0), 1e-13, "means")
    agree(kept(tmp_path / "out", "imputed"), np.where(np.isnan(x), np.nanmean(x, 0), x), 1e-13, "what clients keep")
    assert out["missing"].tolist() == np.isnan(x).sum(0).tolist()


def test_imputation_by_chained_equations(ready, tmp_path):
    out, _ = ready("impute_chained", air_quality(), ["x=*"], None, "--missing", "nan", "--out", tmp_path / "out")
    for name in ("mean", "sd", "missing"):
        agree(out[name], R["impute_chained"][name], 1e-10, name)
    agree(kept(tmp_path / "out", "imputed"), R["impute_chained"]["imputed"], 1e-9, "what clients keep")


def test_imputation_says_what_it_cannot_do(ready):
    data = {**MTCARS, "gone": [float("nan")] * 32, "few": [1.0, 2.0] + [float("nan")] * 30}
    assert "columns without a value: gone" in ready("impute_mean", data, ["x=wt,gone"], None, "--missing", "nan", fails=True)
    assert "fewer known values" in ready("impute_chained", data, ["x=wt,hp,few"], None, "--missing", "nan", fails=True)
    # A whole table is left as it is.
    out, report = ready("impute_chained", MTCARS, ["x=wt,hp"], None, "--missing", "nan")
    assert report["warnings"] == [] and out["missing"].tolist() == [0, 0]


# --- learning

def test_discriminant_analysis(ready):
    for program in ("lda", "qda"):
        out, _ = ready(program, table("iris"), IRIS + ["group=species"])
        assert round(float(out["accuracy"]) * 150) == R[program]["correct"]
    out, _ = ready("lda", table("iris"), IRIS + ["group=species"])
    agree(out["means"], R["lda"]["means"], 1e-13, "means")
    x = np.array([table("iris")[name][70] for name in IRIS[0][2:].split(",")])
    score = out["constant"] + out["coefficient"] @ x
    agree(np.exp(score - score.max()) / np.exp(score - score.max()).sum(), R["lda"]["first"], 1e-9, "posterior")


def test_naive_bayes(ready):
    data = table("iris")
    out, _ = ready("naive_bayes", data, IRIS + ["group=species"])
    x, group = np.column_stack([data[name] for name in IRIS[0][2:].split(",")]), np.array(data["species"])
    means = np.array([x[group == g].mean(0) for g in (1, 2, 3)])
    sds = np.array([x[group == g].std(0, ddof=1) for g in (1, 2, 3)])
    agree(out["means"], means, 1e-13, "means")
    agree(out["sd"], sds, 1e-12, "sd")
    score = -np.log(sds).sum(1) - (((x[:, None] - means) / sds)**2).sum(2) / 2
    agree(out["accuracy"], (score.argmax(1) + 1 == group).mean(), 1e-14, "accuracy")


def test_principal_components_and_factors(ready):
    out, _ = ready("pca", table("iris"), IRIS, {"scaled": 1})
    agree(out["variances"], R["pca_scaled"]["variances"], 1e-12, "variances")
    agree(np.abs(out["directions"]), np.abs(R["pca_scaled"]["directions"]), 1e-11, "directions")
    every = ["x=rating,complaints,privileges,learning,raises,critical,advance"]
    # R's optimizer stops at 1e-8 of the uniquenesses.
    out, _ = check(ready, "factor_analysis", "factor_analysis", "attitude", every, {"factors": 2}, 1e-6, skip=["loadings"])
    agree(np.abs(out["loadings"]), np.abs(R["factor_analysis"]["loadings"]), 1e-6, "loadings")


def test_clusters(ready):
    data = table("iris")
    x = np.column_stack([data[name] for name in IRIS[0][2:].split(",")])
    out, _ = ready("kmeans", data, IRIS, {"starts": 5})
    assert out["inertia"] < 78.86  # the best known, 78.8514
    nearest = ((x[:, None] - out["centre"])**2).sum(2).argmin(1)
    agree(out["centre"], [x[nearest == g].mean(0) for g in range(3)], 1e-12, "centres")
    out, report = ready("gaussian_mixture", data, IRIS, {"k": 3})
    agree(out["log_likelihood"], -180.18547, 1e-5, "the likelihood of mclust's and sklearn's best fit")
    assert np.all(np.diff(report["traces"]["log_likelihood"]) > -1e-6)


def test_starts_of_k_means(ready, tmp_path):
    """Two of three clusters lie close: boxes are drawn where distances are large, and a start finds what one at random would miss."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(c, 0.3, (n, 2)) for c, n in (((0, 0), 60), ((2, 0), 60), ((40, 40), 20), ((40, 44), 20))])
    x = x[np.argsort(np.arange(160) * 37 % 160)]
    out, report = ready("kmeans", {"a": x[:, 0].tolist(), "b": x[:, 1].tolist()}, ["x=a,b"], {"k": 4}, "--out", tmp_path / "out")
    nearest = ((x[:, None] - out["centre"])**2).sum(2).argmin(1)
    assert sorted(out["n"].tolist()) == [20, 20, 60, 60] and (kept(tmp_path / "out", "cluster") == nearest + 1).all()
    agree(out["inertia"], ((x - out["centre"][nearest])**2).sum(), 1e-12, "inertia")
    assert out["inertia"] == out["inertia_of_starts"].min() and (out["inertia_of_starts"] < 1.001 * out["inertia"]).sum() >= 3
    assert report["rounds"] == report["iterations"][-1] + 4 * 6 + 2
    assert "fewer records than clusters" in ready("kmeans", {"a": [1.0, 2.0]}, ["x=a"], fails=True)


def adam(theta, gradient, steps, rate):
    m = v = np.zeros_like(theta)
    for t in range(1, steps + 1):
        g = gradient(theta)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        theta = theta - rate / (1 - 0.9**t) * m / (np.sqrt(v) / np.sqrt(1 - 0.999**t) + 1e-8)
    return theta


def layers(theta, *units):
    """Weights of three layers, a row of biases first."""
    ends = np.cumsum([0] + [(a + 1) * b for a, b in zip(units, units[1:])])
    return [theta[a:b].reshape(-1, h) for a, b, h in zip(ends, ends[1:], units[1:])]


@pytest.mark.parametrize("program", ["perceptron", "perceptron_regression"])
def test_perceptrons(ready, program, tmp_path):
    """Adam on the pooled records, with gradients by hand."""
    data = table("iris")
    labels = program == "perceptron"
    columns = IRIS[0][2:].split(",")[: 4 if labels else 3]
    binds = ["x=" + ",".join(columns), "y=species" if labels else "y=petal_width"]
    sets = {"hidden": 5, "second": 4, **({"classes": 3} if labels else {})}
    first, _ = ready(program, data, binds, {**sets, "rounds": 1, "rate": 0})
    out, report = ready(program, data, binds, {**sets, "rounds": 60}, "--out", tmp_path / "out")
    x = np.column_stack([data[name] for name in columns])
    z, n, c = (x - x.mean(0)) / x.std(0, ddof=1), 150, 3 if labels else 1
    y = np.array(data["species" if labels else "petal_width"])
    target = (y[:, None] == [1, 2, 3]).astype(float) if labels else ((y - y.mean()) / y.std(ddof=1))[:, None]

    def forward(theta):
        w1, w2, w3 = layers(theta, len(columns), 5, 4, c)
        one = np.tanh(z @ w1[1:] + w1[0])
        two = np.tanh(one @ w2[1:] + w2[0])
        return one, two, two @ w3[1:] + w3[0], w2, w3

    def gradient(theta):
        one, two, scores, w2, w3 = forward(theta)
        chances = np.exp(scores - scores.max(1, keepdims=True))
        back = ((chances / chances.sum(1, keepdims=True) if labels else scores) - target) / n
        back2 = back @ w3[1:].T * (1 - two**2)
        back1 = back2 @ w2[1:].T * (1 - one**2)
        parts = [back1.sum(0), z.T @ back1, back2.sum(0), one.T @ back2, back.sum(0), two.T @ back]
        return np.concatenate([part.ravel() for part in parts]) + 1e-4 * theta

    def flat(results):
        return np.concatenate([results[name].ravel() for name in ("w1", "w2", "w3")])

    theta = adam(flat(first), gradient, 60, 0.02)
    agree(flat(out), theta, 1e-9, "weights")
    scores = forward(theta)[2]
    expected = scores.argmax(1) + 1 if labels else y.mean() + y.std(ddof=1) * scores[:, 0]
    agree(kept(tmp_path / "out", "predicted"), expected, 1e-9, "what clients keep")
    assert report["rounds"] == 62 and report["traces"]["loss"][-1] < 0.3 * report["traces"]["loss"][0]


def test_svm(ready):
    out, _ = ready("svm", INFERT, BINARY)
    x, s = np.column_stack([INFERT[name] for name in ("age", "parity", "induced", "spontaneous")]), 2 * np.array(INFERT["case"]) - 1
    slack = np.maximum(0, 1 - s * (x @ out["beta"] + out["intercept"]))
    agree(out["objective"], out["beta"] @ out["beta"] / 2 + (slack**2).sum(), 1e-12, "objective")
    # The gradient is zero at the optimum.
    assert np.abs(out["beta"] - 2 * x.T @ (slack * s)).max() < 1e-8 and abs((slack * s).sum()) < 1e-9


# --- what is wrong with data is said in words, with the names of columns

def test_columns_are_named(ready):
    data = {**MTCARS, "twice": [2 * wt + hp for wt, hp in zip(MTCARS["wt"], MTCARS["hp"])], "same": [1.0] * 32, "never": [0.0] * 32}
    for program, y in (("linear", "mpg"), ("logistic", "am"), ("poisson", "carb"), ("gamma", "mpg"), ("huber", "mpg"), ("robust", "mpg")):
        err = ready(program, data, ["x=wt,hp,twice", f"y={y}"], fails=True)
        assert "combinations of the columns before them: twice" in err and "nan" not in err
        assert "combinations of the columns before them: same" in ready(program, data, ["x=wt,same", f"y={y}"], fails=True)
        assert "level that does not occur: never" in ready(program, data, ["x=wt,never", f"y={y}"], fails=True)


@pytest.mark.parametrize("program", "calibration cloglog gamma gee gee_linear huber linear logistic negative_binomial poisson probit quasibinomial "
                                    "quasipoisson rates robust survey_linear survey_logistic weighted".split())
def test_a_round_holds_one_matrix(starfold, program):
    """Columns are judged by the cross-products that the model needs anyway: a small client could not afford others."""
    for round_ in starfold("check", program, "--json").json()["rounds"]:
        matrices = [merge for merge in round_["merges"] if len(merge["shape"]) == 2 and merge["shape"][0] == merge["shape"][1]]
        assert len(matrices) <= 1, (program, matrices)


def test_outcomes_outside_their_range(ready):
    bad = {**MTCARS, "negative": [-1.0] + MTCARS["carb"][1:], "ones": [1.0] * 32}
    assert "must be 0 or 1" in ready("logistic", bad, ["x=wt", "y=carb"], fails=True)
    assert "the same for all records" in ready("logistic", bad, ["x=wt", "y=ones"], fails=True)
    assert "must be a count" in ready("poisson", bad, ["x=wt", "y=negative"], fails=True)
    assert "must be positive" in ready("gamma", bad, ["x=wt", "y=am"], fails=True)
    assert "status must be 0" in ready("cox", bad, ["x=wt", "time=mpg", "status=carb"], {"grid": [40]}, fails=True)
    assert "after the last time" in ready("kaplan_meier", bad, ["time=mpg", "status=am"], {"grid": [12]}, fails=True)
    assert "from 1 to the number of levels" in ready("anova", bad, ["y=mpg", "group=carb"], {"groups": 2}, fails=True)
    _, report = ready("poisson", bad, ["x=wt", "y=mpg"])
    assert "the outcome is not a whole number for some records" in report["warnings"]


def test_too_few_records(ready):
    few = {name: values[:3] for name, values in MTCARS.items()}
    assert "fewer records than parameters" in ready("linear", few, ["x=wt,hp,qsec", "y=mpg"], fails=True)
    nobody = {name: [] for name in MTCARS}
    assert "no records are left" in ready("linear", nobody, ["x=wt", "y=mpg"], fails=True)
    assert "no records are left" in ready("logistic", nobody, ["x=wt", "y=am"], fails=True)


def test_separated_outcomes_are_named(ready):
    out, report = ready("logistic", MTCARS, ["x=wt,qsec", "y=am"])
    assert out["converged"] == 0
    assert any("separates the outcomes" in warning for warning in report["warnings"])
    assert any(warning.startswith("coefficients without a finite estimate: ") and "qsec" in warning for warning in report["warnings"])


def test_levels_that_do_not_occur(ready):
    data = {"y": [1.0, 2, 3, 4], "g": [1.0, 1, 3, 3]}
    assert "levels that do not occur: 2" in ready("anova", data, ["y=y", "group=g"], fails=True)


def test_counts_without_overdispersion(ready):
    data = {"x": [float(i) for i in range(40)], "y": [3.0 + (i % 2) for i in range(40)]}
    _, report = ready("negative_binomial", data, ["x=x", "y=y"])
    assert any("not overdispersed" in warning for warning in report["warnings"])


# --- the library as a whole

def test_every_program_is_described(starfold):
    """A sentence, and the same fields in the same order: what docs/library.md is made of."""
    listing = starfold("lib").out
    for path in sorted((ROOT / "lib" / "programs").glob("*.fold")):
        head = [line[2:] for line in path.read_text().split("\n") if line.startswith("#")]
        keys = [line.split(":")[0] for line in head[2:] if not line.startswith(" ")]
        assert keys[:6] == ["Kind", "Model", "Inputs", "Rounds", "Exposure", "Law"], path
        assert f"  {path.stem} " in listing and head[0] in listing
        assert starfold("fmt", "--check", path).code == 0, path


def test_the_page_is_current(starfold):
    assert starfold("lib", "--markdown").out == (ROOT / "docs" / "library.md").read_text(), "run `make docs`"


# --- the worked study

@pytest.mark.parametrize("study", ["table1", "kaplan_meier", "logrank", "cox", "weibull"])
def test_worked_study(starfold, tmp_path, study):
    folder = ROOT / "examples" / "lung"
    result = starfold("run", folder / f"{study}.toml", "--out", tmp_path / "out", "--json")
    assert result.code == 0, result.err
    report = (tmp_path / "out" / "report.html").read_text()
    assert "Lung cancer at three hospitals" in report and "north" in report
    out = {name: array(value) for name, value in result.json()["outputs"].items()}
    if study == "cox":
        # R: coxph(Surv(ifelse(status == 1, 30 * ceiling(time / 30), time), status) ~ age + sex + ecog)
        agree(out["beta"], [0.0102832, -0.5497573, 0.4722566], 1e-6, "coefficients")
        assert "Reference level of <code>sex</code>" in report and "Records left out for a missing value" in report

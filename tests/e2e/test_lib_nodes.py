"""Ready-made programs over three node processes: the bits of a local run, or a refusal that names its rule.

By default some programs of each kind; STARFOLD_PROGRAMS=all takes every one.
"""
import os

import numpy as np
import pytest
from conftest import ROOT

PERMISSIVE = ('local_blocks = true\nmin_records = 1\nmin_support = 1\nmax_ratio = 100000\nmax_total_ratio = 100000000\nmax_rounds = 1000000\nmax_numbers = 1000000000\n'
              'merges = ["sum", "count", "moments", "comoments", "logsumexp", "min", "max", "prod", "any", "all", "norm"]')
RECORDS = 120


def clinic(seed):
    """Columns that any program can use, of one node; decimal numbers with few digits."""
    rng = np.random.default_rng(seed)
    u, v, w = rng.normal(size=(3, RECORDS)).round(2)
    y = (1 + 0.5 * u - 0.3 * v + rng.normal(size=RECORDS)).round(2)
    b = (rng.random(RECORDS) < 1 / (1 + np.exp(-0.8 * u + 0.2))).astype(int)
    time = np.minimum(np.ceil(10 * rng.exponential(np.exp(0.3 * u))), 40).astype(int)
    far = 5 * rng.integers(0, 2, RECORDS)
    return {"u": u, "v": v, "w": w, "y": y, "b": b, "near_or_far": (u + far).round(2), "far_or_near": (v - far).round(2), "positive": np.exp(y / 2).round(3), "count": rng.negative_binomial(2, 1 / (1 + np.exp(0.4 * u))), "time": time,
            "event": (time < 40).astype(int), "g": 1 + rng.integers(0, 2, RECORDS), "g3": 1 + rng.integers(0, 3, RECORDS), "h": rng.integers(0, 2, RECORDS),
            "cluster": 1 + rng.integers(0, 6, RECORDS), "fold": 1 + np.arange(RECORDS) % 5, "weight": rng.integers(1, 4, RECORDS),
            "p": (1 / (1 + np.exp(-u))).round(4), "r": rng.integers(0, 4, RECORDS) / 2}


XY = 'x = ["u", "v"]\ny = "y"'
XB = 'x = ["u", "v"]\ny = "b"'
XC = 'x = ["u", "v"]\ny = "count"'
SURVIVAL = 'time = "time"\nstatus = "event"\ngrid = %s' % [float(t) for t in range(1, 41)]
X = 'x = ["u", "v", "w"]'
# By program: its inputs, and its sizes where the usual ones do not fit or would take long.
PROGRAMS = {
    "anova": ('y = "y"\ngroup = "g3"', ""),
    "anova_two_way": ('y = "y"\na = "g"\nb = "g3"', "levels_b = 3"),
    "boosted_logistic": (XB, "trees = 3\ncuts = 7"),
    "boosted_poisson": (XC, "trees = 3\ncuts = 7"),
    "boosted_trees": (XY, "trees = 3\ncuts = 7"),
    "calibration": ('prediction = "p"\ny = "b"', ""),
    "chi_square": ('row = "g"\ncolumn = "g3"', "columns = 3"),
    "client_intercept": (XY, ""),
    "client_slope": (XY + '\nslope = "u"', ""),
    "cloglog": (XB, ""),
    "column_quantiles": (X, ""),
    "confusion": ('truth = "g3"\nprediction = "g3"', "labels = 3"),
    "correlation": (X, ""),
    "cox": ('x = ["u", "v"]\n' + SURVIVAL, "ties = 60"),
    "cox_strata": ('x = ["u", "v"]\nstratum = "g"\n' + SURVIVAL, "ties = 60"),
    "cross_validation": (XB + '\nfold = "fold"', ""),
    "exponential": ('x = ["u", "v"]\ntime = "time"\nstatus = "event"', ""),
    "factor_analysis": ('x = ["u", "v", "y", "w"]', ""),
    "fedadam": (XB, "rounds = 4"),
    "fedavg": (XB, "rounds = 4"),
    "fedprox": (XB, "rounds = 4"),
    "fedyogi": (XB, "rounds = 4"),
    "fisher": ('row = "h"\ncolumn = "b"', ""),
    "gamma": ('x = ["u", "v"]\ny = "positive"', ""),
    "gaussian_mixture": ('x = ["near_or_far", "far_or_near"]', ""),
    "gee": (XB + '\ncluster = "cluster"', "clusters = 6"),
    "gee_exchangeable": (XB + '\ncluster = "cluster"', "clusters = 6"),
    "gee_linear": (XY + '\ncluster = "cluster"', "clusters = 6"),
    "gee_linear_exchangeable": (XY + '\ncluster = "cluster"', "clusters = 6"),
    "histogram": ('x = "u"\nedges = [-4, -1, 0, 1, 4]', ""),
    "huber": (XY, ""),
    "impute_chained": (X, ""),
    "impute_mean": (X, ""),
    "kaplan_meier": (SURVIVAL, ""),
    "kmeans": (X, "starts = 2"),
    "kolmogorov_smirnov": ('x = "r"\ngroup = "h"\ngrid = [0, 0.5, 1, 1.5]', ""),
    "lasso": (XY, ""),
    "lasso_cv": (XY + '\nfold = "fold"', ""),
    "lda": (X + '\ngroup = "g3"', ""),
    "linear": (XY, ""),
    "linear_by_client": (XY, ""),
    "linear_cross_validation": (XY + '\nfold = "fold"', ""),
    "logistic": (XB, ""),
    "logistic_by_client": (XB, ""),
    "logrank": ('group = "g"\n' + SURVIVAL, ""),
    "mann_whitney": ('x = "r"\ngroup = "h"\ngrid = [0, 0.5, 1, 1.5]', ""),
    "meta": ('y = "y"', ""),
    "multinomial": ('x = ["u", "v"]\ny = "g3"', ""),
    "naive_bayes": (X + '\ngroup = "g3"', ""),
    "negative_binomial": (XC, ""),
    "nested_linear": (XY + '\nz = ["w", "h"]', ""),
    "nested_logistic": (XB + '\nz = ["w", "h"]', ""),
    "network": ('x = ["u", "v"]\ny = "g"', "hidden = 3\nrounds = 3"),
    "one_shot": (XB, ""),
    "ordinal": ('x = ["u", "v"]\ny = "g3"', ""),
    "pca": (X, ""),
    "perceptron": ('x = ["u", "v"]\ny = "g"', "hidden = 3\nsecond = 2\nrounds = 4"),
    "perceptron_regression": (XY, "hidden = 3\nsecond = 2\nrounds = 4"),
    "personal": (XB, "hidden = 3\nrounds = 4"),
    "poisson": (XC, ""),
    "polynomial": ('x = "u"', ""),
    "probit": (XB, ""),
    "proportions": ('y = "b"\ngroup = "h"', ""),
    "qda": (X + '\ngroup = "g3"', ""),
    "quantile_regression": (XY, ""),
    "quantiles": ('x = "u"', ""),
    "quasibinomial": (XB, ""),
    "quasipoisson": (XC, ""),
    "random_intercept": (XY + '\ngroup = "cluster"', "groups = 6"),
    "random_slope": (XY + '\nslope = "u"\ngroup = "cluster"', "groups = 6"),
    "rates": (XC + '\nexposure = "weight"', ""),
    "residuals": (XY, ""),
    "ridge": (XY, ""),
    "robust": (XY, ""),
    "roc": ('score = "r"\ny = "b"\ngrid = [0, 0.5, 1, 1.5]', ""),
    "scaffold": (XB, "rounds = 4"),
    "summary": (X, ""),
    "survey_linear": (XY + '\nweight = "weight"', ""),
    "survey_logistic": (XB + '\nweight = "weight"', ""),
    "survey_mean": (X + '\nweight = "weight"', ""),
    "svm": (XB, ""),
    "t_one_sample": ('x = "u"', ""),
    "t_paired": ('x = "u"\ny = "v"', ""),
    "t_test": ('y = "y"\ngroup = "h"', ""),
    "table1": ('x = ["u", "v"]\ngroup = "g"', ""),
    "vif": (X, ""),
    "weibull": ('x = ["u", "v"]\ntime = "time"\nstatus = "event"', ""),
    "weighted": (XY + '\nweight = "weight"', ""),
    "within": (XY, ""),
}
SOME = ["table1", "t_test", "logistic", "weibull", "client_slope", "kmeans", "fedavg", "roc", "histogram"]
# What no policy lets out yet, with what the node writes into its ledger.
NEVER = {"impute_chained": "takes in a private state, which has no rule of support"}
# What the policy of an owner who changed nothing refuses of these records, by the rule in the ledger. All others run: a program that is refused
# where it was not, or no longer is, changes this list.
CAREFUL = {
    "local_blocks": "client_intercept client_slope fedadam fedavg fedprox fedyogi impute_chained linear_by_client logistic_by_client meta network one_shot "
                    "personal scaffold within",
    "max_ratio": "cox cox_strata logrank",
    "merges": "column_quantiles correlation factor_analysis lasso pca quantiles residuals ridge summary table1 vif",
    "min_support": "boosted_logistic boosted_poisson boosted_trees calibration cross_validation exponential gee gee_exchangeable gee_linear "
                   "gee_linear_exchangeable kaplan_meier kmeans lasso_cv lda linear_cross_validation naive_bayes qda quantile_regression random_slope robust "
                   "weibull",
}
RULE = {program: rule for rule, programs in CAREFUL.items() for program in programs.split()}
LONG = 400  # seconds; the supports of many clusters are counted by each node
CHOSEN = sorted(PROGRAMS) if os.environ.get("STARFOLD_PROGRAMS") == "all" else SOME


def study(nodes, program, over):
    """A study of a ready-made program by its name."""
    inputs, sizes = PROGRAMS[program]
    path = nodes.study("", inputs, extra=f"[sizes]\n{sizes}") if over else nodes.local("", inputs, extra=f"[sizes]\n{sizes}")
    path.write_text(path.read_text().replace('program = "program.fold"', f'program = "{program}"'))
    return path


def test_every_program_is_in_the_table():
    assert set(RULE) <= set(PROGRAMS) and len(RULE) == sum(len(programs.split()) for programs in CAREFUL.values())
    assert sorted(PROGRAMS) == sorted(path.stem for path in (ROOT / "lib" / "programs").glob("*.fold"))


@pytest.mark.parametrize("program", CHOSEN)
def test_over_nodes(nodes, program):
    for seed, name in enumerate(("north", "south", "west")):
        nodes.add(name, clinic(seed), PERMISSIVE)
    code, here, err = nodes.run(study(nodes, program, False))
    assert code == 0, err
    code, over, err = nodes.run(study(nodes, program, True), timeout=LONG)
    if program in NEVER:
        assert code == 1 and NEVER[program] in nodes.nodes[0].lines()[-1]["detail"]
        return
    assert code == 0, err
    for name in ("outputs", "traces", "iterations", "rounds", "warnings"):
        assert over[name] == here[name], (program, name)
    # With the policy that an owner has who changed nothing: the same, or the rule that says no.
    nodes.stop()
    nodes.nodes.clear()
    for seed, name in enumerate(("kind", "mild", "neat")):
        nodes.add(name, clinic(seed))
    code, careful, err = nodes.run(study(nodes, program, True), timeout=LONG)
    rules = {line["rule"] for node in nodes.nodes for line in node.lines() if line.get("rule")}
    if program in RULE:
        hidden = RULE[program] in ("min_support", "max_ratio")
        assert code == 1 and careful["refused"]["rule"] == ("policy" if hidden else RULE[program]), err
        assert rules == {RULE[program]} and len(err) > 20, err
    else:
        assert code == 0 and not rules, err
        assert careful["outputs"] == here["outputs"]

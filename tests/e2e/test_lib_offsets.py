"""Offsets, weights and the tolerance of models: as R takes them, where a program has them, over uneven clients.

Figures: tests/reference/offsets.json, made by offsets.R.
"""
import json

import numpy as np
import pytest
from conftest import ROOT
from ready_made import EVENTS, INFERT, LUNG, MTCARS, SURVIVAL, agree, table

R = json.loads((ROOT / "tests" / "reference" / "offsets.json").read_text())


def with_extras(data):
    """Numbers that are made from the place of a record, as in the script."""
    n = len(next(iter(data.values())))
    places = range(1, n + 1)
    trials = [float(1 + i * 5 % 3) for i in places]
    return {**data, "shift": [(i * 7 % 11) / 10 - 0.5 for i in places], "trials": trials, "tries": [t + 1 for t in trials]}


CASES = with_extras(INFERT)
CASES["share"] = [(c + t - 1) / (t + 1) for c, t in zip(CASES["case"], CASES["trials"])]
CARS, STUDENTS, PATIENTS = with_extras(MTCARS), with_extras(table("quine")), with_extras(LUNG)
PATIENTS["stratum"] = [1 + male for male in PATIENTS["male"]]


def compare(out, key, tolerance):
    for name, expected in R[key].items():
        ours = "t" if name == "statistic" and "t" in out else "z" if name == "statistic" else name
        agree(out[ours], expected, tolerance, f"{key}: {name}")


FORMULAS = {"logistic": "case ~ spontaneous + induced", "probit": "case ~ spontaneous + induced", "cloglog": "case ~ spontaneous + induced",
            "quasibinomial": "case ~ spontaneous + induced", "poisson": "carb ~ qsec + wt", "quasipoisson": "carb ~ qsec + wt", "gamma": "mpg ~ qsec + wt"}


@pytest.mark.parametrize("key", [key for key in R if key.split("_")[0] in FORMULAS and not key.endswith("share")])
def test_generalized_linear_models(ready, key):
    program, which = key.split("_")
    formula = FORMULAS[program]
    data = CASES if formula.startswith("case") else CARS
    if which != "weight":
        formula += " + offset(shift)"
    if which == "none":
        formula += " - 1"
    out, report = ready(program, data, ["weight=trials"] if which in ("weight", "both") else [], None, "--formula", formula)
    assert report["warnings"] == []
    compare(out, key, 5e-9)


def test_an_offset_by_its_column(ready):
    """Without a formula it is bound like any input; without either there is none."""
    out, _ = ready("poisson", CARS, ["x=qsec,wt", "y=carb", "offset=shift"])
    compare(out, "poisson_offset", 5e-9)
    plain, _ = ready("poisson", CARS, ["x=qsec,wt", "y=carb"])
    assert np.abs(plain["beta"] - out["beta"]).max() > 1e-3
    # A column that happens to be called so is no weight: it is only one where that is said.
    other, _ = ready("poisson", {**CARS, "weight": CARS["trials"], "offset": CARS["shift"]}, ["x=qsec,wt", "y=carb"])
    assert other["beta"].tolist() == plain["beta"].tolist()


def test_proportions_of_trials(ready):
    out, _ = ready("logistic", CASES, ["x=spontaneous,age", "y=share", "weight=tries"])
    compare(out, "logistic_share", 5e-9)


@pytest.mark.parametrize("program", ["linear", "weighted"])
def test_linear(ready, program):
    out, _ = ready(program, CARS, ["weight=trials"] if program == "weighted" else [], None, "--formula", "mpg ~ wt + hp + offset(shift)")
    compare(out, f"{program}_offset", 1e-10)


def test_negative_binomial(ready):
    out, _ = ready("negative_binomial", STUDENTS, [], None, "--formula", "days ~ aboriginal + male + slow + offset(shift)")
    compare(out, "negative_binomial_offset", 2e-8)


@pytest.mark.parametrize("program, formula, binds", [("cox", "age + male", []), ("cox_strata", "age + ecog", ["stratum=stratum"]),
                                                     ("weibull", "age + male", []), ("exponential", "age + male", [])])
def test_survival(ready, program, formula, binds):
    sets = {"grid": EVENTS} if program.startswith("cox") else None
    out, _ = ready(program, PATIENTS, binds, sets, "--formula", f"Surv(time, status) ~ {formula} + offset(shift)")
    compare(out, f"{program}_offset", 5e-9)
    bound, _ = ready(program, PATIENTS, [f"x={formula.replace(' + ', ',')}", "offset=shift", *SURVIVAL, *binds], sets)
    assert bound["beta"].tolist() == out["beta"].tolist()


def test_tolerance(ready):
    """The last step is below it; a coarse one saves rounds."""
    fine, slow = ready("logistic", CASES, ["x=spontaneous,induced", "y=case"])
    coarse, quick = ready("logistic", CASES, ["x=spontaneous,induced", "y=case"], {"tolerance": 0.01})
    assert quick["rounds"] < slow["rounds"] and coarse["converged"] == 1
    assert 1e-12 < np.abs(coarse["beta"] / fine["beta"] - 1).max() < 1e-2


def test_where_there_is_none(ready):
    """Programs without an offset or a weight say so."""
    assert "is for an input offset" in ready("ridge", CARS, [], None, "--formula", "mpg ~ wt + offset(shift)", fails=True)
    negative = {**CARS, "trials": [-1.0] + CARS["trials"][1:]}
    assert "some weights are negative, missing or not finite" in ready("poisson", negative, ["x=wt", "y=carb", "weight=trials"], fails=True)


def test_records_without_weight_are_none(ready):
    """Weights of 0: as if their records were not there, also in what counts records."""
    weights = [float(i % 4) for i in range(len(CARS["mpg"]))]
    kept = {name: [v for v, w in zip(values, weights) if w > 0] for name, values in CARS.items()}
    all_of_them, _ = ready("weighted", {**CARS, "w": weights}, ["x=wt,hp", "y=mpg", "weight=w"])
    some, _ = ready("weighted", {**kept, "w": [w for w in weights if w > 0]}, ["x=wt,hp", "y=mpg", "weight=w"])
    for name in some:
        assert np.allclose(all_of_them[name], some[name], rtol=1e-10, atol=1e-14), name


@pytest.mark.parametrize("tolerance", [0, -1, "nan", 1])
def test_a_tolerance_lies_between(ready, tolerance):
    assert "the tolerance must lie between 0 and 1" in ready("logistic", CASES, ["x=spontaneous", "y=case"], {"tolerance": tolerance}, fails=True)

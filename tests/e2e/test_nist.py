"""NIST's statistical reference data sets: digits of agreement with the certified values, over several clients.

The data is not part of the repository. It is looked for in $STARFOLD_SHARED/nist and beside the checkout in ../shared/nist.
`STARFOLD_NIST_TABLE=FILE` writes the table of docs/accuracy.md.
"""
import csv
import json
import os
import pathlib
import re

import numpy as np
import pytest
from conftest import ROOT, array

NIST = pathlib.Path(os.environ.get("STARFOLD_SHARED", ROOT.parent / "shared")) / "nist"
pytestmark = pytest.mark.skipif(not NIST.is_dir(), reason=f"no NIST data in {NIST}; set STARFOLD_SHARED")
SETS = json.loads((NIST / "certified.json").read_text()) if NIST.is_dir() else {}


def sets(kind):
    return [name for name in SETS if SETS[name]["kind"] == kind]


def table(name):
    with open(NIST / f"{name}.csv") as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


def digits(found, certified):
    """The log relative error of the worst entry; absolute where the certified value is zero. At most 15."""
    errors = [abs(f - c) / (abs(c) if c else 1) for f, c in zip(np.ravel(found), np.ravel(certified))]
    return min(15.0, -np.log10(max(max(errors), 1e-300)))


def split(**arrays):
    """Three clients, one of them with a single record."""
    n = len(next(iter(arrays.values())))
    cuts = [0, n // 2, n // 2 + 1, n]
    return {f"c{i}": {key: value[a:b] for key, value in arrays.items()} for i, (a, b) in enumerate(zip(cuts, cuts[1:]))}


@pytest.fixture
def run(starfold, federation, tmp_path):
    def go(text, clients, *more):
        (tmp_path / "program.fold").write_text(text)
        result = starfold("run", tmp_path / "program.fold", "--json", *federation(clients), *more)
        assert result.code == 0, result.err
        report = result.json()
        return {name: array(value) for name, value in report["outputs"].items()}, report

    return go


def record(*cells):
    if "STARFOLD_NIST_TABLE" in os.environ:
        with open(os.environ["STARFOLD_NIST_TABLE"], "a") as file:
            file.write("| " + " | ".join(f"{c:.1f}" if isinstance(c, float) else str(c) for c in cells) + " |\n")


@pytest.mark.parametrize("name", sets("univariate"))
def test_univariate(run, name):
    text = "input y : [*]\noutput mean = mean[*](y)\noutput sd = std[*](y)\n"
    out, report = run(text, split(y=table(name)["y"]))
    certified, doubles = SETS[name]["certified"], SETS[name]["on_doubles"]
    record("univariate", name, digits(out["mean"], certified["mean"]), digits(out["sd"], certified["sd"]),
           digits(out["mean"], doubles["mean"]), digits(out["sd"], doubles["sd"]))
    assert report["rounds"] == 1
    assert digits(out["mean"], doubles["mean"]) >= 14
    assert digits(out["sd"], doubles["sd"]) >= {"NumAcc4": 8, "NumAcc3": 9, "NumAcc2": 13}.get(name, 12.5)


@pytest.mark.parametrize("name", sets("anova"))
def test_anova(run, name):
    data = table(name)
    k = int(data["group"].max())
    text = (f"import stats\ninput y : [*]\ninput label : [*]\nlet (f, _, between, within) = stats.anova(y, label, zeros({k}))\n"
            "output f\noutput between\noutput within\n")
    out, report = run(text, split(y=data["y"], label=data["group"]))
    certified, doubles = SETS[name]["certified"], SETS[name]["on_doubles"]
    keys = [key for key in certified if key.startswith("ss_")]
    found = [digits(out["f"], of["f"]) for of in (certified, doubles)]
    record("anova", name, *found, digits([out["between"], out["within"]], [doubles[key] for key in keys]))
    assert report["rounds"] == 3
    assert found[1] >= 12


def design(name):
    data = table(name)
    columns = []
    for term in SETS[name]["terms"]:
        base, _, power = term.replace("**", "^").partition("^")
        columns.append(np.ones(len(data["y"])) if term == "1" else data[base.strip()]**int(power or 1))
    return np.column_stack(columns), data["y"]


# What QR in double precision reaches, less a digit for the order of the sums.
COEFFICIENTS = {"Filip": 6.5, "Wampler5": 5, "Wampler4": 7, "Wampler1": 9, "Wampler3": 9, "Longley": 10}
LEAST_SQUARES = ("import stats\ninput x : [*, p]\ninput y : [*]\nlet (beta, se, sigma, _) = stats.{}(x, y)\n"
                 "output beta\noutput se\noutput sigma\n")


@pytest.mark.parametrize("name", sets("linear"))
def test_linear(run, starfold, federation, tmp_path, name):
    x, y = design(name)
    certified = SETS[name]["certified"]
    plain = "import stats\ninput x : [*, p]\ninput y : [*]\noutput beta = stats.ols(x, y)\n"
    row = []
    for text, rounds in ((plain, 1), (LEAST_SQUARES.format("ols_summary"), 2), (LEAST_SQUARES.format("ols_qr"), 4)):
        if name == "Filip" and rounds < 4:  # its cross-products are singular to working precision, and that is said
            (tmp_path / "program.fold").write_text(text)
            result = starfold("run", tmp_path / "program.fold", *federation(split(x=x, y=y)))
            assert result.code == 3 and "singular" in result.err
            row += ["refused"] if rounds == 1 else ["refused"] * 3
            continue
        out, report = run(text, split(x=x, y=y))
        assert report["rounds"] == rounds
        row.append(digits(out["beta"], certified["estimates"]))
        if rounds > 1:
            assert row[-1] >= COEFFICIENTS.get(name, 12)
            row += [digits(out["se"], certified["standard_errors"]), digits(out["sigma"], certified["residual_sd"])]
    record("linear", name, *row)
    assert row[-2] >= (7 if name == "Filip" else 10 if name in ("Wampler1", "Wampler2") else 11)  # ols_qr


def model(name):
    """NIST's formula as a Starfold expression of b and the columns."""
    left, right = SETS[name]["model"].split("=", 1)
    right = re.sub(r"\bb(\d)\b", r"b[\1]", right.replace("**", "^"))
    right = re.sub(r"atan\(((?:[^()]|\([^()]*\))*)\)", r"atan2(\1, 1)", right)
    return left.strip(), right.strip()


@pytest.mark.parametrize("start", [1, 2])
@pytest.mark.parametrize("name", sets("nonlinear"))
def test_nonlinear(run, name, start):
    """Levenberg-Marquardt with a derived Jacobian, from NIST's far start 1 and its near start 2."""
    certified = SETS[name]["certified"]
    data = table(name)
    left, right = model(name)
    inputs = "".join(f"input {column} : [*]\n" for column in data)
    text = (f"import optim\n{inputs}input start : [{len(certified['estimates'])}]\n"
            "state opt = optim.lm_start(start)\nrepeat 10000 {\n  let b = opt[1]\n"
            f"  let r = {left} - ({right})\n  let j = jacobian(r, b)\n"
            "  opt <- optim.lm(opt, r @ r, j' @ j, j' @ r)\n} until optim.lm_change(opt) < 1e-12\n"
            "output b = opt[2]\noutput rss = opt[4, 1]\noutput se = optim.lm_errors(opt, records(y))\n")
    out, report = run(text, split(**data), "--set", f"start={json.dumps(SETS[name]['starts'][start - 1])}")
    found = digits(out["b"], certified["estimates"])
    errors = digits(out["se"], certified["standard_errors"])
    record(f"nonlinear {start}", name, SETS[name]["difficulty"], found, errors, digits(out["rss"], certified["rss"]),
           report["rounds"])
    assert found >= 10  # NIST certifies eleven digits
    assert errors >= {"Lanczos1": 2, "Bennett5": 6, "MGH10": 9, "Lanczos2": 7.5, "Lanczos3": 7.5}.get(name, 9.5)

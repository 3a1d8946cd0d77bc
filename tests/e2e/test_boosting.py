"""Boosted trees equal the same trees on the pooled records, grown by a few lines of NumPy, and those of XGBoost.

Its figures and the script that made them are in tests/reference (boosting.json, boosting.py).
"""
import csv
import json

import numpy as np
import pytest
from conftest import ROOT, array

THEIRS = json.loads((ROOT / "tests" / "reference" / "boosting.json").read_text())
DERIVATIVES = {
    "boosted_trees": lambda f, y: (f - y, np.ones_like(f)),
    "boosted_logistic": lambda f, y: (1 / (1 + np.exp(-f)) - y, np.exp(-np.abs(f)) / (1 + np.exp(-np.abs(f)))**2),
    "boosted_poisson": lambda f, y: (np.exp(f) - y, np.exp(f)),
}
BASES = {"boosted_trees": lambda m: m, "boosted_logistic": lambda m: np.log(m / (1 - m)), "boosted_poisson": np.log}


def read(name):
    with open(ROOT / "tests" / "data" / f"{name}.csv") as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


def best_split(x, g, h, here, edges, penalty, least):
    """The first cut of the largest gain in a node, as column and threshold; none where no gain is left."""
    def quality(part):
        return g[part].sum()**2 / (h[part].sum() + penalty)

    gain, found = 0, None
    for j in range(x.shape[1]):
        for edge in edges[j]:
            right = here & (x[:, j] > edge)
            left = here & ~right
            if min(h[right].sum(), h[left].sum()) < max(least, 1e-9 * h[here].sum()):
                continue
            now = quality(left) + quality(right) - quality(here)
            if now > gain * (1 + 1e-10) + 1e-12:
                gain, found = now, (j, edge)
    return found


def grow(program, x, y, edges, trees, width=4, rate=0.1, penalty=1, least=1):
    """Columns, thresholds and leaves of all trees, and the margins of the records."""
    margin = np.full(len(y), BASES[program](y.mean()))
    grown = []
    for _ in range(trees):
        g, h = DERIVATIVES[program](margin, y)
        column, threshold, value, node = np.zeros(2 * width - 1), np.full(2 * width - 1, np.inf), np.zeros(2 * width), np.ones(len(y), int)
        for i in range(1, 2 * width):
            here = node == i
            split = best_split(x, g, h, here, edges, penalty, least)
            node[here] = 2 * i
            if split:
                column[i - 1], threshold[i - 1] = split[0] + 1, split[1]
                node[here & (x[:, split[0]] > split[1])] += 1
        for leaf in range(2 * width):
            here = node == 2 * width + leaf
            value[leaf] = -g[here].sum() / (h[here].sum() + penalty)
        margin = margin + rate * value[node - 2 * width]
        grown.append((column, threshold, value))
    return [np.array(part) for part in zip(*grown)] + [margin]


@pytest.fixture
def boost(starfold, federation, tmp_path):
    def go(program, x, y, sets, edges=None):
        n = len(y)
        cuts = [0, n // 4, n // 4 + 1, n // 4 + 1, n]
        clients = {f"c{i}": {"x": x[a:b], "y": y[a:b]} for i, (a, b) in enumerate(zip(cuts, cuts[1:]))}
        arguments = federation(clients)
        if edges is not None:
            np.save(tmp_path / "edges.npy", edges)
            arguments += ["--set", f"edges=@{tmp_path / 'edges.npy'}", "--set", f"cuts={edges.shape[1]}"]
        for name, value in sets.items():
            arguments += ["--set", f"{name}={value}"]
        result = starfold("run", program, "--json", "--out", tmp_path / "out", *arguments)
        assert result.code == 0, result.err
        kept = np.concatenate([np.load(tmp_path / "out" / "clients" / f"c{i}" / "prediction.npy") for i in range(4)])
        return {name: array(value) for name, value in result.json()["outputs"].items()}, kept, result.json()

    return go


def same_trees(out, column, threshold, value, tolerance):
    assert (out["column"] == column).all() and (out["threshold"] == threshold).all()
    np.testing.assert_allclose(out["value"], value, rtol=0, atol=tolerance * np.abs(value).max())


def task(program):
    theirs = THEIRS[program]
    data = read(theirs["data"])
    most = max(map(len, theirs["edges"]))
    edges = np.array([row + [np.inf] * (most - len(row)) for row in theirs["edges"]])
    return np.column_stack([data[name] for name in theirs["columns"]]), data[theirs["outcome"]], edges, theirs


@pytest.mark.parametrize("program", list(DERIVATIVES))
def test_trees_of_the_pooled_records(boost, program):
    x, y, edges, theirs = task(program)
    out, kept, report = boost(program, x, y, {"trees": theirs["trees"], "rate": theirs["rate"]}, edges)
    column, threshold, value, margin = grow(program, x, y, edges, theirs["trees"], rate=theirs["rate"])
    same_trees(out, column, threshold, value, 1e-10)
    mean = {"boosted_trees": margin, "boosted_logistic": 1 / (1 + np.exp(-margin)), "boosted_poisson": np.exp(margin)}[program]
    np.testing.assert_allclose(kept, mean, rtol=1e-10)
    assert report["rounds"] == 3 * theirs["trees"] + 3, "a round per level of each tree"


@pytest.mark.parametrize("program", list(DERIVATIVES))
def test_trees_of_xgboost(boost, program):
    x, y, edges, theirs = task(program)
    out, kept, _ = boost(program, x, y, {"trees": theirs["trees"], "rate": theirs["rate"]}, edges)
    same_trees(out, np.array(theirs["column"]), np.array(theirs["threshold"], dtype=float), np.array(theirs["value"]), 1e-5)
    np.testing.assert_allclose(BASES[program](kept), theirs["xgboost"], atol=1e-5)


def test_cuts_of_its_own_and_missing_values(boost):
    """Without cuts they are quantiles of a normal distribution; what is missing goes to the left."""
    rng = np.random.default_rng(5)
    x = rng.normal(3, 2, (300, 3))
    y = np.sin(x[:, 0]) + x[:, 1] * (x[:, 2] > 3) + rng.normal(0, 0.3, 300)
    x[::7, 1] = np.nan
    out, kept, _ = boost("boosted_trees", x, y, {"trees": 15, "width": 8, "cuts": 9})
    quantile = np.array([-1.2815515655446004, -0.8416212335729143, -0.5244005127080407, -0.2533471031357997, 0])
    edges = np.nanmean(x, 0)[:, None] + np.outer(np.nanstd(x, 0), np.append(quantile, -quantile[-2::-1]))
    column, threshold, value, margin = grow("boosted_trees", x, y, edges, 15, width=8)
    assert (out["column"] == column).all()
    np.testing.assert_allclose(out["threshold"], threshold, rtol=1e-12)
    np.testing.assert_allclose(kept, margin, rtol=1e-9)
    assert out["importance"].sum() == pytest.approx(out["gain"].sum()) and out["mean_squared_error"] < 0.7 * y.var()


def test_width_is_a_power_of_two(starfold, federation):
    clients = federation({"a": {"x": np.arange(8.0)[:, None], "y": np.arange(8.0)}})
    result = starfold("run", "boosted_trees", *clients, "--set", "width=3")
    assert result.code == 3 and "power of two" in result.err

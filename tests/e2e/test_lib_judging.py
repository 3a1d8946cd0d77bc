"""Judging models: residuals, nested models, cross-validation, as R has them, over uneven clients.

Figures: tests/reference/judging.json, made by judging.R.
"""
import json

import numpy as np
from conftest import ROOT
from ready_made import INFERT, MTCARS, agree, kept

R = json.loads((ROOT / "tests" / "reference" / "judging.json").read_text())


def compare(out, key, tolerance):
    for name, expected in R[key].items():
        agree(out[name], expected, tolerance, f"{key}: {name}")


def test_residuals(ready, tmp_path):
    out, _ = ready("residuals", MTCARS, ["x=wt,hp,qsec", "y=mpg"], None, "--out", tmp_path / "out")
    compare(out, "residuals", 1e-10)
    residual, fitted = kept(tmp_path / "out", "residual"), kept(tmp_path / "out", "fitted")
    agree(residual + fitted, MTCARS["mpg"], 1e-14, "what clients keep")
    assert residual.min() == out["min"] and residual.max() == out["max"]
    line = {**MTCARS, "y": [2 * wt for wt in MTCARS["wt"]]}
    two = {name: values[:2] for name, values in MTCARS.items()}
    assert "no residual is left" in ready("residuals", two, ["x=wt", "y=mpg"], fails=True)
    assert "the residuals are all zero" in ready("residuals", {**line, "y": [0.0] * 32}, ["x=wt", "y=y"], fails=True)


def test_nested_models(ready):
    out, report = ready("nested_linear", MTCARS, ["x=wt", "z=hp,qsec", "y=mpg"])
    compare(out, "nested_linear", 1e-10)
    assert report["rounds"] == 2
    out, _ = ready("nested_logistic", INFERT, ["x=spontaneous", "z=induced,parity", "y=case"])
    compare(out, "nested_logistic", 1e-8)
    same = {**MTCARS, "again": MTCARS["wt"]}
    assert "combinations of the columns before them: again" in ready("nested_linear", same, ["x=wt", "z=again", "y=mpg"], fails=True)
    few = {name: values[:4] for name, values in MTCARS.items()}
    assert "nothing is left to compare with" in ready("nested_linear", few, ["x=wt", "z=hp,qsec", "y=mpg"], fails=True)


def test_cross_validation_of_linear_models(ready, tmp_path):
    data = {**MTCARS, "fold": [float(1 + i % 5) for i in range(32)]}
    out, report = ready("linear_cross_validation", data, ["x=wt,hp", "y=mpg", "fold=fold"], None, "--out", tmp_path / "out")
    compare(out, "linear_cross_validation", 1e-10)
    prediction = kept(tmp_path / "out", "prediction")
    agree(np.mean((prediction - MTCARS["mpg"])**2), out["mse"], 1e-12, "what clients keep")

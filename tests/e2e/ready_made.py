"""What tests of ready-made programs share: the figures of R, data, and how they are compared.

The figures and the script that made them are in tests/reference (library.json, library.R); R is not needed here.
"""
import csv
import json
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
R = json.loads((ROOT / "tests" / "reference" / "library.json").read_text())


def table(name):
    with open(ROOT / "tests" / "data" / f"{name}.csv") as file:
        rows = list(csv.DictReader(file))
    return {key: [float(row[key]) for row in rows] for key in rows[0]}


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


def shuffled(name):
    """Interleaved, so that clusters are spread over clients."""
    data = table(name)
    n = len(next(iter(data.values())))
    order = sorted(range(n), key=lambda i: (i * 37 % n, i))
    return {name: [values[i] for i in order] for name, values in data.items()}


def kept(folder, name):
    return np.concatenate([np.load(folder / "clients" / f"c{i}" / f"{name}.npy") for i in range(4)])


MTCARS, INFERT, LUNG, CARS = table("mtcars"), table("infert"), table("lung"), table("cars")
EVENTS = sorted({time for time, status in zip(LUNG["time"], LUNG["status"]) if status == 1})
SURVIVAL = ["time=time", "status=status"]
LUNG_STRATA = {**LUNG, "stratum": [1 + male for male in LUNG["male"]]}
BINARY = ["x=age,parity,induced,spontaneous", "y=case"]
BREAKS = ["x=woolB,tensionM,tensionH", "y=breaks"]
IRIS = ["x=sepal_length,sepal_width,petal_length,petal_width"]
ATTITUDE = ["x=complaints,privileges,learning,raises,critical,advance", "y=rating"]

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

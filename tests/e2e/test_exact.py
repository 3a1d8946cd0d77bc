"""Exact runs: the same bits for every split, order, thread count and processor; sums as fractions have them."""
import csv
import hashlib
import json
import math
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from conftest import COMMAND, ROOT, array
from node_federation import LOGISTIC
from test_nist import NIST

sys.path.insert(0, str(ROOT / "tools"))
import demo  # noqa: E402

SUMS = """
input x : [*, p]
input y : [*]
output total = sum[*](x)
output products = x' @ y
output middle = mean[*](y)
output spread = var[*](y)
output deviation = std[*](y)
output covariances = cov[*](x)
output crossed = cov[*](x, x)
output length = norm[*](y)
output logs = logsumexp[*](y / 100)
output product = prod[*](1 + y / 1000000)
output smallest = min[*](x)
output n = records(x)
"""


def deal(random, arrays, clients):
    """The records in another order, among so many clients; some may get none."""
    n = len(next(iter(arrays.values())))
    owner = random.integers(0, clients, n)
    order = random.permutation(n)
    return {f"c{i}": {key: value[order][owner[order] == i] for key, value in arrays.items()} for i in range(clients)}


def wide(random, n):
    """Numbers of many magnitudes that cancel."""
    x = random.normal(size=n) * 10.0 ** random.integers(-30, 30, n)
    return np.concatenate([x, -x[: n // 2] * (1 + 2.0**-40), random.normal(size=n)])


def rounded(value):
    return float(value) if value.denominator == 1 or value == 0 else value.numerator / value.denominator


def covariance(a, b):
    n = len(a)
    a, b = [Fraction(v) for v in a], [Fraction(v) for v in b]
    return rounded((n * sum(u * v for u, v in zip(a, b)) - sum(a) * sum(b)) / (n * (n - 1)))


def root(value):
    """The square root of a fraction, rounded to the nearest double."""
    near = Fraction(math.sqrt(value))
    candidates = [near, Fraction(math.nextafter(near, 0)), Fraction(math.nextafter(near, math.inf))]
    best = near
    for one in candidates:
        middle = (one + best) / 2
        if one > best and value > middle * middle or one < best and value < middle * middle:
            best = one
    return float(best)


def test_sums_are_those_of_fractions(starfold, federation, program):
    random = np.random.default_rng(1)
    y = wide(random, 60)
    x = np.stack([y, random.permutation(y), random.normal(size=len(y))], axis=1)
    path = program(SUMS)
    answers = []
    for clients in (1, 4, 9):
        run = starfold("run", path, "--exact", "--json", *federation(deal(random, {"x": x, "y": y}, clients)))
        assert run.code == 0, run.err
        assert run.json()["exact"] is True
        answers.append(run.json()["outputs"])
    assert answers[0] == answers[1] == answers[2]
    found = {name: array(value) for name, value in answers[0].items()}
    exactly = [[Fraction(v) for v in column] for column in x.T]
    of_y = [Fraction(v) for v in y]
    assert list(found["total"]) == [rounded(sum(column)) for column in exactly]
    assert list(found["products"]) == [rounded(sum(u * v for u, v in zip(column, of_y))) for column in exactly]
    assert found["middle"] == rounded(sum(of_y)) / len(y)
    assert found["spread"] == covariance(y, y)
    assert found["deviation"] == math.sqrt(covariance(y, y))
    assert found["covariances"].tolist() == [[covariance(a, b) for b in x.T] for a in x.T]
    assert found["crossed"].tolist() == found["covariances"].tolist()
    assert found["length"] == root(sum(v * v for v in of_y))
    assert list(found["smallest"]) == list(x.min(axis=0)) and found["n"] == len(y)


def test_ten_splits_one_checksum(starfold, tmp_path):
    random = np.random.default_rng(7)
    records = [row for count in demo.HOSPITALS.values() for row in demo.make_records(random, count)]
    head = demo.STUDY[: demo.STUDY.index("[[client]]")]
    tail = demo.STUDY[demo.STUDY.index("[options]"):].replace('out = "results"', "exact = true")
    checksums = set()
    for number in range(10):
        folder = tmp_path / str(number)
        folder.mkdir()
        clients = int(random.integers(1, 12))
        owner = random.integers(0, clients, len(records))
        study = head
        for client in random.permutation(clients):
            with open(folder / f"c{client}.csv", "w", newline="") as file:
                rows = [records[i] for i in random.permutation(len(records)) if owner[i] == client]
                csv.writer(file, lineterminator="\n").writerows([demo.COLUMNS, *rows])
            study += f'[[client]]\nname = "c{client}"\ndata = "c{client}.csv"\n'
        (folder / "study.toml").write_text(study + tail)
        run = starfold("run", folder / "study.toml", "--threads", number % 3 + 1, "--out", folder / "results")
        assert run.code == 0, run.err
        checksums.add(hashlib.sha256((folder / "results/outputs.json").read_bytes()).hexdigest())
        record = json.loads((folder / "results/run.json").read_text())
        assert record["exact"] is True and record["options"]["exact"] is True
        assert "rounded once" in (folder / "results/report.html").read_text()
    assert len(checksums) == 1


def test_reference_is_the_same_to_the_bit(starfold, federation, program):
    random = np.random.default_rng(3)
    arrays = {"x": random.normal(size=(200, 3)), "y": random.normal(size=200)}
    clients = federation(deal(random, arrays, 5))
    path = program(SUMS)
    run = starfold("run", path, "--exact", "--json", *clients)
    pooled = starfold("run", path, "--exact", "--reference", "--json", *clients)
    assert run.code == 0 and pooled.code == 0, run.err + pooled.err
    assert run.json()["outputs"] == pooled.json()["outputs"]
    plain = starfold("run", path, "--json", *clients)
    assert "exact" not in plain.json()
    for name, value in plain.json()["outputs"].items():
        np.testing.assert_allclose(array(value), array(run.json()["outputs"][name]), rtol=1e-9)


FUNCTIONS = """
input x : [*, 3]
input y : [*]
let e = x @ [0.3, -0.2, 0.9]
output a = sum[*](sigmoid(e) + softplus(e) + tanh(e) + exp(e) + expm1(e))
output b = sum[*](log(abs(e) + 1) + log1p(abs(e)) + sin(e) + cos(e) + tan(e))
output c = sum[*](abs(e) ^ 1.7 + erf(e) + lgamma(abs(e) + 0.1) + digamma(abs(e) + 0.1) + atan2(e, y))
output d = sum[*](softmax[2](x))
output f = solve(x' @ x, x' @ y)
let (values, _vectors) = eigh(x' @ x)
output g = values
output h = inv(x' @ x)
let (_u, s, _v) = svd(x' @ x)
output i = s
output j = exp(mean[*](y)) ^ 0.3
"""


def test_libraries_that_choose_by_processor_do_not_show(federation, program):
    """The C library and OpenBLAS have other code for other processors; here they are told that this is an old one."""
    random = np.random.default_rng(4)
    arrays = {"x": random.normal(size=(300, 3)), "y": random.normal(size=300)}
    clients = federation(deal(random, arrays, 2))
    command = [COMMAND, "run", str(program(FUNCTIONS)), "--exact", "--json", *map(str, clients)]
    old = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX2_Usable,-FMA_Usable",
           "OPENBLAS_CORETYPE": "Nehalem"}
    found = []
    for environment in ({}, old):
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
        assert run.returncode == 0, run.stderr
        found.append(json.loads(run.stdout)["outputs"])
    assert found[0] == found[1]


def test_over_nodes(three):
    inputs = 'x = ["age", "bmi"]\ny = "y"'
    local = three.run(three.local(LOGISTIC, inputs), "--exact")
    over = three.run(three.study(LOGISTIC, inputs), "--exact")
    assert local[0] == 0 and over[0] == 0, local[2] + over[2]
    assert local[1]["outputs"] == over[1]["outputs"] and local[1]["iterations"] == over[1]["iterations"]
    assert over[1]["exact"] is True


def test_what_is_announced(starfold, program):
    path = program("input x : [*, p]\noutput t = sum[*](x)\noutput c = cov[*](x)\n")
    text = starfold("check", path, "--exact").out
    assert "296*p bytes" in text.replace(" * ", "*") or "296 * p bytes" in text or "296p bytes" in text, text
    merges = starfold("check", path, "--exact", "--json").json()["rounds"][0]["merges"]
    assert [merge["merge"] for merge in merges] == ["sum", "comoments"]
    assert all("bytes" in merge for merge in merges)
    plain = starfold("check", path, "--json").json()["rounds"][0]
    exact = starfold("check", path, "--exact", "--json").json()["rounds"][0]
    assert plain["numbers"] != "" and "bytes" not in plain["merges"][0] and exact["merges"][0]["numbers"] == "p"


@pytest.mark.skipif(not NIST.is_dir(), reason=f"no NIST data in {NIST}; set STARFOLD_SHARED")
@pytest.mark.parametrize("name", ["NumAcc1", "NumAcc2", "NumAcc3", "NumAcc4", "Michelso", "Mavro", "Lew", "Lottery", "PiDigits"])
def test_nist_variances_have_all_digits(starfold, federation, program, name):
    with open(NIST / f"{name}.csv") as file:
        y = np.array([float(next(iter(row.values()))) for row in csv.DictReader(file)])
    run = starfold("run", program("input y : [*]\noutput v = var[*](y)\noutput m = mean[*](y)\n"), "--exact", "--json",
                   *federation(deal(np.random.default_rng(5), {"y": y}, 3)))
    assert run.code == 0, run.err
    assert array(run.json()["outputs"]["v"]) == covariance(y, y)
    assert array(run.json()["outputs"]["m"]) == rounded(sum(map(Fraction, y))) / len(y)

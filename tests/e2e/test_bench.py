"""The benchmarks run and agree with each other; how fast they are is not tested."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("STARFOLD", ROOT / "build" / "starfold")).resolve().parent
ROWS = ("logistic_gradient newton_step node_support node_support_newton node_support_scales node_support_rare node_support_small "
        "private_logistic private_noise masked_round exact_sums exact_gradient exact_newton "
        "logistic_fit covariance elementwise mlp_gradient "
        "kmeans_step many_clients flower_rounds fedavg network_batches many_blocks parquet_stream startup").split()

pytestmark = pytest.mark.skipif(not (BUILD / "starfold_contestant").exists(), reason="the benchmarks are not built")


def bench(*arguments):
    return subprocess.run([ROOT / "bench" / "run", *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env=os.environ | {"BENCH_BUILD": str(BUILD)})


def test_list():
    done = bench("--list")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines() if not line.startswith(" ")] == ROWS


def test_quick(tmp_path):
    done = bench("--quick", "--peers", "numpy", "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stdout + done.stderr
    outcome = json.loads((tmp_path / "out.json").read_text())
    assert [row["name"] for row in outcome["rows"]] == ROWS
    for row in outcome["rows"]:
        assert row["starfold_s"] > 0, row
        assert all(seconds > 0 for seconds in row["peers"].values())
        assert "disagree" not in row
    assert set(outcome["scaling"]) == {"records", "clients", "columns", "rounds"}


def test_only(tmp_path):
    done = bench("--quick", "--only", "startup", "--peers", "none", "--json", tmp_path / "out.json")
    assert done.returncode == 0
    (row,) = json.loads((tmp_path / "out.json").read_text())["rows"]
    assert row["name"] == "startup"
    assert row["peers"] == {}


def test_unknown_row():
    done = bench("--only", "nothing")
    assert done.returncode == 2
    assert "nothing" in done.stderr

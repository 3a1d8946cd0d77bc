"""Sums over data that someone bent on trouble would make, and what no message may tell of them."""
import json
import os
import subprocess

import pytest
from conftest import COMMAND, array

SECRET = "hidden7319"
SUM = "input y : [*]\noutput s = sum[*](y)\noutput n = records(y)\n"


@pytest.fixture
def sum_of(starfold, program, tmp_path):
    """(sum, records) of the column y of a file, given as a path or as what a.csv holds; or the message."""
    fold = program(SUM, "sum.fold")

    def run(data, *options, name="a.csv", env=None):
        if not isinstance(data, os.PathLike):
            path = tmp_path / name
            path.write_bytes(data.encode() if isinstance(data, str) else data)
            data = path
        words = [COMMAND, "run", str(fold), "--json", "--client", f"a={data}", *options]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=env)
        assert done.returncode in (0, 3), (done.returncode, done.stderr)
        assert SECRET not in done.stderr + done.stdout, done.stderr
        assert "\x1b" not in done.stderr
        if done.returncode == 3:
            return done.stderr
        outputs = json.loads(done.stdout)["outputs"]
        return array(outputs["s"]).tolist(), array(outputs["n"]).tolist()

    return run


@pytest.fixture
def study(starfold, tmp_path):
    """Runs a query over files beside the study from another folder: (sum, records), or the message."""
    (tmp_path / "sum.fold").write_text(SUM)

    def run(query, *options, data=None, cwd="/", folder=tmp_path):
        given = f'data = "{data}"\n' if data else ""
        (folder / "study.toml").write_text(f"program = '{tmp_path}/sum.fold'\n[[client]]\nname = \"a\"\n{given}query = {json.dumps(query)}\n")
        done = starfold("run", folder / "study.toml", "--json", *options, cwd=cwd)
        assert done.code in (0, 3), (done.code, done.err)
        assert SECRET not in done.err + done.out, done.err
        if done.code == 3:
            return done.err
        return array(done.json()["outputs"]["s"]).tolist(), array(done.json()["outputs"]["n"]).tolist()

    return run

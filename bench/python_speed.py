#!/usr/bin/env python3
"""build/python-venv/bin/python bench/python_speed.py [RECORDS]: runs from Python beside the command, on the same file and on the same numbers in memory.

Logistic regression by Newton's method on 10 columns, 25 rounds; turn about, five times. Prints the medians of processor-bound seconds of the rounds, and of whole runs
of the file, without the start of a process. The goal is at most 1.05 of the command.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow
import pyarrow.parquet
import starfold as sf
from starfold import _command

RECORDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
COLUMNS = [f"c{i}" for i in range(10)]
TEXT = """input x : [*, p]
input y : [*]
state beta : [p] = zeros(p)
repeat 25 {
  let eta = x @ beta
  let losses = softplus(eta) - y * eta
  let g = grad(sum[*](losses), beta)
  let h = hessian(sum[*](losses), beta) + 1e-6 * eye(p)
  beta <- beta - solve(h, g)
}
output beta
"""


def main():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(RECORDS, len(COLUMNS)))
    y = (rng.random(RECORDS) < 1 / (1 + np.exp(-x[:, 0]))) * 1.0
    table = pyarrow.table({**{name: x[:, i] for i, name in enumerate(COLUMNS)}, "y": y})
    program = sf.compile(TEXT, "logit.fold")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "logit.fold").write_text(TEXT)
        pyarrow.parquet.write_table(table, path / "t.parquet")
        np.savez(path / "t.npz", x=x, y=y)

        def command(file, *bind):
            begin = time.perf_counter()
            done = subprocess.run([_command.path(), "run", "logit.fold", "--client", f"a={file}", *bind, "--threads", "2", "--out", "r"], cwd=folder, capture_output=True, text=True)
            whole = time.perf_counter() - begin
            assert done.returncode == 0, done.stderr
            return json.loads((path / "r/run.json").read_text())["seconds"], whole

        def python(client, bind):
            begin = time.perf_counter()
            fit = program.run({"a": client}, bind=bind, threads=2, progress=False)
            return fit.seconds, time.perf_counter() - begin
        columns = {"x": COLUMNS, "y": "y"}
        binds = ["--bind", "x=" + ",".join(COLUMNS), "--bind", "y=y"]
        cases = {"Parquet file": (lambda: command("t.parquet", *binds), lambda: python(str(path / "t.parquet"), columns)),
                 "arrays": (lambda: command("t.npz"), lambda: python({"x": x, "y": y}, None)),
                 "Arrow table, the command reads Parquet": (lambda: command("t.parquet", *binds), lambda: python(table, columns))}
        for name, pair in cases.items():
            seen = ([], [])
            for _ in range(5):
                for measured, run in zip(seen, pair):
                    measured.append(run())
            (theirs, whole), (ours, ours_whole) = [[statistics.median(one[i] for one in measured) for i in (0, 1)] for measured in seen]
            print(f"{name}: rounds {ours:.3f} s from Python, {theirs:.3f} s by the command: {ours / theirs:.3f}; whole {ours_whole:.3f} and {whole:.3f} s: {ours_whole / whole:.3f}")


main()

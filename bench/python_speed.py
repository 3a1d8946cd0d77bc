#!/usr/bin/env python3
"""build/python-venv/bin/python bench/python_speed.py [RECORDS [ROUNDS [TIMES]]]: runs from Python beside the command, on the same numbers.

Gradient steps of a logistic regression on 20 columns, two threads; turn about. The command reads files and lays their records out once; Python reads
what lies in memory where it lies, and lays it out in long runs. Prints medians: seconds of the rounds, and of whole runs without the start of Python, and what they are
of the command's. The goal is at most 1.05 for whole runs.
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

RECORDS, ROUNDS, TIMES = [int(given) for given in sys.argv[1:4]] + [1_000_000, 20, 3][len(sys.argv) - 1:]
COLUMNS = [f"c{i}" for i in range(20)]
TEXT = f"""input x : [*, p]
input y : [*]
state beta : [p] = zeros(p)
repeat {ROUNDS} {{
  let eta = x @ beta
  beta <- beta - 1e-7 * grad(sum[*](softplus(eta) - y * eta), beta)
}}
output beta
"""


def main():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(RECORDS, len(COLUMNS)))
    y = (rng.random(RECORDS) < 1 / (1 + np.exp(-x[:, 0]))) * 1.0
    wide = np.zeros((RECORDS, 2 * len(COLUMNS)))
    wide[:, ::2] = x
    columns, single = np.asfortranarray(x), x.astype("f4")
    table = pyarrow.table({**{name: np.ascontiguousarray(x[:, i]) for i, name in enumerate(COLUMNS)}, "y": y})
    chunks = pyarrow.concat_tables([table.slice(first, 100_000) for first in range(0, RECORDS, 100_000)])
    program = sf.compile(TEXT, "gradient.fold")
    bind = {"x": COLUMNS, "y": "y"}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "gradient.fold").write_text(TEXT)
        pyarrow.parquet.write_table(table, path / "t.parquet")
        np.savez(path / "t.npz", x=x, y=y)

        def command(file, *more):
            begin = time.perf_counter()
            done = subprocess.run([_command.path(), "run", "gradient.fold", "--client", f"a={file}", *more, "--threads", "2", "--out", "r"], cwd=folder, capture_output=True,
                                  text=True)
            whole = time.perf_counter() - begin
            assert done.returncode == 0, done.stderr
            return json.loads((path / "r/run.json").read_text())["seconds"], whole

        def python(client, bind=None):
            begin = time.perf_counter()
            fit = program.run({"a": client}, bind=bind, threads=2, progress=False)
            return fit.seconds, time.perf_counter() - begin
        binds = ["--bind", "x=" + ",".join(COLUMNS), "--bind", "y=y"]
        groups = [
            ("the command, t.npz", lambda: command("t.npz"), {
                "array, rows": lambda: python({"x": x, "y": y}), "array, columns": lambda: python({"x": columns, "y": y}),
                "array, every other column": lambda: python({"x": wide[:, ::2], "y": y}), "array, float32": lambda: python({"x": single, "y": y})}),
            ("the command, t.parquet", lambda: command("t.parquet", *binds), {
                "t.parquet": lambda: python(str(path / "t.parquet"), bind), "Arrow table": lambda: python(table, bind), "Arrow table in chunks": lambda: python(chunks, bind)})]
        for name, base, cases in groups:
            runs = {name: base, **cases}
            seen = {case: [] for case in runs}
            for _ in range(TIMES):
                for case, run in runs.items():
                    seen[case].append(run())
            medians = {case: [statistics.median(one[i] for one in measured) for i in (0, 1)] for case, measured in seen.items()}
            for case, (rounds, whole) in medians.items():
                print(f"{case}: rounds {rounds:.3f} s ({rounds / medians[name][0]:.2f}), whole {whole:.3f} s ({whole / medians[name][1]:.2f})")


main()

#!/usr/bin/env python3
"""build/venv/bin/python bench/node_rounds [ROUNDS]: what a round over a node's socket takes, beside the same round in one process.

One node with 1,000 records, a program of ROUNDS (500) rounds of a few numbers, on the disk of the temporary folder and in memory
(/dev/shm), where the two syncs before each reply cost nothing. Prints milliseconds per round.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
from node_federation import Federation, hospital  # noqa: E402

COMMAND = os.environ.get("STARFOLD", str(ROOT / "build/starfold"))
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 500


def program(rounds):
    return f"input x : [*, p]\nstate m : [p] = zeros(p)\nrepeat {rounds} {{\n  m <- m + sum[*](abs(x - m) + 1) / 1000000\n}}\noutput m\n"


def seconds(federation, study):
    begin = time.perf_counter()
    code, answer, err = federation.run(study, timeout=600)
    assert code == 0, err
    return time.perf_counter() - begin


def measure(folder):
    """Milliseconds per round over the socket and in one process: the slope between few and many rounds."""
    federation = Federation(COMMAND, folder)
    federation.add("north", hospital(1, 1000), f"max_rounds = 1000000\nmax_total_ratio = 100000\nmax_numbers = 100000000")
    try:
        result = {}
        for name, make in (("socket", federation.study), ("one process", federation.local)):
            few = min(seconds(federation, make(program(10), 'x = ["age", "bmi"]')) for _ in range(3))
            many = min(seconds(federation, make(program(10 + ROUNDS), 'x = ["age", "bmi"]')) for _ in range(3))
            result[name] = 1000 * (many - few) / ROUNDS
        return result
    finally:
        federation.stop()


def sync_milliseconds(folder):
    """What one append and fdatasync takes there."""
    with open(os.path.join(folder, "probe"), "ab") as file:
        begin = time.perf_counter()
        for _ in range(50):
            file.write(b"x" * 500)
            file.flush()
            os.fdatasync(file.fileno())
        return 1000 * (time.perf_counter() - begin) / 50


for where in (None, "/dev/shm"):
    if where and not os.path.isdir(where):
        continue
    with tempfile.TemporaryDirectory(prefix="sf-", dir=where) as folder:
        sync = sync_milliseconds(folder)
        result = measure(folder)
    print(f"{where or 'disk'}: a round over a node's socket {result['socket']:.3f} ms, in one process {result['one process']:.3f} ms; "
          f"one append with fdatasync {sync:.3f} ms; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")

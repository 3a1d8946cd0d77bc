#!/usr/bin/env python3
"""build/python-venv/bin/python bench/engine_rounds.py [dask|spark ...] [RECORDS [TIMES]]: 20 rounds over a client in 8 partitions, beside one process.

Gradient steps of a logistic regression on five columns. Prints seconds of the rounds, without and with laying out the records; what an empty job
of the engine takes, as often; and how often the time of one process with two threads the rounds take beyond those jobs (the goal is 2). `tools/setup
engines` installs Dask and Spark; Spark needs Java. The package should be built in Release: pip install . into build/python-venv.
"""
import os
import statistics
import sys
import time

import numpy as np
import pandas
import starfold as sf

ROUNDS, PARTITIONS, COLUMNS = 20, 8, ["a", "b", "c", "d"]
GIVEN = [int(word) for word in sys.argv[1:] if word.isdigit()]
RECORDS, TIMES = GIVEN + [10_000_000, 3][len(GIVEN):]
ENGINES = [word for word in sys.argv[1:] if not word.isdigit()] or ["dask", "spark"]
PROGRAM = sf.compile(f"""input x : [*, p]
input y : [*]
input n : []
state beta : [p] = zeros(p)
repeat {ROUNDS} {{
  beta <- beta - x' @ (sigmoid(x @ beta) - y) / n
}}
output beta
""")
BIND = {"x": COLUMNS, "y": "y"}


def records(first, last):
    """Made-up records by their numbers, the same whoever makes them."""
    n = np.arange(first, last, dtype=np.float64)
    table = pandas.DataFrame({name: ((n * step) % 97) / 97 for name, step in zip(COLUMNS, (7, 11, 13, 29))})
    return table.assign(y=((n * 31) % 5 < 2) * 1.0)


def timed(client):
    """(seconds of the rounds, of everything, the answer)"""
    ends = []
    begin = time.perf_counter()
    fit = PROGRAM.run({"a": client}, bind=BIND, n=RECORDS, threads=2, progress=lambda rounds, traces, seconds, last: ends.append((rounds, time.perf_counter())))
    total = time.perf_counter() - begin
    assert fit.rounds == len(ends) == ROUNDS
    # The first round's end is known, its begin is not: it takes what the others take on average.
    return (ends[-1][1] - ends[0][1]) * ROUNDS / (ROUNDS - 1), total, fit["beta"]


def dask_client():
    import dask
    import dask.dataframe
    step = -(-RECORDS // PARTITIONS)
    frame = dask.dataframe.from_map(records, range(0, RECORDS, step), [min(first + step, RECORDS) for first in range(0, RECORDS, step)], meta=records(0, 0)).persist()

    def empty():
        dask.compute(*[dask.delayed(lambda: b"", pure=False)() for _ in range(PARTITIONS)])
    return frame, empty


def spark_client():
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession, functions
    session = (SparkSession.builder.master("local[2]").appName("starfold").config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
               .config("spark.driver.memory", "2g").getOrCreate())
    session.sparkContext.setLogLevel("ERROR")
    n = functions.col("id").cast("double")
    frame = session.range(0, RECORDS, 1, PARTITIONS).select(*[((n * step) % 97 / 97).alias(name) for name, step in zip(COLUMNS, (7, 11, 13, 29))],
                                                            functions.when((n * 31) % 5 < 2, 1.0).otherwise(0.0).alias("y"))
    few = session.range(0, PARTITIONS, 1, PARTITIONS).persist()
    few.count()

    def empty():
        few.mapInArrow(lambda batches: batches, "id long").collect()
    return frame, empty


def main():
    table = records(0, RECORDS)
    PROGRAM.run({"a": table}, bind=BIND, n=RECORDS, threads=2)
    runs = [PROGRAM.run({"a": table}, bind=BIND, n=RECORDS, threads=2) for _ in range(TIMES)]
    one = min(fit.seconds for fit in runs)
    print(f"{RECORDS} records, {ROUNDS} rounds, one process with two threads: {one:.2f} s")
    del table
    for name in ENGINES:
        client, empty = {"dask": dask_client, "spark": spark_client}[name]()
        for _ in range(5):
            empty()
        costs = []
        for _ in range(11):
            begin = time.perf_counter()
            empty()
            costs.append(time.perf_counter() - begin)
        job = statistics.median(costs)
        timed(client)  # workers start, files are in memory
        rounds, total, beta = min((timed(client) for _ in range(TIMES)), key=lambda seen: seen[0])
        assert np.allclose(beta, runs[0]["beta"], rtol=1e-9), (beta, runs[0]["beta"])
        print(f"{name}: rounds {rounds:.2f} s, with laying out {total:.2f} s; an empty job {1e3 * job:.1f} ms, {ROUNDS} of them {ROUNDS * job:.2f} s; "
              f"beyond them {(rounds - ROUNDS * job) / one:.2f} of one process (the best of {TIMES} each)")


main()

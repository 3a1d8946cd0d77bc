"""The demonstration behind `make demo`: a study of three hospitals' CSV files, with a report, compared with NumPy on the pooled records."""

import csv
import json
import pathlib
import shlex
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = pathlib.Path("build/demo")
HOSPITALS = {"north": 1200, "south": 700, "island": 40}
COLUMNS = ["age", "bmi", "sex", "smoker", "readmitted"]

STUDY = """\
# Who comes back within 30 days? One model over three hospitals; each keeps its own file.
program = "logistic"                       # from the library: `starfold lib logistic` shows it

[inputs]
x = ["age", "bmi", "sex", "smoker"]
y = "readmitted"

[categorical.sex]
levels = ["f", "m"]                        # becomes the column sex=m

[[client]]
name = "north"
data = "north.csv"

[[client]]
name = "south"
data = "south.csv"

[[client]]
name = "island"                            # too small to fit a model of its own
data = "island.csv"

[options]
missing = "drop"                           # a few patients were not weighed
out = "results"
"""


def make_records(random, count):
    """Patients in COLUMNS, drawn from a logistic model; a few have no bmi."""
    age = random.integers(20, 90, count)
    bmi = random.normal(26, 4, count).round(1)
    male = random.random(count) < 0.5
    smoker = random.random(count) < 0.3
    chance = 1 / (1 + np.exp(-(-5.5 + 0.04 * age + 0.06 * bmi + 0.3 * male + 0.9 * smoker)))
    readmitted = random.random(count) < chance
    weighed = random.random(count) > 0.01
    return [[age[i], bmi[i] if weighed[i] else "", "fm"[int(male[i])], str(bool(smoker[i])).lower(), int(readmitted[i])]
            for i in range(count)]


def design(records):
    """The columns of the model as numbers, without patients that lack one; and the response."""
    whole = [row for row in records if row[1] != ""]
    x = np.array([[1, age, bmi, sex == "m", smoker == "true"] for age, bmi, sex, smoker, _ in whole], dtype=float)
    return x, np.array([row[-1] for row in whole], dtype=float)


def fit_pooled(x, y):
    """Reweighted least squares on all records in one place, with the start of R's glm, to the optimum."""
    mean = (y + 0.5) / 2
    eta = np.log(mean / (1 - mean))
    beta = np.zeros(x.shape[1])
    for _ in range(25):
        weight = mean * (1 - mean)
        before, beta = beta, np.linalg.solve((x.T * weight) @ x, x.T @ (weight * eta + y - mean))
        eta = x @ beta
        mean = 1 / (1 + np.exp(-eta))
        if np.max(np.abs(beta - before)) < 1e-10:
            break
    return beta, np.sqrt(np.diag(np.linalg.inv((x.T * (mean * (1 - mean))) @ x)))


def starfold(*words):
    """Shows the command as a person would type it, and runs it."""
    print(f"$ starfold {shlex.join(words)}\n", flush=True)
    run = subprocess.run([ROOT / "build/starfold", *words], cwd=ROOT)
    if run.returncode:
        sys.exit(f"demo: the command above failed with exit code {run.returncode}")
    print(flush=True)


def main():
    random = np.random.default_rng(7)
    folder = ROOT / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    everyone = []
    for name, count in HOSPITALS.items():
        records = make_records(random, count)
        everyone += records
        with open(folder / f"{name}.csv", "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *records])
    (folder / "study.toml").write_text(STUDY)

    print(f"{len(HOSPITALS)} hospitals, {len(everyone)} patients, one study ({FOLDER}/study.toml):\n")
    print("".join(f"    {line}\n" for line in STUDY.splitlines()))
    starfold("run", f"{FOLDER}/study.toml")

    outputs = json.loads((folder / "results/outputs.json").read_text())
    federated = np.array(outputs["beta"]["data"])
    pooled, errors = fit_pooled(*design(everyone))
    print("The same model by NumPy, on the pooled records:\n")
    print(f"{'':13}{'federated':>14}{'pooled':>14}{'difference':>13}")
    for row in zip(["(intercept)", "age", "bmi", "sex=m", "smoker"], federated, pooled, federated - pooled):
        print("{:13}{:14.8f}{:14.8f}{:13.1e}".format(*row))
    same = np.allclose(federated, pooled, rtol=1e-9, atol=1e-12) and np.allclose(outputs["beta_se"]["data"], errors, rtol=1e-9)
    if not same:
        sys.exit("demo: the federated answer differs from the pooled one")
    print(f"\nThe report, for a browser: {FOLDER}/results/report.html")
    print("What would leave a hospital, before anything runs: starfold explain logistic")


if __name__ == "__main__":
    main()
